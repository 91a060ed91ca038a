/* One message of BYTES from rank 0 to rank 1, whose receive is posted before: prints "big SECONDS".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 256u << 20;
    char *buffer = malloc(bytes);
    double start;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(buffer, rank, bytes);
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Request request;

        MPI_Irecv(buffer, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("big %.3f\n", MPI_Wtime() - start);
        if (buffer[bytes - 1] != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    usleep(200000); /* stock MPICH over UCX may hang when ranks reach MPI_Finalize at once */
    MPI_Finalize();
    free(buffer);
    return 0;
}
