/* Times puts of 8 bytes from rank 0 into a window of rank 1, each with its flush, while rank 1
 * waits in a barrier: `put_time COUNT` prints "put US", the mean of one in microseconds. The window
 * is memory of malloc: what stock MPICH 4.0.2 puts into a static variable or into memory of
 * MPI_Win_allocate does not get there (Debian 12, two ranks of one machine). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WINDOW_BYTES 4096

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    double *window = calloc(1, WINDOW_BYTES), start, value;
    MPI_Win win;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create(window, WINDOW_BYTES, sizeof(*window), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 1; i <= count && rank == 0; i++) {
        value = i;
        MPI_Put(&value, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, win);
        MPI_Win_flush(1, win);
    }
    if (rank == 0)
        printf("put %.3f\n", (MPI_Wtime() - start) / count * 1e6);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    if (rank == 1 && *window != count) {
        fprintf(stderr, "put_time: the last put was %g of %d\n", *window, count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    usleep(200000); /* stock MPICH over UCX may hang when ranks reach MPI_Finalize at once */
    MPI_Win_free(&win);
    MPI_Finalize();
    free(window);
    return 0;
}
