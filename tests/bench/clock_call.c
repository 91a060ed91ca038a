/* What one call of a clock costs: prints lines "NAME NANOSECONDS", medians of several rounds. Run
 * as a plain process it tells what libc takes, under causeway what recording adds. With an
 * argument: waits for so many seconds by asking MPI_Wtime alone, and prints "wait SECONDS
 * READINGS". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define ROUNDS 31
#define CALLS 20000

static volatile double kept; /* so that no call is left out */

static void of_clock_gettime(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
}

static void of_gettimeofday(void)
{
    struct timeval t;

    gettimeofday(&t, NULL);
}

static void of_time(void)
{
    kept = (double)time(NULL);
}

static void of_wtime(void)
{
    kept = MPI_Wtime();
}

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The loop and the call through `call` are in it: about a nanosecond. */
static void measure(const char *name, void (*call)(void))
{
    double ns[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();

        for (int i = 0; i < CALLS; i++)
            call();
        ns[round] = (now_ns() - start) / CALLS;
    }
    qsort(ns, ROUNDS, sizeof(*ns), compare);
    printf("%s %.1f\n", name, ns[ROUNDS / 2]);
}

static void wait_for(double seconds)
{
    double until = MPI_Wtime() + seconds;
    unsigned long readings = 1;

    while (MPI_Wtime() < until)
        readings++;
    printf("wait %g %lu\n", seconds, readings);
}

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1) {
        wait_for(atof(argv[1]));
    } else if (rank == 0) {
        measure("clock_gettime", of_clock_gettime);
        measure("gettimeofday", of_gettimeofday);
        measure("time", of_time);
        measure("MPI_Wtime", of_wtime);
    }
    MPI_Finalize();
    return 0;
}
