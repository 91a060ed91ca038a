/* MPI_Reduce and MPI_Allreduce. */
#include "rdevice/collectives/bcast.h"
#include "rdevice/collectives/data.h"
#include "rdevice/collectives/over_sites.h"

/* Combines the parts of all sites into the last slot, in one order at all ranks, so that all get
 * the same bits. */
static int combine(const struct plan *plan, char *slots, size_t stride, int count,
                   MPI_Datatype type, MPI_Op op)
{
    char *last = slots + (size_t)(plan->sites - 1) * stride;
    int error = MPI_SUCCESS;

    for (int s = plan->sites - 1; error == MPI_SUCCESS && s-- > 0;)
        error = mpich.Reduce_local(slots + (size_t)s * stride, last, count, type, op);
    return error;
}

static int copy(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op)
{
    return mpich.Reduce(from, to, count, type, op, 0, MPI_COMM_SELF);
}

static int recv_part(const struct sites *sites, void *part, int count, MPI_Datatype type, int site,
                     int error)
{
    struct sites_batch batch;

    sites_batch_begin(&batch, sites, error);
    sites_batch_recv(&batch, part, count, type, sites->plan.first[site]);
    return sites_batch_end(&batch);
}

/* At the root, which has the part of its own site at `own`. One part after the other, in the order
 * of combine(), so that a large one takes no memory for each site: `next` has room for one. */
static int take_parts(const struct sites *sites, const void *own, void *next, void *recv, int count,
                      MPI_Datatype type, MPI_Op op, int error)
{
    const struct plan *plan = &sites->plan;

    for (int s = plan->sites; s-- > 0;) {
        const void *part = s == plan->mine ? own : next;

        if (s != plan->mine)
            error = recv_part(sites, next, count, type, s, error);
        if (error == MPI_SUCCESS)
            error = s == plan->sites - 1 ? copy(part, recv, count, type, op)
                                         : mpich.Reduce_local(part, recv, count, type, op);
    }
    return error;
}

static int send_part(const struct sites *sites, const void *part, int count, MPI_Datatype type,
                     int root, int error)
{
    struct sites_batch batch;

    sites_batch_begin(&batch, sites, error);
    sites_batch_send(&batch, part, count, type, root);
    return sites_batch_end(&batch);
}

/* `from`: never MPI_IN_PLACE. */
static int reduce(const struct sites *sites, const void *from, void *recv, int count,
                  MPI_Datatype type, MPI_Op op, int root)
{
    const struct plan *plan = &sites->plan;
    int speaker = plan_speaker(plan, plan->mine, root);
    bool is_root = plan->rank == root;
    struct data_room room = {0};
    size_t stride = 0;
    int error;

    if (plan->rank != speaker)
        return mpich.Reduce(from, NULL, count, type, op, plan->place[speaker], sites->site);
    error = data_room_make(&room, is_root ? 2 : 1, count, type, &stride);
    if (error == MPI_SUCCESS)
        error = mpich.Reduce(from, room.at, count, type, op, plan->place[speaker], sites->site);
    error = is_root
                ? take_parts(sites, room.at, (char *)room.at + stride, recv, count, type, op, error)
                : send_part(sites, room.at, count, type, root, error);
    data_room_free(&room);
    return error;
}

static bool reduces(const void *send, const void *recv, int count, MPI_Datatype type, MPI_Op op)
{
    return data_may_combine(send, recv, count, type, op) && data_commutes(op) &&
           data_bytes(send == MPI_IN_PLACE ? recv : send, count, type) > 0;
}

int over_sites_reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                      int root, MPI_Comm comm)
{
    const void *from = send == MPI_IN_PLACE ? recv : send;
    const struct sites *sites = NULL;

    /* what only the root has to know may be anything elsewhere */
    if (data_is_root(root, comm) &&
        (data_is_me(root, comm)
             ? reduces(send, recv, count, type, op) && data_bytes(recv, count, type) > 0
             : reduces(send, MPI_IN_PLACE, count, type, op)))
        sites = sites_of(comm, false);
    if (!sites)
        return mpich.Reduce(send, recv, count, type, op, root, comm);
    return sites_result(comm, reduce(sites, from, recv, count, type, op, root));
}

/* Each site's speaker sends its part to all others: one way between sites is all that it takes. */
static int exchange(const struct sites *sites, const void *from, void *recv, int count,
                    MPI_Datatype type, MPI_Op op)
{
    const struct plan *plan = &sites->plan;
    struct data_room room;
    struct sites_batch batch;
    size_t stride = 0;
    char *slots;
    int error = data_room_make(&room, plan->sites, count, type, &stride);

    slots = room.at;
    if (error == MPI_SUCCESS)
        error = mpich.Reduce(from, slots + (size_t)plan->mine * stride, count, type, op, 0,
                             sites->site);
    sites_batch_begin(&batch, sites, error);
    for (int s = 0; s < plan->sites; s++)
        if (s != plan->mine) {
            sites_batch_recv(&batch, slots + (size_t)s * stride, count, type, plan->first[s]);
            sites_batch_send(&batch, slots + (size_t)plan->mine * stride, count, type,
                             plan->first[s]);
        }
    error = sites_batch_end(&batch);
    if (error == MPI_SUCCESS)
        error = combine(plan, slots, stride, count, type, op);
    if (error == MPI_SUCCESS)
        error = copy(slots + (size_t)(plan->sites - 1) * stride, recv, count, type, op);
    data_room_free(&room);
    return error;
}

/* A large one crosses less often by way of one rank: 2 (sites - 1) times instead of
 * sites (sites - 1). */
static int allreduce(const struct sites *sites, const void *from, void *recv, int count,
                     MPI_Datatype type, MPI_Op op)
{
    int error;

    if (data_bytes(recv, count, type) > OVER_SITES_EXCHANGE_MAX) {
        error = reduce(sites, from, recv, count, type, op, 0);
        return bcast_over_sites(sites, recv, count, type, 0, error);
    }
    error = plan_speaks(&sites->plan) ? exchange(sites, from, recv, count, type, op)
                                      : mpich.Reduce(from, NULL, count, type, op, 0, sites->site);
    return bcast_within_site(sites, recv, count, type, 0, error);
}

int over_sites_allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm)
{
    const void *from = send == MPI_IN_PLACE ? recv : send;
    const struct sites *sites = NULL;

    if (reduces(send, recv, count, type, op) && data_bytes(recv, count, type) > 0)
        sites = sites_of(comm, true);
    if (!sites)
        return mpich.Allreduce(send, recv, count, type, op, comm);
    return sites_result(comm, allreduce(sites, from, recv, count, type, op));
}
