/* Rank 0 sends COUNT messages of 8 bytes with distinct tags; rank 1 receives them once all have
 * come, in the order of their tags or in reverse: prints "in-order US" and "reverse US", the mean
 * of one receive. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void send_all(int count, int base)
{
    for (int i = 0; i < count; i++) {
        long value = base + i;

        MPI_Send(&value, 1, MPI_LONG, 1, base + i, MPI_COMM_WORLD);
    }
}

/* Returns the seconds that the receives took. */
static double receive_all(int count, int base, int reverse)
{
    double start = MPI_Wtime();

    for (int i = 0; i < count; i++) {
        int tag = base + (reverse ? count - 1 - i : i);
        long value;

        MPI_Recv(&value, 1, MPI_LONG, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (value != tag)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 100000;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int reverse = 0; reverse < 2; reverse++) {
        if (rank == 0)
            send_all(count, reverse * count);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
            printf("%s %.3f\n", reverse ? "reverse" : "in-order",
                   receive_all(count, reverse * count, reverse) / count * 1e6);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    usleep(200000); /* stock MPICH over UCX may hang when ranks reach MPI_Finalize at once */
    MPI_Finalize();
    return 0;
}
