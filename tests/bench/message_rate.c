/* Messages of one byte to and fro between pairs of ranks, 2i and 2i + 1, all pairs at once, so that
 * each has one message on its way. Prints how many there were in all:
 *
 *   message_rate SECONDS
 *
 *   message_rate MESSAGES_A_SECOND
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns round trips; the even rank decides when it was the last one. */
static long trips(int rank, double seconds)
{
    double start = MPI_Wtime();
    char last = 0;
    long count = 0;

    while (!last) {
        if (rank % 2 == 0) {
            last = MPI_Wtime() - start > seconds;
            MPI_Send(&last, 1, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&(char){0}, 1, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&last, 1, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&last, 1, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD);
        }
        count++;
    }
    return count;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    double rate;
    double sum;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    rate = (double)trips(rank, seconds) / seconds; /* of the messages that this rank sends */
    MPI_Reduce(&rate, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("message_rate %.0f\n", sum);
    MPI_Finalize();
    return 0;
}
