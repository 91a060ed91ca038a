/* Computing of a known amount for the benchmarks: a count of cells to relax, not a time, so that a
 * run beside busy neighbours does as much as one alone. Each cell needs the one before it; a
 * compiler cannot shorten that. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <math.h>
#include <time.h>

#define WORK_CELLS 1024 /* 8 KiB: in the first cache of any core */
#define WORK_TRIAL 100000
#define WORK_TRIALS 40

struct work {
    double cells[WORK_CELLS + 2]; /* the first and the last are the neighbours' */
};

/* Relaxes so many cells, from the first one again after the last. */
static inline void work_do(struct work *w, long cells)
{
    while (cells > 0) {
        long n = cells < WORK_CELLS ? cells : WORK_CELLS;

        for (long i = 1; i <= n; i++)
            w->cells[i] = 0.5 * w->cells[i] + 0.25 * (w->cells[i - 1] + w->cells[i + 1]);
        cells -= n;
    }
}

/* Returns how many cells are relaxed in a microsecond here: the fastest of some trials. */
static inline double work_cells_per_us(void)
{
    struct work w = {.cells = {[0] = 1, [WORK_CELLS + 1] = 1}};
    double fastest = INFINITY, ns;
    struct timespec start, end;
    volatile double used;

    for (int i = 0; i < WORK_TRIALS; i++) {
        clock_gettime(CLOCK_MONOTONIC, &start);
        work_do(&w, WORK_TRIAL);
        clock_gettime(CLOCK_MONOTONIC, &end);
        ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
        fastest = ns < fastest ? ns : fastest;
    }
    used = w.cells[WORK_CELLS];
    (void)used;
    return WORK_TRIAL / (fastest / 1e3);
}

#endif
