/* Every rank but 0 waits in MPI_Recv while rank 0 sleeps SECONDS outside of MPI: prints
 * "idle-ranks-percent P", the CPU time that all ranks used meanwhile, as a part of one core. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 20;
    double start, cpu, used, sum;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    cpu = cpu_seconds();
    if (rank == 0) {
        sleep(seconds);
        for (int i = 1; i < size; i++)
            MPI_Send(NULL, 0, MPI_BYTE, i, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    used = cpu_seconds() - cpu;
    MPI_Reduce(&used, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("idle-ranks-percent %.3f\n", 100 * sum / (MPI_Wtime() - start));
    MPI_Finalize();
    return 0;
}
