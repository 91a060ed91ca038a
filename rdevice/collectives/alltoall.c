/* MPI_Alltoall of short parts: all that the ranks of one site send to those of another crosses as
 * one message. */
#include "rdevice/collectives/bcast.h"
#include "rdevice/collectives/data.h"
#include "rdevice/collectives/over_sites.h"
#include "rdevice/collectives/sites.h"

#include <stdlib.h>
#include <string.h>

/* Who speaks for a site has, for each of its ranks, a row of parts for all ranks. Between two sites
 * goes the block of rows of the one, cut to the columns of the other. */
struct blocks {
    const struct sites *sites;
    long long size; /* bytes of a part */
    char *rows;     /* [ranks of this site][ranks], slots as in plan_slot; all three owned */
    char *out;      /* for each site: [ranks of this site][ranks of that one] */
    char *in;       /* from each site: [ranks of that one][ranks of this site] */
};

static bool begin(struct blocks *b, const struct sites *sites, long long size)
{
    size_t row = (size_t)(sites->plan.ranks * size);
    size_t rows = plan_speaks(&sites->plan) ? (size_t)sites->plan.size[sites->plan.mine] : 1;

    *b = (struct blocks){sites, size, calloc(rows, row), calloc(rows, row), calloc(rows, row)};
    return b->rows && b->out && b->in;
}

static void end(struct blocks *b)
{
    free(b->rows);
    free(b->out);
    free(b->in);
}

static char *block(char *blocks, const struct blocks *b, int site)
{
    const struct plan *plan = &b->sites->plan;

    return blocks + (long long)plan->start[site] * plan->size[plan->mine] * b->size;
}

static void cut(const struct blocks *b, int site)
{
    const struct plan *plan = &b->sites->plan;
    char *to = block(b->out, b, site);
    size_t wide = (size_t)(plan->size[site] * b->size);

    for (int p = 0; p < plan->size[plan->mine]; p++)
        memcpy(to + (size_t)p * wide,
               b->rows + ((long long)p * plan->ranks + plan->start[site]) * b->size, wide);
}

/* What came from a site becomes columns of the rows, which are now those of receivers. */
static void turn(const struct blocks *b, int site)
{
    const struct plan *plan = &b->sites->plan;
    const char *from = block(b->in, b, site);
    int receivers = plan->size[plan->mine];

    for (int p = 0; p < plan->size[site]; p++)
        for (int q = 0; q < receivers; q++)
            memcpy(b->rows + ((long long)q * plan->ranks + plan->start[site] + p) * b->size,
                   from + ((long long)p * receivers + q) * b->size, (size_t)b->size);
}

static int exchange(const struct blocks *b, int error)
{
    const struct plan *plan = &b->sites->plan;
    struct sites_batch batch;

    for (int s = 0; s < plan->sites; s++)
        cut(b, s);
    memcpy(block(b->in, b, plan->mine), block(b->out, b, plan->mine),
           (size_t)((long long)plan->size[plan->mine] * plan->size[plan->mine] * b->size));
    sites_batch_begin(&batch, b->sites, error);
    for (int s = 0; s < plan->sites; s++) {
        int bytes = (int)((long long)plan->size[s] * plan->size[plan->mine] * b->size);

        if (s == plan->mine)
            continue;
        sites_batch_recv(&batch, block(b->in, b, s), bytes, MPI_BYTE, plan->first[s]);
        sites_batch_send(&batch, block(b->out, b, s), bytes, MPI_BYTE, plan->first[s]);
    }
    error = sites_batch_end(&batch);
    for (int s = 0; error == MPI_SUCCESS && s < plan->sites; s++)
        turn(b, s);
    return error;
}

static int alltoall(struct blocks *b, const struct parts *send, const struct parts *recv)
{
    int row = (int)(b->sites->plan.ranks * b->size);
    int error = parts_pack(b->sites, b->out, b->size, send);

    /* this rank's own row goes by way of `out`, and comes by way of `in`, which are free then */
    error = sites_first(
        error, mpich.Gather(b->out, row, MPI_BYTE, b->rows, row, MPI_BYTE, 0, b->sites->site));
    if (plan_speaks(&b->sites->plan))
        error = exchange(b, error);
    error = scatter_within_site(b->sites, b->rows, b->in, row, 0, error);
    if (error == MPI_SUCCESS)
        error = parts_unpack(b->sites, b->in, b->size, recv, false);
    return error;
}

static bool is_short(long long size, MPI_Comm comm)
{
    int ranks;

    return size > 0 && size <= OVER_SITES_ALLTOALL_MAX && comm != MPI_COMM_NULL &&
           mpich.Comm_size(comm, &ranks) == MPI_SUCCESS &&
           size * ranks <= OVER_SITES_PART_MAX / ranks;
}

int over_sites_alltoall(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                        int recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
    long long size = data_bytes(recv, recv_count, recv_type);
    const struct parts to = {recv, recv_count, recv_type};
    bool in_place = send == MPI_IN_PLACE;
    const struct parts from = in_place ? to : (struct parts){(void *)send, send_count, send_type};
    const struct sites *sites = NULL;
    struct blocks b;
    int error;

    if (is_short(size, comm) && (in_place || (data_may_be_both(send, send_count, send_type, recv,
                                                               recv_count, recv_type, 0) &&
                                              data_bytes(send, send_count, send_type) == size)))
        sites = sites_of(comm, true);
    if (!sites)
        return mpich.Alltoall(send, send_count, send_type, recv, recv_count, recv_type, comm);
    error = MPI_ERR_NO_MEM;
    if (begin(&b, sites, size))
        error = alltoall(&b, &from, &to);
    end(&b);
    return sites_result(comm, error);
}
