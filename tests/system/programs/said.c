/* What rank 0 prints depends on the order in which the others' messages come, of which it tells at
   the end what it was: a line that was printed and then happened otherwise is found.
     said [COUNT]   (4000)
   Prints "said I RANK" for each of COUNT messages, as it comes, and then "sum S": over all of them,
   S = (31 S + RANK) modulo 1000003. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GO = 1, WAIT_US = 1500, MODULUS = 1000003 };

static void hear(int count, int ranks)
{
    long sum = 0;

    for (int i = 0; i < count; i++) {
        MPI_Status status;
        int which;

        MPI_Recv(&which, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
        printf("said %d %d\n", i, status.MPI_SOURCE);
        sum = (31 * sum + status.MPI_SOURCE) % MODULUS;
    }
    for (int rank = 1; rank < ranks; rank++)
        MPI_Send(NULL, 0, MPI_INT, rank, GO, MPI_COMM_WORLD);
    printf("sum %ld\n", sum);
}

/* The message I is of rank 1 + I modulo (ranks - 1). */
static void say(int count, int rank, int ranks)
{
    for (int i = rank - 1; i < count; i += ranks - 1) {
        usleep((useconds_t)(rand() % WAIT_US));
        MPI_Send(&i, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 4000;
    int rank, ranks;

    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    srand((unsigned)rank);
    if (rank == 0)
        hear(count, ranks);
    else
        say(count, rank, ranks);
    MPI_Finalize();
    return 0;
}
