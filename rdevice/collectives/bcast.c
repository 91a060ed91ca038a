#include "rdevice/collectives/bcast.h"
#include "rdevice/collectives/data.h"
#include "rdevice/collectives/over_sites.h"

static int meet(const struct sites *sites)
{
    const struct plan *plan = &sites->plan;
    struct sites_batch batch;

    sites_batch_begin(&batch, sites);
    for (int s = 0; s < plan->sites; s++)
        if (s != plan->mine) {
            sites_batch_recv(&batch, NULL, 0, MPI_BYTE, plan->first[s]);
            sites_batch_send(&batch, NULL, 0, MPI_BYTE, plan->first[s]);
        }
    return sites_batch_end(&batch);
}

int over_sites_barrier(MPI_Comm comm)
{
    const struct sites *sites = sites_of(comm);
    char in = 0;
    char out = 0;
    int error;

    if (!sites)
        return mpich.Barrier(comm);
    error = mpich.Reduce(&in, &out, 1, MPI_BYTE, MPI_BOR, 0, sites->site);
    if (error == MPI_SUCCESS && plan_speaks(&sites->plan))
        error = meet(sites);
    if (error == MPI_SUCCESS)
        error = mpich.Bcast(&out, 1, MPI_BYTE, 0, sites->site);
    return sites_result(comm, error);
}

int bcast_over_sites(const struct sites *sites, void *buffer, int count, MPI_Datatype type,
                     int root)
{
    const struct plan *plan = &sites->plan;
    int speaker = plan_speaker(plan, plan->mine, root);
    struct sites_batch batch;
    int error;

    sites_batch_begin(&batch, sites);
    for (int s = 0; plan->rank == root && s < plan->sites; s++)
        if (s != plan->mine)
            sites_batch_send(&batch, buffer, count, type, plan->first[s]);
    if (plan->rank == speaker && plan->rank != root)
        sites_batch_recv(&batch, buffer, count, type, root);
    error = sites_batch_end(&batch);
    if (error != MPI_SUCCESS)
        return error;
    return mpich.Bcast(buffer, count, type, plan->place[speaker], sites->site);
}

int over_sites_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    const struct sites *sites = NULL;

    if (data_is_root(root, comm) && data_bytes(buffer, count, type) > 0)
        sites = sites_of(comm);
    if (!sites)
        return mpich.Bcast(buffer, count, type, root, comm);
    return sites_result(comm, bcast_over_sites(sites, buffer, count, type, root));
}
