/* Times barriers, 8-byte allreduces, and alltoalls of 8 bytes for each rank: `collective_time
 * COUNT` prints "barrier US", "allreduce US" and "alltoall US", the mean of one in microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    double one = 1, sum, start, barrier, allreduce, alltoall, *from, *to;
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc((size_t)ranks, sizeof(*from));
    to = calloc((size_t)ranks, sizeof(*to));
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < count; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    barrier = MPI_Wtime() - start;
    start = MPI_Wtime();
    for (int i = 0; i < count; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    allreduce = MPI_Wtime() - start;
    start = MPI_Wtime();
    for (int i = 0; i < count; i++)
        MPI_Alltoall(from, 1, MPI_DOUBLE, to, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    alltoall = MPI_Wtime() - start;
    if (rank == 0)
        printf("barrier %.2f\nallreduce %.2f\nalltoall %.2f\n", barrier / count * 1e6,
               allreduce / count * 1e6, alltoall / count * 1e6);
    usleep(200000); /* stock MPICH over UCX may hang when ranks reach MPI_Finalize at once */
    MPI_Finalize();
    free(from);
    free(to);
    return 0;
}
