/* MPI_Scan, where the ranks of each site follow one another: what a site makes of its ranks goes to
 * each later site. */
#include "rdevice/collectives/bcast.h"
#include "rdevice/collectives/data.h"
#include "rdevice/collectives/over_sites.h"
#include "rdevice/collectives/sites.h"

/* The last rank of a site has what all of it make together. */
static int tell_later(const struct sites *sites, const void *whole, int count, MPI_Datatype type,
                      int error)
{
    const struct plan *plan = &sites->plan;
    struct sites_batch batch;

    sites_batch_begin(&batch, sites, error);
    for (int s = plan->mine + 1; s < plan->sites; s++)
        sites_batch_send(&batch, whole, count, type, plan->first[s]);
    return sites_batch_end(&batch);
}

/* The first rank of a site: what the earlier ones make, in their order, comes to the slot 0. */
static int hear_earlier(const struct sites *sites, char *slots, size_t stride, int count,
                        MPI_Datatype type, MPI_Op op, int error)
{
    const struct plan *plan = &sites->plan;
    struct sites_batch batch;

    /* from the last to the first, so that the operand of earlier ranks is the first one */
    sites_batch_begin(&batch, sites, error);
    for (int s = 0; s < plan->mine; s++)
        sites_batch_recv(&batch, slots + (size_t)(plan->mine - 1 - s) * stride, count, type,
                         plan->first[s] + plan->size[s] - 1);
    error = sites_batch_end(&batch);
    for (int i = 1; error == MPI_SUCCESS && i < plan->mine; i++)
        error = mpich.Reduce_local(slots + (size_t)i * stride, slots, count, type, op);
    return error;
}

static int scan(const struct sites *sites, const void *send, void *recv, int count,
                MPI_Datatype type, MPI_Op op)
{
    const struct plan *plan = &sites->plan;
    struct data_room room;
    size_t stride;
    int error;

    if (plan->mine == 0) {
        error = mpich.Scan(send, recv, count, type, op, sites->site);
        return plan->rank == plan->size[0] - 1 ? tell_later(sites, recv, count, type, error)
                                               : error;
    }
    error = data_room_make(&room, plan->mine, count, type, &stride);
    if (error != MPI_SUCCESS)
        return error;
    error = mpich.Scan(send, recv, count, type, op, sites->site);
    if (plan->place[plan->rank] == plan->size[plan->mine] - 1)
        error = tell_later(sites, recv, count, type, error);
    if (plan_speaks(plan))
        error = hear_earlier(sites, room.at, stride, count, type, op, error);
    error = bcast_within_site(sites, room.at, count, type, 0, error);
    if (error == MPI_SUCCESS)
        error = mpich.Reduce_local(room.at, recv, count, type, op);
    data_room_free(&room);
    return error;
}

int over_sites_scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm)
{
    const void *from = send == MPI_IN_PLACE ? recv : send;
    const struct sites *sites = NULL;

    if (data_may_combine(send, recv, count, type, op) && data_bytes(from, count, type) > 0 &&
        data_bytes(recv, count, type) > 0)
        sites = sites_of(comm, false);
    if (!sites || !sites->plan.blocks)
        return mpich.Scan(send, recv, count, type, op, comm);
    return sites_result(comm, scan(sites, send, recv, count, type, op));
}
