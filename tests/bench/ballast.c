/* Ranks that hold much memory, of which they change a part again and again, and poll:
 *
 *   ballast MEGABYTES PERCENT SECONDS [huge]
 *
 * Each rank fills so many MB with bytes that cannot be compressed. Every 100 ms it changes one byte
 * in PERCENT of its blocks of 64 KiB, always the same ones, and between it asks for messages that
 * never come. "huge": the memory is asked for as transparent huge pages, else as pages of 4 KiB. At
 * the end it adds all up, and prints
 *
 *   ballast RANK CHECKSUM
 *
 * which is the same in each run with the same count of changes; they are counted, not timed, so
 * SECONDS is about. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK 65536
#define STEP_S 0.1

static uint64_t *make(size_t bytes, int huge)
{
    uint64_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t x = 88172645463325252u;

    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes / sizeof(*at); i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        at[i] = x;
    }
    return at;
}

static void change(uint64_t *at, size_t bytes, double percent)
{
    size_t blocks = (size_t)((double)(bytes / BLOCK) * percent / 100);

    for (size_t i = 0; i < blocks; i++)
        at[i * (bytes / BLOCK) / (blocks ? blocks : 1) * (BLOCK / sizeof(*at))]++;
}

/* Asks for a message that never comes. */
static void ask(double seconds)
{
    double end = MPI_Wtime() + seconds;
    MPI_Request request;
    int flag, word;

    MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request);
    do
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    while (MPI_Wtime() < end);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 100) << 20;
    double percent = argc > 2 ? atof(argv[2]) : 2.5;
    double seconds = argc > 3 ? atof(argv[3]) : 1;
    uint64_t sum = 0;
    uint64_t *at;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    at = make(bytes, argc > 4 && strcmp(argv[4], "huge") == 0);
    if (!at) {
        fprintf(stderr, "ballast: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < (int)(seconds / STEP_S); i++) {
        change(at, bytes, percent);
        ask(STEP_S);
    }
    for (size_t i = 0; i < bytes / sizeof(*at); i++)
        sum = sum * 31 + at[i];
    printf("ballast %d %016lx\n", rank, (unsigned long)sum);
    MPI_Finalize();
    return 0;
}
