/* A program as solvers are: each step exchanges halos with both neighbours of a ring of ranks by
 * Irecv, Isend and Waitall, computes, and every few steps agrees on a residual.
 *   stencil STEPS CELLS BYTES [EVERY [UNEVEN]]    prints "stencil SECONDS"
 *   stencil                                       prints how many cells take a microsecond here
 * CELLS: to compute in a step, BYTES: of a halo (8 or more), EVERY: steps between two
 * Allreduces (0: none). UNEVEN: percent that the shares of the ranks differ by from CELLS, at most
 * 100; the shares go round from step to step, and the mean of all is CELLS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "work.h"

struct stencil {
    struct work work;
    int rank, size;
    int left, right; /* neighbours */
    int bytes;       /* of a halo */
    double *in[2];   /* halos from the left and from the right */
    double *out[2];  /* for them */
};

static void *must_alloc(size_t bytes)
{
    void *p = calloc(1, bytes);

    if (!p) {
        fprintf(stderr, "stencil: no memory for a halo of %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return p;
}

static void stencil_open(struct stencil *s, int bytes)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->size);
    s->left = (s->rank + s->size - 1) % s->size;
    s->right = (s->rank + 1) % s->size;
    s->bytes = bytes;
    for (int i = 0; i < 2; i++) {
        s->in[i] = must_alloc((size_t)bytes);
        s->out[i] = must_alloc((size_t)bytes);
    }
    for (int i = 0; i < WORK_CELLS + 2; i++)
        s->work.cells[i] = s->rank + i % 7;
}

static void stencil_close(struct stencil *s)
{
    for (int i = 0; i < 2; i++) {
        free(s->in[i]);
        free(s->out[i]);
    }
}

/* The tag tells which way a halo goes: with two ranks both neighbours are one. */
static void exchange(struct stencil *s)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];

    s->out[0][0] = s->work.cells[1];
    s->out[1][0] = s->work.cells[WORK_CELLS];
    MPI_Irecv(s->in[0], s->bytes, MPI_BYTE, s->left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(s->in[1], s->bytes, MPI_BYTE, s->right, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(s->out[0], s->bytes, MPI_BYTE, s->left, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(s->out[1], s->bytes, MPI_BYTE, s->right, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
    s->work.cells[0] = s->in[0][0];
    s->work.cells[WORK_CELLS + 1] = s->in[1][0];
}

/* The cells of this rank in a step */
static long share(const struct stencil *s, int step, long cells, int uneven)
{
    int place = (s->rank + step) % s->size; /* 0: the least, size - 1: the most */

    if (s->size == 1)
        return cells;
    return cells + cells * uneven * (2 * place - (s->size - 1)) / (s->size - 1) / 100;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 0, bytes = argc > 3 ? atoi(argv[3]) : 8;
    int every = argc > 4 ? atoi(argv[4]) : 0, uneven = argc > 5 ? atoi(argv[5]) : 0;
    long cells = argc > 2 ? atol(argv[2]) : 0;
    double start, residual = 0;
    struct stencil s;

    if (argc < 4 || bytes < (int)sizeof(double)) {
        printf("%.0f\n", work_cells_per_us());
        return 0;
    }
    MPI_Init(&argc, &argv);
    stencil_open(&s, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < steps; i++) {
        exchange(&s);
        work_do(&s.work, share(&s, i, cells, uneven));
        if (every > 0 && i % every == 0)
            MPI_Allreduce(&s.work.cells[WORK_CELLS], &residual, 1, MPI_DOUBLE, MPI_MAX,
                          MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (s.rank == 0)
        printf("stencil %.6f\n", MPI_Wtime() - start);
    usleep(200000); /* stock MPICH over UCX may hang when ranks reach MPI_Finalize at once */
    MPI_Finalize();
    stencil_close(&s);
    return 0;
}
