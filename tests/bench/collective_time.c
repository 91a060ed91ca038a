/* Times barriers and 8-byte allreduces: `collective_time COUNT` prints "barrier US" and "allreduce
 * US", the mean of one in microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    double one = 1, sum, start, barrier, allreduce;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < count; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    barrier = MPI_Wtime() - start;
    start = MPI_Wtime();
    for (int i = 0; i < count; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    allreduce = MPI_Wtime() - start;
    if (rank == 0)
        printf("barrier %.2f\nallreduce %.2f\n", barrier / count * 1e6, allreduce / count * 1e6);
    usleep(200000); /* stock MPICH over UCX may hang when ranks reach MPI_Finalize at once */
    MPI_Finalize();
    return 0;
}
