/* COUNT round trips of BYTES between ranks 0 and 1: prints "pingpong US", one way. For counting
 * system calls and allocations a message, without NetPIPE's calibration around it. A third
 * argument: "apart": what comes goes to a buffer of its own; "random": of bytes that no tunnel can
 * pack. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 100000;
    int bytes = argc > 2 ? atoi(argv[2]) : 1;
    char *buffer = calloc((size_t)bytes + 1, 1);
    const char *how = argc > 3 ? argv[3] : "";
    char *into = strcmp(how, "apart") == 0 ? calloc((size_t)bytes + 1, 1) : buffer;
    double start;
    int rank;

    /* zeros are copied faster, out of one page of the kernel's, and written to memory faster */
    memset(buffer, 1, (size_t)bytes);
    for (int i = 0; i < bytes && strcmp(how, "random") == 0; i++)
        buffer[i] = (char)rand();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        if (rank == 0)
            MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        if (rank < 2)
            MPI_Recv(into, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("pingpong %.3f\n", (MPI_Wtime() - start) / count / 2 * 1e6);
    usleep(200000); /* stock MPICH over UCX may hang when ranks reach MPI_Finalize at once */
    MPI_Finalize();
    if (into != buffer)
        free(into);
    free(buffer);
    return 0;
}
