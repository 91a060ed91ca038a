#include "rdevice/collectives/bcast.h"
#include "rdevice/collectives/data.h"
#include "rdevice/collectives/over_sites.h"

#include <stdlib.h>

#define TOGETHER_MAX 8192 /* bytes of a message; above, whether it comes is one of its own */

/* --- parts --- */

void *parts_at(const struct parts *parts, int rank)
{
    return data_element(parts->buffer, (long long)rank * parts->count, parts->type);
}

int parts_unpack(const struct sites *sites, const char *bytes, long long size,
                 const struct parts *parts, bool in_place)
{
    const struct plan *plan = &sites->plan;
    int error = MPI_SUCCESS;

    for (int r = 0; error == MPI_SUCCESS && r < plan->ranks; r++)
        if (!in_place || r != plan->rank)
            error = data_unpack(bytes + plan_slot(plan, r) * size, size, parts_at(parts, r),
                                parts->count, parts->type, sites->all);
    return error;
}

int parts_pack(const struct sites *sites, char *bytes, long long size, const struct parts *parts)
{
    const struct plan *plan = &sites->plan;
    int error = MPI_SUCCESS;

    for (int r = 0; error == MPI_SUCCESS && r < plan->ranks; r++)
        error = data_pack(parts_at(parts, r), parts->count, parts->type,
                          bytes + plan_slot(plan, r) * size, size, sites->all);
    return error;
}

/* --- messages --- */

static int meet(const struct sites *sites, int error)
{
    const struct plan *plan = &sites->plan;
    char here = 0;
    char there[CW_RELAYS_MAX];
    struct sites_batch batch;

    sites_batch_begin(&batch, sites, error);
    for (int s = 0; s < plan->sites; s++)
        if (s != plan->mine) {
            sites_batch_recv(&batch, &there[s], 1, MPI_BYTE, plan->first[s]);
            sites_batch_send(&batch, &here, 1, MPI_BYTE, plan->first[s]);
        }
    return sites_batch_end(&batch);
}

int over_sites_barrier(MPI_Comm comm)
{
    const struct sites *sites = sites_of(comm, true);
    char in = 0;
    char out = 0;
    int error;

    if (!sites)
        return mpich.Barrier(comm);
    error = mpich.Reduce(&in, &out, 1, MPI_BYTE, MPI_BOR, 0, sites->site);
    if (plan_speaks(&sites->plan))
        error = meet(sites, error);
    return sites_result(comm, sites_first(error, sites_agree(sites, 0, error)));
}

/* The message, and whether it is good, as one. */
static int bcast_together(const struct sites *sites, void *buffer, int count, MPI_Datatype type,
                          int from, int error)
{
    bool speaks = sites->plan.place[sites->plan.rank] == from;
    long long bytes = data_size(count, type);
    char message[TOGETHER_MAX + 1];
    int came;

    if (speaks && error == MPI_SUCCESS)
        error = data_pack(buffer, count, type, message, bytes, sites->all);
    message[bytes] = error != MPI_SUCCESS;
    came = mpich.Bcast(message, (int)bytes + 1, MPI_BYTE, from, sites->site);
    if (!speaks && came == MPI_SUCCESS)
        came = message[bytes] ? SITES_FAILED
                              : data_unpack(message, bytes, buffer, count, type, sites->all);
    return sites_first(error, came);
}

int bcast_within_site(const struct sites *sites, void *buffer, int count, MPI_Datatype type,
                      int from, int error)
{
    int came;

    if (data_size(count, type) <= TOGETHER_MAX)
        return bcast_together(sites, buffer, count, type, from, error);
    came = sites_agree(sites, from, error);
    if (came == MPI_SUCCESS)
        came = mpich.Bcast(buffer, count, type, from, sites->site);
    return sites_first(error, came);
}

/* MPI_Scatter hangs where sizes differ. So all take what that rank sends. */
int scatter_within_site(const struct sites *sites, const char *parts, char *part, int size,
                        int from, int error)
{
    int theirs = error == MPI_SUCCESS ? size : 0;
    int came = mpich.Bcast(&theirs, 1, MPI_INT, from, sites->site);
    char *other;

    if (came != MPI_SUCCESS || theirs == 0)
        return sites_first(error, sites_first(came, SITES_FAILED));
    if (theirs == size)
        return sites_first(
            error, mpich.Scatter(parts, size, MPI_BYTE, part, size, MPI_BYTE, from, sites->site));
    other = malloc((size_t)theirs);
    if (!other)
        return MPI_ERR_NO_MEM;
    mpich.Scatter(NULL, 0, MPI_BYTE, other, theirs, MPI_BYTE, from, sites->site);
    free(other);
    return sites_first(error, SITES_FAILED);
}

int bcast_over_sites(const struct sites *sites, void *buffer, int count, MPI_Datatype type,
                     int root, int error)
{
    const struct plan *plan = &sites->plan;
    int speaker = plan_speaker(plan, plan->mine, root);
    struct sites_batch batch;

    sites_batch_begin(&batch, sites, error);
    for (int s = 0; plan->rank == root && s < plan->sites; s++)
        if (s != plan->mine)
            sites_batch_send(&batch, buffer, count, type, plan->first[s]);
    if (plan->rank == speaker && plan->rank != root)
        sites_batch_recv(&batch, buffer, count, type, root);
    error = sites_batch_end(&batch);
    return bcast_within_site(sites, buffer, count, type, plan->place[speaker], error);
}

int over_sites_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    const struct sites *sites = NULL;

    if (data_is_root(root, comm) && data_bytes(buffer, count, type) > 0)
        sites = sites_of(comm, false);
    if (!sites)
        return mpich.Bcast(buffer, count, type, root, comm);
    return sites_result(comm, bcast_over_sites(sites, buffer, count, type, root, MPI_SUCCESS));
}
