#include "rdevice/collectives/large.h"
#include "rdevice/collectives/mpich.h"
#include "rdevice/collectives/over_sites.h"

#include <limits.h>
#include <stdlib.h>

/* A bad count is MPICH's to refuse, so it is passed on as it came. */
static bool is_small(MPI_Count count)
{
    return count >= 0 && count <= INT_MAX;
}

int large_bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    if (is_small(count))
        return over_sites_bcast(buffer, (int)count, type, root, comm);
    return mpich.Bcast_c(buffer, count, type, root, comm);
}

int large_reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 int root, MPI_Comm comm)
{
    if (is_small(count))
        return over_sites_reduce(send, recv, (int)count, type, op, root, comm);
    return mpich.Reduce_c(send, recv, count, type, op, root, comm);
}

int large_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm)
{
    if (is_small(count))
        return over_sites_allreduce(send, recv, (int)count, type, op, comm);
    return mpich.Allreduce_c(send, recv, count, type, op, comm);
}

/* Of a gather or scatter, what only the root has to know may be anything elsewhere: then MPI does
 * not look at it, and neither does over_sites.h. */
static int narrow(MPI_Count count)
{
    return is_small(count) ? (int)count : 0;
}

static bool is_root(int root, MPI_Comm comm)
{
    int rank;

    return comm != MPI_COMM_NULL && mpich.Comm_rank(comm, &rank) == MPI_SUCCESS && rank == root;
}

int large_gather(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                 MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    if (is_root(root, comm) ? is_small(recv_count) : is_small(send_count))
        return over_sites_gather(send, narrow(send_count), send_type, recv, narrow(recv_count),
                                 recv_type, root, comm);
    return mpich.Gather_c(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
}

int large_scatter(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                  MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    if (is_root(root, comm) ? is_small(send_count) : is_small(recv_count))
        return over_sites_scatter(send, narrow(send_count), send_type, recv, narrow(recv_count),
                                  recv_type, root, comm);
    return mpich.Scatter_c(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
}

int large_allgather(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                    MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
    if (is_small(recv_count) && (send == MPI_IN_PLACE || is_small(send_count)))
        return over_sites_allgather(send, narrow(send_count), send_type, recv, (int)recv_count,
                                    recv_type, comm);
    return mpich.Allgather_c(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

int large_alltoall(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                   MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
    if (is_small(recv_count) && (send == MPI_IN_PLACE || is_small(send_count)))
        return over_sites_alltoall(send, narrow(send_count), send_type, recv, (int)recv_count,
                                   recv_type, comm);
    return mpich.Alltoall_c(send, send_count, send_type, recv, recv_count, recv_type, comm);
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

int large_reduce_scatter(const void *send, void *recv, const MPI_Count counts[], MPI_Datatype type,
                         MPI_Op op, MPI_Comm comm)
{
    int *small = narrow_all(counts, comm);
    int error;

    if (!small)
        return mpich.Reduce_scatter_c(send, recv, counts, type, op, comm);
    error = over_sites_reduce_scatter(send, recv, small, type, op, comm);
    free(small);
    return error;
}

int large_reduce_scatter_block(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
                               MPI_Op op, MPI_Comm comm)
{
    if (is_small(count))
        return over_sites_reduce_scatter_block(send, recv, (int)count, type, op, comm);
    return mpich.Reduce_scatter_block_c(send, recv, count, type, op, comm);
}

int large_scan(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm)
{
    if (is_small(count))
        return over_sites_scan(send, recv, (int)count, type, op, comm);
    return mpich.Scan_c(send, recv, count, type, op, comm);
}
