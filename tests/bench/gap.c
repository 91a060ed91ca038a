/* Round trips of a byte between ranks 0 and 1 for SECONDS: prints "gap SECONDS TIME", how long the
 * longest one took, and when it ended, in seconds since 1970. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double time_of_day(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void answer(void)
{
    char more = 1;

    while (more) {
        MPI_Recv(&more, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&more, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void ask(double seconds)
{
    double began = time_of_day(), before = began, longest = 0, ended = 0, now;
    char more = 1, back;

    while (more) {
        more = before - began < seconds;
        MPI_Send(&more, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&back, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        now = time_of_day();
        if (now - before > longest) {
            longest = now - before;
            ended = now;
        }
        before = now;
    }
    printf("gap %.6f %.6f\n", longest, ended);
}

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        ask(argc > 1 ? atof(argv[1]) : 10);
    else if (rank == 1)
        answer();
    MPI_Finalize();
    return 0;
}
