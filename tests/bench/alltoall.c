/* COUNT times each rank sends BYTES to each other one: prints "alltoall US", the mean of one. What
 * came is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 10;
    int bytes = argc > 2 ? atoi(argv[2]) : 1024;
    char *from, *to;
    double start;
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = malloc((size_t)ranks * (size_t)bytes);
    to = calloc((size_t)ranks, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        memset(from, rank + i, (size_t)ranks * (size_t)bytes);
        MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (int peer = 0; peer < ranks; peer++)
            if (to[(size_t)peer * (size_t)bytes] != (char)(peer + i))
                MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0)
        printf("alltoall %.1f\n", (MPI_Wtime() - start) / count * 1e6);
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
