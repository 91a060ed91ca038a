/* Messages of BYTES to and fro between ranks 0 and 1: COUNT round trips, or with SECONDS as many as
 * there is time for. Each rank receives into another buffer than it sends from. Prints the payload
 * that went both ways together:
 *
 *   volume BYTES COUNT [SECONDS]
 *
 *   part I MB_A_SECOND       of each tenth of COUNT
 *   volume MB_A_SECOND MB    of all
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 10
#define LOOKS 16 /* round trips between two looks at the clock */

/* Whether this round trip, of which the message says so, was the last one. */
static bool round_trip(char *out, char *in, int bytes, int rank, bool last)
{
    if (rank == 0) {
        out[0] = last;
        MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    }
    MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) {
        out[0] = in[0];
        MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    return in[0];
}

static double megabytes(long trips, int bytes)
{
    return 2e-6 * (double)trips * bytes;
}

/* Bytes that cannot be compressed. */
static void fill(char *to, size_t bytes)
{
    uint64_t x = 88172645463325252u;

    for (size_t i = 0; i < bytes; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        to[i] = (char)x;
    }
}

int main(int argc, char **argv)
{
    int bytes = argc > 1 ? atoi(argv[1]) : 65536;
    long count = argc > 2 ? atol(argv[2]) : 1000;
    double seconds = argc > 3 ? atof(argv[3]) : 0;
    long part = count / PARTS > 0 ? count / PARTS : 1;
    char *out = malloc((size_t)bytes + 1);
    char *in = malloc((size_t)bytes + 1);
    bool last = false;
    double start;
    double before;
    long trips = 0;
    int rank;

    fill(out, (size_t)bytes);
    memset(in, 1, (size_t)bytes);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    start = before = MPI_Wtime();
    while (!last) {
        bool late = seconds > 0 && rank == 0 && trips % LOOKS == 0 && MPI_Wtime() - start > seconds;

        last = round_trip(out, in, bytes, rank, late || (seconds <= 0 && trips + 1 >= count));
        trips++;
        if (rank == 0 && seconds <= 0 && trips % part == 0) {
            double now = MPI_Wtime();

            printf("part %ld %.1f\n", trips / part, megabytes(part, bytes) / (now - before));
            before = now;
        }
    }
    if (rank == 0)
        printf("volume %.1f %.0f\n", megabytes(trips, bytes) / (MPI_Wtime() - start),
               megabytes(trips, bytes));
    MPI_Finalize();
    free(in);
    free(out);
    return 0;
}
