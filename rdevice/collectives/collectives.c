#include "rdevice/collectives/collectives.h"
#include "rdevice/collectives/data.h"
#include "rdevice/collectives/over_sites.h"
#include "rdevice/collectives/sites.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE_MAX 64 /* bytes of the name of one of MPICH's variables */

struct collective {
    const char *name;
    const char *variable; /* what MPICH calls it in the names of its own */
    void *function;
};

static int init(int *count, char ***arguments)
{
    int error = mpich.Init(count, arguments);

    if (error == MPI_SUCCESS)
        sites_begin();
    return error;
}

static int init_thread(int *count, char ***arguments, int required, int *provided)
{
    int error = mpich.Init_thread(count, arguments, required, provided);

    if (error == MPI_SUCCESS)
        sites_begin();
    return error;
}

/* --- large counts: a message that an int can count is the same to MPI, whichever of both functions
 * a rank calls --- */

/* A bad count is MPICH's to refuse, so it is passed on as it came. */
static bool is_small(MPI_Count count)
{
    return count >= 0 && count <= INT_MAX;
}

/* Of a gather or scatter, what only the root has to know may be anything elsewhere: then MPI does
 * not look at it, and neither does over_sites.h. */
static int narrow(MPI_Count count)
{
    return is_small(count) ? (int)count : 0;
}

/* The counts as ints; NULL: one of them is none, or there is no memory. */
static int *narrow_all(const MPI_Count counts[], MPI_Comm comm)
{
    int *small;
    int ranks;

    if (!counts || comm == MPI_COMM_NULL || mpich.Comm_size(comm, &ranks) != MPI_SUCCESS)
        return NULL;
    small = calloc((size_t)ranks, sizeof(*small));
    for (int r = 0; small && r < ranks; r++) {
        if (!is_small(counts[r])) {
            free(small);
            return NULL;
        }
        small[r] = (int)counts[r];
    }
    return small;
}

static int large_reduce_scatter(const void *send, void *recv, const MPI_Count counts[],
                                MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int *small = narrow_all(counts, comm);
    int error;

    if (!small)
        return mpich.Reduce_scatter_c(send, recv, counts, type, op, comm);
    error = over_sites_reduce_scatter(send, recv, small, type, op, comm);
    free(small);
    return error;
}

#define LARGE(name, mpi, parameters, small, small_arguments, arguments)                            \
    static int large_##name parameters                                                             \
    {                                                                                              \
        return small ? over_sites_##name small_arguments : mpich.mpi arguments;                    \
    }

LARGE(bcast, Bcast_c, (void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm),
      is_small(count), (buffer, (int)count, type, root, comm), (buffer, count, type, root, comm))

#define LARGE_REDUCTION(name, mpi)                                                                 \
    LARGE(name, mpi,                                                                               \
          (const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,            \
           MPI_Comm comm),                                                                         \
          is_small(count), (send, recv, (int)count, type, op, comm),                               \
          (send, recv, count, type, op, comm))
LARGE_REDUCTION(allreduce, Allreduce_c)
LARGE_REDUCTION(reduce_scatter_block, Reduce_scatter_block_c)
LARGE_REDUCTION(scan, Scan_c)
LARGE(reduce, Reduce_c,
      (const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
       MPI_Comm comm),
      is_small(count), (send, recv, (int)count, type, op, root, comm),
      (send, recv, count, type, op, root, comm))

/* Two counts, one of which says how long a part is. */
#define LARGE_PARTS(name, mpi, small)                                                              \
    LARGE(name, mpi,                                                                               \
          (const void *send, MPI_Count sends, MPI_Datatype send_type, void *recv, MPI_Count recvs, \
           MPI_Datatype recv_type, MPI_Comm comm),                                                 \
          small, (send, narrow(sends), send_type, recv, narrow(recvs), recv_type, comm),           \
          (send, sends, send_type, recv, recvs, recv_type, comm))
#define LARGE_ROOTED(name, mpi, at_root, elsewhere)                                                \
    LARGE(name, mpi,                                                                               \
          (const void *send, MPI_Count sends, MPI_Datatype send_type, void *recv, MPI_Count recvs, \
           MPI_Datatype recv_type, int root, MPI_Comm comm),                                       \
          is_small(data_is_me(root, comm) ? at_root : elsewhere),                                  \
          (send, narrow(sends), send_type, recv, narrow(recvs), recv_type, root, comm),            \
          (send, sends, send_type, recv, recvs, recv_type, root, comm))
LARGE_PARTS(allgather, Allgather_c, is_small(recvs) && (send == MPI_IN_PLACE || is_small(sends)))
LARGE_PARTS(alltoall, Alltoall_c, is_small(recvs) && (send == MPI_IN_PLACE || is_small(sends)))
LARGE_ROOTED(gather, Gather_c, recvs, sends)
LARGE_ROOTED(scatter, Scatter_c, sends, recvs)

/* --- by their names --- */

#define BOTH(mpi, variable, name)                                                                  \
    {mpi, variable, over_sites_##name},                                                            \
    {                                                                                              \
        mpi "_c", variable, large_##name                                                           \
    }

static const struct collective collectives[] = {
    {"Barrier", "BARRIER", over_sites_barrier},
    {"Init", "", init},
    {"Init_thread", "", init_thread},
    BOTH("Allgather", "ALLGATHER", allgather),
    BOTH("Allreduce", "ALLREDUCE", allreduce),
    BOTH("Alltoall", "ALLTOALL", alltoall),
    BOTH("Bcast", "BCAST", bcast),
    BOTH("Gather", "GATHER", gather),
    BOTH("Reduce", "REDUCE", reduce),
    BOTH("Reduce_scatter", "REDUCE_SCATTER", reduce_scatter),
    BOTH("Reduce_scatter_block", "REDUCE_SCATTER_BLOCK", reduce_scatter_block),
    BOTH("Scan", "SCAN", scan),
    BOTH("Scatter", "SCATTER", scatter),
};

/* The user has chosen an algorithm of MPICH. */
static bool is_users(const char *collective)
{
    char name[VARIABLE_MAX];

    snprintf(name, sizeof(name), "MPIR_CVAR_%s_INTRA_ALGORITHM", collective);
    return getenv(name);
}

static const char *without_prefix(const char *name)
{
    name += *name == 'P';
    return strncmp(name, "MPI_", 4) == 0 ? name + 4 : "";
}

void *collectives_find(const char *name, void *(*find)(const char *name))
{
    const char *rest = without_prefix(name);

    for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++)
        if (strcmp(rest, collectives[i].name) == 0)
            return sites_known() && !is_users(collectives[i].variable) && mpich_resolve(find)
                       ? collectives[i].function
                       : NULL;
    return NULL;
}
