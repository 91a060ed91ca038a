#include "rdevice/collectives/collectives.h"
#include "rdevice/collectives/large.h"
#include "rdevice/collectives/over_sites.h"
#include "rdevice/collectives/sites.h"

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

static const struct collective collectives[] = {
    {"Allgather", "ALLGATHER", over_sites_allgather},
    {"Allgather_c", "ALLGATHER", large_allgather},
    {"Allreduce", "ALLREDUCE", over_sites_allreduce},
    {"Allreduce_c", "ALLREDUCE", large_allreduce},
    {"Alltoall", "ALLTOALL", over_sites_alltoall},
    {"Alltoall_c", "ALLTOALL", large_alltoall},
    {"Barrier", "BARRIER", over_sites_barrier},
    {"Bcast", "BCAST", over_sites_bcast},
    {"Bcast_c", "BCAST", large_bcast},
    {"Gather", "GATHER", over_sites_gather},
    {"Gather_c", "GATHER", large_gather},
    {"Init", "", init},
    {"Init_thread", "", init_thread},
    {"Reduce", "REDUCE", over_sites_reduce},
    {"Reduce_c", "REDUCE", large_reduce},
    {"Reduce_scatter", "REDUCE_SCATTER", over_sites_reduce_scatter},
    {"Reduce_scatter_c", "REDUCE_SCATTER", large_reduce_scatter},
    {"Reduce_scatter_block", "REDUCE_SCATTER_BLOCK", over_sites_reduce_scatter_block},
    {"Reduce_scatter_block_c", "REDUCE_SCATTER_BLOCK", large_reduce_scatter_block},
    {"Scan", "SCAN", over_sites_scan},
    {"Scan_c", "SCAN", large_scan},
    {"Scatter", "SCATTER", over_sites_scatter},
    {"Scatter_c", "SCATTER", large_scatter},
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
