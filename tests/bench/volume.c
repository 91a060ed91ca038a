/* Messages of BYTES to and fro between ranks 0 and 1: COUNT round trips, or with SECONDS as many as
 * there is time for. Each rank receives into another buffer than it sends from. Prints the payload
 * that went both ways together:
 *
 *   volume BYTES COUNT [SECONDS]
 *
 *   part I MB_A_SECOND       of each tenth of COUNT, or of SECONDS
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

struct part {
    int number;
    double start;
    long trips; /* before it */
};

static void end_part(struct part *part, double now, long trips, int bytes)
{
    printf("part %d %.4f\n", ++part->number,
           megabytes(trips - part->trips, bytes) / (now - part->start));
    part->start = now;
    part->trips = trips;
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
    long trips_of_part = count / PARTS > 0 ? count / PARTS : 1;
    char *out = malloc((size_t)bytes + 1);
    char *in = malloc((size_t)bytes + 1);
    bool last = false;
    struct part part = {.number = 0};
    double start;
    long trips = 0;
    int rank;

    fill(out, (size_t)bytes);
    memset(in, 1, (size_t)bytes);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    start = part.start = MPI_Wtime();
    while (!last) {
        double now = seconds > 0 && rank == 0 && trips % LOOKS == 0 ? MPI_Wtime() : start;

        if (now - start > seconds * (part.number + 1) / PARTS)
            end_part(&part, now, trips, bytes);
        last = round_trip(out, in, bytes, rank,
                          seconds > 0 ? part.number == PARTS : trips + 1 >= count);
        trips++;
        if (rank == 0 && seconds <= 0 && trips % trips_of_part == 0)
            end_part(&part, MPI_Wtime(), trips, bytes);
    }
    if (rank == 0)
        printf("volume %.4f %.0f\n", megabytes(trips, bytes) / (MPI_Wtime() - start),
               megabytes(trips, bytes));
    MPI_Finalize();
    free(in);
    free(out);
    return 0;
}
