/* One collective again and again: `collective_crossings NAME BYTES COUNT` calls it COUNT times and
 * once before. BYTES: of a rank's part, or of what is broadcast or reduced; doubles. How often it
 * crosses between relays, --stats says. With `timed` behind COUNT all ranks, which are on
 * one machine, begin each call at once, and it prints "NAME US", the mean time in microseconds
 * until the last of them has come back. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEETING_S 0.1 /* more than a message takes */

static int count, ranks;
static double *from, *to;

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(void)
{
    MPI_Bcast(from, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void reduce(void)
{
    MPI_Reduce(from, to, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(void)
{
    MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(void)
{
    MPI_Gather(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void scatter(void)
{
    MPI_Scatter(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void allgather(void)
{
    MPI_Allgather(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void alltoall(void)
{
    MPI_Alltoall(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void reduce_scatter(void)
{
    MPI_Reduce_scatter_block(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void scan(void)
{
    MPI_Scan(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*call)(void);
} all[] = {
    {"barrier", barrier},     {"bcast", bcast},       {"reduce", reduce},
    {"allreduce", allreduce}, {"gather", gather},     {"scatter", scatter},
    {"allgather", allgather}, {"alltoall", alltoall}, {"reduce_scatter", reduce_scatter},
    {"scan", scan},
};

static void (*named(const char *name))(void)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].call;
    fprintf(stderr, "no collective of the name %s\n", name);
    exit(2);
}

/* When all are there, rank 0 says when they go on: at the same time on all of them, since they have
 * one clock. Sets *last to the latest `ended` of all ranks at rank 0. */
static double meet(int rank, double ended, double *last)
{
    double other, go;

    *last = ended;
    for (int r = 1; r < ranks && rank == 0; r++) {
        MPI_Recv(&other, 1, MPI_DOUBLE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        *last = other > *last ? other : *last;
    }
    go = MPI_Wtime() + MEETING_S;
    for (int r = 1; r < ranks && rank == 0; r++)
        MPI_Send(&go, 1, MPI_DOUBLE, r, 0, MPI_COMM_WORLD);
    if (rank) {
        MPI_Send(&ended, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(&go, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    while (MPI_Wtime() < go)
        usleep(100);
    return go;
}

/* Seconds until the last rank has come back from a call that all begin at once, their mean. */
static double seconds(void (*call)(void), int times, int rank)
{
    double last, took = 0;
    double go = meet(rank, 0, &last);

    for (int i = 0; i < times; i++) {
        double began = go;

        call();
        go = meet(rank, MPI_Wtime(), &last);
        took += last - began;
    }
    return took / times;
}

int main(int argc, char **argv)
{
    void (*call)(void);
    int times, rank;
    bool timed;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    call = named(argv[1]);
    count = atoi(argv[2]) / (int)sizeof(double);
    times = atoi(argv[3]);
    timed = argc > 4 && times > 0;
    from = calloc((size_t)ranks * (size_t)count + 1, sizeof(double));
    to = calloc((size_t)ranks * (size_t)count + 1, sizeof(double));
    call();
    for (int i = 0; i < times && !timed; i++)
        call();
    if (timed) {
        double took = seconds(call, times, rank);

        if (rank == 0)
            printf("%s %.2f\n", argv[1], took * 1e6);
    }
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
