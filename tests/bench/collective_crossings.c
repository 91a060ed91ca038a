/* One collective again and again: `collective_crossings NAME BYTES COUNT` calls it COUNT times and
 * once before, and prints "NAME US", the mean time of one in microseconds. BYTES: of a rank's part,
 * or of what is broadcast or reduced; doubles. How often it crosses between relays, --stats says. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    {"barrier", barrier},
    {"bcast", bcast},
    {"reduce", reduce},
    {"allreduce", allreduce},
    {"gather", gather},
    {"scatter", scatter},
    {"allgather", allgather},
    {"alltoall", alltoall},
    {"reduce_scatter", reduce_scatter},
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

int main(int argc, char **argv)
{
    void (*call)(void);
    double start, took;
    int times, rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    call = named(argv[1]);
    count = atoi(argv[2]) / (int)sizeof(double);
    times = atoi(argv[3]);
    from = calloc((size_t)ranks * (size_t)count + 1, sizeof(double));
    to = calloc((size_t)ranks * (size_t)count + 1, sizeof(double));
    call();
    start = MPI_Wtime();
    for (int i = 0; i < times; i++)
        call();
    took = MPI_Wtime() - start;
    if (rank == 0 && times)
        printf("%s %.2f\n", argv[1], took / times * 1e6);
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
