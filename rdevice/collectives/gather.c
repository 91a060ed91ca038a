/* MPI_Gather, MPI_Scatter and MPI_Allgather: what the ranks of a site have crosses as one message.
 * Parts are bytes, in the order of sites, and of the ranks within a site. */
#include "rdevice/collectives/bcast.h"
#include "rdevice/collectives/data.h"
#include "rdevice/collectives/over_sites.h"
#include "rdevice/collectives/sites.h"

#include <stdlib.h>

/* Whether the parts of all ranks can be counted. */
static bool fits(long long bytes, MPI_Comm comm)
{
    int ranks;

    return bytes > 0 && comm != MPI_COMM_NULL && mpich.Comm_size(comm, &ranks) == MPI_SUCCESS &&
           bytes <= OVER_SITES_PART_MAX / ranks;
}

/* The parts of this site come to its speaker: at its place in `bytes`, which has room for all
 * ranks. */
static int gather_site(const struct sites *sites, const char *own, char *bytes, long long size,
                       int speaker)
{
    const struct plan *plan = &sites->plan;

    return mpich.Gather(own, (int)size, MPI_BYTE, bytes + plan->start[plan->mine] * size, (int)size,
                        MPI_BYTE, plan->place[speaker], sites->site);
}

/* Sends or receives the parts of a site as one message. */
static void send_site(struct sites_batch *batch, char *bytes, long long size, int site, int to)
{
    const struct plan *plan = &batch->sites->plan;

    sites_batch_send(batch, bytes + plan->start[site] * size, (int)(plan->size[site] * size),
                     MPI_BYTE, to);
}

static void recv_site(struct sites_batch *batch, char *bytes, long long size, int site, int from)
{
    const struct plan *plan = &batch->sites->plan;

    sites_batch_recv(batch, bytes + plan->start[site] * size, (int)(plan->size[site] * size),
                     MPI_BYTE, from);
}

/* Memory for the bytes of all ranks, and behind them for those of this one. */
static char *room_for(const struct sites *sites, long long size)
{
    return calloc((size_t)sites->plan.ranks + 1, (size_t)size);
}

/* Of an operation with a root: bytes of one of its parts; DATA_BAD: MPICH refuses them, or what the
 * root has itself. */
static long long root_bytes(const struct parts *own, const struct parts *parts, int root)
{
    if ((own->buffer != MPI_IN_PLACE &&
         data_bytes(own->buffer, own->count, own->type) == DATA_BAD) ||
        !data_may_be_both(own->buffer, own->count, own->type, parts->buffer, parts->count,
                          parts->type, root))
        return DATA_BAD;
    return data_bytes(parts->buffer, parts->count, parts->type);
}

/* ... its sites, and bytes of a part; NULL: it is to be MPICH's own. */
static const struct sites *sites_with(const struct parts *own, const struct parts *parts, int root,
                                      MPI_Comm comm, long long *size)
{
    *size = 0;
    if (data_is_root(root, comm))
        *size = data_is_me(root, comm) ? root_bytes(own, parts, root)
                                       : data_bytes(own->buffer, own->count, own->type);
    return fits(*size, comm) ? sites_of(comm, false) : NULL;
}

/* ... between the root and who speaks for each other site; `to_root`: or from it. */
static int cross(const struct sites *sites, char *bytes, long long size, int root, bool to_root,
                 int error)
{
    const struct plan *plan = &sites->plan;
    struct sites_batch batch;

    sites_batch_begin(&batch, sites, error);
    for (int s = 0; s < plan->sites; s++) {
        bool other = s != plan->mine;

        if (plan->rank == root ? !other : other)
            continue;
        if ((plan->rank == root) == to_root)
            recv_site(&batch, bytes, size, s, other ? plan->first[s] : root);
        else
            send_site(&batch, bytes, size, s, other ? plan->first[s] : root);
    }
    return sites_batch_end(&batch);
}

/* --- gather --- */

/* What this rank adds. At the root it may be less or more than the others are asked for. */
static int pack_own(const struct sites *sites, const struct parts *own, char *packed,
                    long long size)
{
    if (own->buffer == MPI_IN_PLACE)
        return MPI_SUCCESS;
    if (data_size(own->count, own->type) != size)
        return MPI_ERR_TRUNCATE;
    return data_pack(own->buffer, own->count, own->type, packed, size, sites->all);
}

static int gather(const struct sites *sites, const struct parts *own, const struct parts *parts,
                  long long size, int root)
{
    const struct plan *plan = &sites->plan;
    int speaker = plan_speaker(plan, plan->mine, root);
    char *bytes = room_for(sites, size);
    char *packed = bytes ? bytes + plan->ranks * size : NULL;
    int error;

    if (!bytes)
        return MPI_ERR_NO_MEM;
    error = pack_own(sites, own, packed, size);
    error = sites_first(error, gather_site(sites, packed, bytes, size, speaker));
    if (plan->rank == speaker)
        error = cross(sites, bytes, size, root, true, error);
    if (error == MPI_SUCCESS && plan->rank == root)
        error = parts_unpack(sites, bytes, size, parts, own->buffer == MPI_IN_PLACE);
    free(bytes);
    return error;
}

int over_sites_gather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                      int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    const struct parts own = {(void *)send, send_count, send_type};
    const struct parts parts = {recv, recv_count, recv_type};
    long long size;
    const struct sites *sites = sites_with(&own, &parts, root, comm, &size);

    if (!sites)
        return mpich.Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
    return sites_result(comm, gather(sites, &own, &parts, size, root));
}

/* --- scatter --- */

static int unpack_own(const struct sites *sites, const char *packed, const struct parts *own,
                      long long size)
{
    if (own->buffer == MPI_IN_PLACE)
        return MPI_SUCCESS;
    if (data_size(own->count, own->type) != size)
        return MPI_ERR_TRUNCATE;
    return data_unpack(packed, size, own->buffer, own->count, own->type, sites->all);
}

static int scatter(const struct sites *sites, const struct parts *parts, const struct parts *own,
                   long long size, int root)
{
    const struct plan *plan = &sites->plan;
    int speaker = plan_speaker(plan, plan->mine, root);
    char *bytes = room_for(sites, size);
    char *packed = bytes ? bytes + plan->ranks * size : NULL;
    int error = MPI_SUCCESS;

    if (!bytes)
        return MPI_ERR_NO_MEM;
    if (plan->rank == root)
        error = parts_pack(sites, bytes, size, parts);
    if (plan->rank == speaker)
        error = cross(sites, bytes, size, root, false, error);
    error = scatter_within_site(sites, bytes + plan->start[plan->mine] * size, packed, (int)size,
                                plan->place[speaker], error);
    if (error == MPI_SUCCESS)
        error = unpack_own(sites, packed, own, size);
    free(bytes);
    return error;
}

int over_sites_scatter(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                       int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    const struct parts parts = {(void *)send, send_count, send_type};
    const struct parts own = {recv, recv_count, recv_type};
    long long size;
    const struct sites *sites = sites_with(&own, &parts, root, comm, &size);

    if (!sites)
        return mpich.Scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
    return sites_result(comm, scatter(sites, &parts, &own, size, root));
}

/* --- allgather --- */

/* Between those who speak for sites: each gets the parts of all others. */
static int exchange_sites(const struct sites *sites, char *bytes, long long size, int error)
{
    const struct plan *plan = &sites->plan;
    struct sites_batch batch;

    sites_batch_begin(&batch, sites, error);
    for (int s = 0; s < plan->sites; s++)
        if (s != plan->mine) {
            recv_site(&batch, bytes, size, s, plan->first[s]);
            send_site(&batch, bytes, size, plan->mine, plan->first[s]);
        }
    return sites_batch_end(&batch);
}

/* `own`: what this rank sends, in place or not. */
static int allgather(const struct sites *sites, const struct parts *own, const struct parts *parts,
                     long long size, bool in_place)
{
    const struct plan *plan = &sites->plan;
    char *bytes = room_for(sites, size);
    char *packed = bytes ? bytes + plan->ranks * size : NULL;
    int error;

    if (!bytes)
        return MPI_ERR_NO_MEM;
    error = data_pack(in_place ? parts_at(parts, plan->rank) : own->buffer, own->count, own->type,
                      packed, size, sites->all);
    error = sites_first(error, gather_site(sites, packed, bytes, size, plan->first[plan->mine]));
    if (plan_speaks(plan))
        error = exchange_sites(sites, bytes, size, error);
    error = bcast_within_site(sites, bytes, (int)(plan->ranks * size), MPI_BYTE, 0, error);
    if (error == MPI_SUCCESS)
        error = parts_unpack(sites, bytes, size, parts, in_place);
    free(bytes);
    return error;
}

/* Whether what this rank sends is good, and as long as a part. */
static bool sends_part(const struct parts *own, const struct parts *parts, long long size,
                       MPI_Comm comm)
{
    int rank;

    return mpich.Comm_rank(comm, &rank) == MPI_SUCCESS &&
           data_may_be_both(own->buffer, own->count, own->type, parts->buffer, parts->count,
                            parts->type, rank) &&
           data_bytes(own->buffer, own->count, own->type) == size;
}

int over_sites_allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                         int recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
    const struct parts parts = {recv, recv_count, recv_type};
    bool in_place = send == MPI_IN_PLACE;
    const struct parts own = in_place ? parts : (struct parts){(void *)send, send_count, send_type};
    long long size = data_bytes(recv, recv_count, recv_type);
    const struct sites *sites = NULL;

    if (fits(size, comm) && (in_place || sends_part(&own, &parts, size, comm)))
        sites = sites_of(comm, true);
    if (!sites)
        return mpich.Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);
    return sites_result(comm, allgather(sites, &own, &parts, size, in_place));
}
