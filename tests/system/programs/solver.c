/* Jacobi's method on a square grid that is cut into rectangles, one a rank: halos by Irecv, Isend
   and Waitall, then Allreduce of the residual, as solvers of nearest-neighbour problems do it.
     solver [SIZE [ITERATIONS [EVERY [time]]]]   (128 200 0)
   SIZE is the edge of the grid. The residual is printed every EVERY iterations and the checksum at
   the end; 0: nothing of it. "time" prints how long the iterations took. The values of the cells do
   not depend on the number of ranks: up to SERIAL_CELLS cell updates rank 0 does it all again alone
   and compares. */
#include "check.h"

#include <math.h>

#define SERIAL_CELLS 50e6

enum { NORTH, SOUTH, WEST, EAST, SIDES };

/* A rectangle of the grid with a border of one cell around it: rows + 2 times columns + 2 cells. */
struct part {
    int size;             /* edge of the whole grid */
    int row0, column0;    /* of the first cell in the whole grid */
    int rows, columns;    /* of cells that are ours */
    int neighbour[SIDES]; /* ranks, or MPI_PROC_NULL */
    double *now, *next;   /* cells before and after an iteration */
    MPI_Comm comm;        /* of the process grid */
    MPI_Datatype column;  /* one column, without the border */
};

static double *cell(const struct part *p, double *cells, int row, int column)
{
    return &cells[(size_t)row * (size_t)(p->columns + 2) + (size_t)column];
}

/* --- one rectangle ----------------------------------------------------------------- */

/* A cell at rest: the border of the whole grid stays as it is for ever. */
static double at_first(const struct part *p, int row, int column)
{
    int last = p->size + 1;

    if (row == 0)
        return 100.0 * column / last;
    if (column == 0)
        return 50.0 * row / last;
    return row == last || column == last ? 10.0 : 0.0;
}

static void part_alloc(struct part *p)
{
    size_t cells = (size_t)(p->rows + 2) * (size_t)(p->columns + 2);

    p->now = must_alloc(cells * sizeof(double));
    p->next = must_alloc(cells * sizeof(double));
    for (int i = 0; i < p->rows + 2; i++)
        for (int j = 0; j < p->columns + 2; j++)
            *cell(p, p->now, i, j) = at_first(p, p->row0 + i, p->column0 + j);
    memcpy(p->next, p->now, cells * sizeof(double));
}

static void part_free(struct part *p)
{
    free(p->now);
    free(p->next);
}

/* One iteration. Returns the largest change: exact, in whatever order ranks add to it. */
static double sweep(struct part *p)
{
    double most = 0, *swap;

    for (int i = 1; i <= p->rows; i++) {
        const double *up = cell(p, p->now, i - 1, 0), *here = cell(p, p->now, i, 0);
        const double *down = cell(p, p->now, i + 1, 0);
        double *to = cell(p, p->next, i, 0);

        for (int j = 1; j <= p->columns; j++) {
            double change;

            to[j] = 0.25 * ((up[j] + down[j]) + (here[j - 1] + here[j + 1]));
            change = fabs(to[j] - here[j]);
            most = change > most ? change : most;
        }
    }
    swap = p->now;
    p->now = p->next;
    p->next = swap;
    return most;
}

/* A sum over cells in which the place of each counts, but not the order of adding. */
static uint64_t checksum(const struct part *p)
{
    uint64_t sum = 0, bits;

    for (int i = 1; i <= p->rows; i++)
        for (int j = 1; j <= p->columns; j++) {
            memcpy(&bits, cell(p, p->now, i, j), sizeof bits);
            sum += pattern_word(bits, (uint64_t)(p->row0 + i) * (uint64_t)(p->size + 2) +
                                          (uint64_t)(p->column0 + j));
        }
    return sum;
}

/* --- ranks ------------------------------------------------------------------------- */

/* Cells from and up to which the index-th of count ranks has, of size. */
static int cut(int size, int count, int index)
{
    return (int)((long)size * index / count);
}

static void part_open(struct part *p, int size)
{
    int dims[2] = {0, 0}, wraps[2] = {0, 0}, at[2], me;

    MPI_Dims_create(check_size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, wraps, 0, &p->comm);
    MPI_Comm_rank(p->comm, &me);
    MPI_Cart_coords(p->comm, me, 2, at);
    MPI_Cart_shift(p->comm, 0, 1, &p->neighbour[NORTH], &p->neighbour[SOUTH]);
    MPI_Cart_shift(p->comm, 1, 1, &p->neighbour[WEST], &p->neighbour[EAST]);
    p->size = size;
    p->row0 = cut(size, dims[0], at[0]);
    p->rows = cut(size, dims[0], at[0] + 1) - p->row0;
    p->column0 = cut(size, dims[1], at[1]);
    p->columns = cut(size, dims[1], at[1] + 1) - p->column0;
    MPI_Type_vector(p->rows, 1, p->columns + 2, MPI_DOUBLE, &p->column);
    MPI_Type_commit(&p->column);
    part_alloc(p);
}

static void part_close(struct part *p)
{
    MPI_Type_free(&p->column);
    MPI_Comm_free(&p->comm);
    part_free(p);
}

/* The tag is the side of the receiver that the cells come in from. */
static void exchange(struct part *p)
{
    MPI_Request requests[2 * SIDES];
    int n = 0;

    MPI_Irecv(cell(p, p->now, 0, 1), p->columns, MPI_DOUBLE, p->neighbour[NORTH], NORTH, p->comm,
              &requests[n++]);
    MPI_Irecv(cell(p, p->now, p->rows + 1, 1), p->columns, MPI_DOUBLE, p->neighbour[SOUTH], SOUTH,
              p->comm, &requests[n++]);
    MPI_Irecv(cell(p, p->now, 1, 0), 1, p->column, p->neighbour[WEST], WEST, p->comm,
              &requests[n++]);
    MPI_Irecv(cell(p, p->now, 1, p->columns + 1), 1, p->column, p->neighbour[EAST], EAST, p->comm,
              &requests[n++]);
    MPI_Isend(cell(p, p->now, 1, 1), p->columns, MPI_DOUBLE, p->neighbour[NORTH], SOUTH, p->comm,
              &requests[n++]);
    MPI_Isend(cell(p, p->now, p->rows, 1), p->columns, MPI_DOUBLE, p->neighbour[SOUTH], NORTH,
              p->comm, &requests[n++]);
    MPI_Isend(cell(p, p->now, 1, 1), 1, p->column, p->neighbour[WEST], EAST, p->comm,
              &requests[n++]);
    MPI_Isend(cell(p, p->now, 1, p->columns), 1, p->column, p->neighbour[EAST], WEST, p->comm,
              &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static double solve(struct part *p, int iterations, int every)
{
    double mine, residual = 0;

    for (int i = 1; i <= iterations; i++) {
        exchange(p);
        mine = sweep(p);
        MPI_Allreduce(&mine, &residual, 1, MPI_DOUBLE, MPI_MAX, p->comm);
        if (check_rank == 0 && every > 0 && i % every == 0) {
            printf("iteration %d: residual %.15e\n", i, residual);
            fflush(stdout);
        }
    }
    return residual;
}

static void compare_with_serial(int size, int iterations, double residual, uint64_t sum)
{
    struct part whole = {.size = size, .rows = size, .columns = size};
    double change = 0;

    if (check_rank != 0 || (double)size * size * iterations > SERIAL_CELLS)
        return;
    part_alloc(&whole);
    for (int i = 0; i < iterations; i++)
        change = sweep(&whole);
    CHECK("residual as of one process", 1, memcmp(&change, &residual, sizeof change) == 0);
    CHECK("checksum as of one process", checksum(&whole), sum);
    part_free(&whole);
}

int main(int argc, char **argv)
{
    int size = argc > 1 ? atoi(argv[1]) : 128, iterations = argc > 2 ? atoi(argv[2]) : 200;
    int every = argc > 3 ? atoi(argv[3]) : 0, timed = argc > 4 && strcmp(argv[4], "time") == 0;
    double residual, start;
    uint64_t mine, all = 0;
    struct part p;

    check_init(&argc, &argv);
    if (size < check_size || iterations < 0) {
        fprintf(stderr, "solver: expected a grid of at least %d cells a side\n", check_size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    part_open(&p, size);
    start = MPI_Wtime();
    residual = solve(&p, iterations, every);
    mine = checksum(&p);
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (check_rank == 0 && timed)
        printf("time %.6f s, %d iterations of %d x %d\n", MPI_Wtime() - start, iterations, size,
               size);
    if (check_rank == 0 && every > 0)
        printf("checksum %016llx\n", (unsigned long long)all);
    compare_with_serial(size, iterations, residual, all);
    part_close(&p);
    return check_finish("solver");
}
