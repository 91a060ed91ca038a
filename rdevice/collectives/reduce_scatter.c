/* MPI_Reduce_scatter and MPI_Reduce_scatter_block: what a site makes for the ranks of another
 * crosses as one message. */
#include "rdevice/collectives/data.h"
#include "rdevice/collectives/over_sites.h"
#include "rdevice/collectives/sites.h"

#include <limits.h>
#include <stdlib.h>

/* What each rank is to get. */
struct shares {
    const struct sites *sites;
    const int *counts; /* elements of each rank */
    int *offsets;      /* of each rank's, in the whole; owned */
    int *of_site;      /* elements of all ranks of each site; owned */
    int *site_counts;  /* of the ranks of this site, and ... */
    int *site_offsets; /* ... where they begin in what the site gets; both owned */
    MPI_Datatype type;
    MPI_Op op;
};

static bool share(struct shares *shares)
{
    const struct plan *plan = &shares->sites->plan;
    int offset = 0;

    shares->offsets = calloc((size_t)plan->ranks, sizeof(int));
    shares->of_site = calloc((size_t)plan->sites, sizeof(int));
    shares->site_counts = calloc((size_t)plan->size[plan->mine], sizeof(int));
    shares->site_offsets = calloc((size_t)plan->size[plan->mine], sizeof(int));
    if (!shares->offsets || !shares->of_site || !shares->site_counts || !shares->site_offsets)
        return false;
    for (int r = 0; r < plan->ranks; r++) {
        int *before = &shares->of_site[plan->site[r]];

        shares->offsets[r] = offset;
        offset += shares->counts[r];
        if (plan->site[r] == plan->mine) {
            shares->site_counts[plan->place[r]] = shares->counts[r];
            shares->site_offsets[plan->place[r]] = *before;
        }
        *before += shares->counts[r];
    }
    return true;
}

static void unshare(struct shares *shares)
{
    free(shares->offsets);
    free(shares->of_site);
    free(shares->site_counts);
    free(shares->site_offsets);
}

static long long bytes_for(const struct shares *shares, int site)
{
    int size;

    mpich.Type_size(shares->type, &size);
    return (long long)shares->of_site[site] * size;
}

/* Bytes of what the whole has for the ranks of a site. */
static int pack_for(const struct shares *shares, const void *whole, int site, char *bytes)
{
    const struct plan *plan = &shares->sites->plan;
    int room = (int)bytes_for(shares, site);
    int at = 0;
    int error = MPI_SUCCESS;

    for (int r = 0; error == MPI_SUCCESS && r < plan->ranks; r++)
        if (plan->site[r] == site && shares->counts[r])
            error =
                mpich.Pack(data_element(whole, shares->offsets[r], shares->type), shares->counts[r],
                           shares->type, bytes, room, &at, shares->sites->all);
    return error;
}

/* Bytes that a rank which speaks for its site sends and receives, one site after the other. */
struct parcels {
    char *out[CW_RELAYS_MAX];
    char *in[CW_RELAYS_MAX]; /* in[mine] is out[mine] */
};

static bool wrap(struct parcels *parcels, const struct shares *shares)
{
    const struct plan *plan = &shares->sites->plan;
    bool well = true;

    *parcels = (struct parcels){0};
    for (int s = 0; s < plan->sites; s++) {
        parcels->out[s] = malloc((size_t)bytes_for(shares, s) + 1);
        parcels->in[s] =
            s == plan->mine ? parcels->out[s] : malloc((size_t)bytes_for(shares, plan->mine) + 1);
        well = well && parcels->out[s] && parcels->in[s];
    }
    return well;
}

static void unwrap(struct parcels *parcels, const struct plan *plan)
{
    for (int s = 0; s < plan->sites; s++) {
        if (s != plan->mine)
            free(parcels->in[s]);
        free(parcels->out[s]);
    }
}

/* `error`: of this rank until now; then the parcels are none. */
static int exchange(const struct shares *shares, const struct parcels *parcels, const void *whole,
                    int error)
{
    const struct plan *plan = &shares->sites->plan;
    struct sites_batch batch;

    for (int s = 0; error == MPI_SUCCESS && s < plan->sites; s++)
        error = pack_for(shares, whole, s, parcels->out[s]);
    sites_batch_begin(&batch, shares->sites, error);
    for (int s = 0; s < plan->sites; s++) {
        if (s == plan->mine)
            continue;
        if (shares->of_site[plan->mine])
            sites_batch_recv(&batch, parcels->in[s], (int)bytes_for(shares, plan->mine), MPI_BYTE,
                             plan->first[s]);
        if (shares->of_site[s])
            sites_batch_send(&batch, parcels->out[s], (int)bytes_for(shares, s), MPI_BYTE,
                             plan->first[s]);
    }
    return sites_batch_end(&batch);
}

/* What all sites made for this one becomes the result of its ranks, at `result`. */
static int combine(const struct shares *shares, const struct parcels *parcels, void *result)
{
    const struct plan *plan = &shares->sites->plan;
    int count = shares->of_site[plan->mine];
    struct data_room room;
    size_t stride;
    int error = data_room_make(&room, 1, count, shares->type, &stride);

    for (int s = plan->sites; error == MPI_SUCCESS && s-- > 0;) {
        void *to = s == plan->sites - 1 ? result : room.at;

        error = data_unpack(parcels->in[s], bytes_for(shares, plan->mine), to, count, shares->type,
                            shares->sites->all);
        if (error == MPI_SUCCESS && to != result)
            error = mpich.Reduce_local(room.at, result, count, shares->type, shares->op);
    }
    data_room_free(&room);
    return error;
}

/* At who speaks for this site: `whole` is what the site makes for all. */
static int trade(const struct shares *shares, const void *whole, void *result, int error)
{
    struct parcels parcels;

    if (!wrap(&parcels, shares))
        error = sites_first(error, MPI_ERR_NO_MEM);
    error = exchange(shares, &parcels, whole, error);
    if (error == MPI_SUCCESS && shares->of_site[shares->sites->plan.mine])
        error = combine(shares, &parcels, result);
    unwrap(&parcels, &shares->sites->plan);
    return error;
}

static int scatter(const struct shares *shares, const void *result, void *recv)
{
    return mpich.Scatterv(result, shares->site_counts, shares->site_offsets, shares->type, recv,
                          shares->counts[shares->sites->plan.rank], shares->type, 0,
                          shares->sites->site);
}

/* `total`: elements of the whole. */
static int reduce_scatter(const struct shares *shares, const void *from, void *recv, int total)
{
    const struct plan *plan = &shares->sites->plan;
    struct data_room whole;
    struct data_room result = {0};
    size_t stride;
    int error;

    if (!plan_speaks(plan)) {
        int came;

        error = mpich.Reduce(from, NULL, total, shares->type, shares->op, 0, shares->sites->site);
        came = sites_agree(shares->sites, 0, error);
        if (came == MPI_SUCCESS)
            came = scatter(shares, NULL, recv);
        return sites_first(error, came);
    }
    error = data_room_make(&whole, 1, total, shares->type, &stride);
    if (error == MPI_SUCCESS)
        error = data_room_make(&result, 1, shares->of_site[plan->mine], shares->type, &stride);
    if (error == MPI_SUCCESS)
        error =
            mpich.Reduce(from, whole.at, total, shares->type, shares->op, 0, shares->sites->site);
    error = sites_agree(shares->sites, 0, trade(shares, whole.at, result.at, error));
    if (error == MPI_SUCCESS)
        error = scatter(shares, result.at, recv);
    data_room_free(&whole);
    data_room_free(&result);
    return error;
}

/* Elements of all ranks together; 0: MPICH's own is called. */
static int total_of(const int counts[], MPI_Comm comm)
{
    long long total = 0;
    int ranks;

    if (!counts || comm == MPI_COMM_NULL || mpich.Comm_size(comm, &ranks) != MPI_SUCCESS)
        return 0;
    for (int r = 0; r < ranks; r++) {
        if (counts[r] < 0)
            return 0;
        total += counts[r];
    }
    return total <= INT_MAX ? (int)total : 0;
}

/* `own`: elements of this rank. */
static bool fits(const void *send, const void *recv, int own, int total, MPI_Datatype type,
                 MPI_Op op)
{
    long long bytes;

    if (!data_may_combine(send, recv, total, type, op) || !data_commutes(op) ||
        (own > 0 && data_bytes(recv, own, type) == DATA_BAD))
        return false;
    bytes = data_bytes(send == MPI_IN_PLACE ? recv : send, total, type);
    return bytes > 0 && bytes <= OVER_SITES_PART_MAX;
}

static int own_of(const int counts[], MPI_Comm comm)
{
    int rank;

    return mpich.Comm_rank(comm, &rank) == MPI_SUCCESS ? counts[rank] : 0;
}

int over_sites_reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm)
{
    const void *from = send == MPI_IN_PLACE ? recv : send;
    int total = total_of(counts, comm);
    struct shares shares = {.counts = counts, .type = type, .op = op};
    int error = MPI_ERR_NO_MEM;

    if (total && fits(send, recv, own_of(counts, comm), total, type, op))
        shares.sites = sites_of(comm, true);
    if (!shares.sites)
        return mpich.Reduce_scatter(send, recv, counts, type, op, comm);
    if (share(&shares))
        error = reduce_scatter(&shares, from, recv, total);
    unshare(&shares);
    return sites_result(comm, error);
}

int over_sites_reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type,
                                    MPI_Op op, MPI_Comm comm)
{
    int ranks;
    int *counts;
    int error;

    if (count <= 0 || comm == MPI_COMM_NULL || mpich.Comm_size(comm, &ranks) != MPI_SUCCESS ||
        count > INT_MAX / ranks || !fits(send, recv, count, count * ranks, type, op) ||
        !sites_of(comm, true))
        return mpich.Reduce_scatter_block(send, recv, count, type, op, comm);
    counts = calloc((size_t)ranks, sizeof(*counts));
    if (!counts)
        return sites_result(comm, MPI_ERR_NO_MEM);
    for (int r = 0; r < ranks; r++)
        counts[r] = count;
    error = over_sites_reduce_scatter(send, recv, counts, type, op, comm);
    free(counts);
    return error;
}
