/* Rank 0 sends rank 1 messages of 64 KiB that it does not want yet, COUNT of them.

     flood COUNT waits   rank 1 wants one of rank 2 first, of 20 MiB, and that comes later; then all
                         of them. Its memory grows by GROWTH MiB at most until then.
     flood COUNT stuck   rank 1 wants one that rank 0 sends behind them, and waits for it
     flood COUNT polls   ... and looks for it again and again
     flood COUNT both    rank 0 and rank 1 send each other as many, and receive afterwards
     flood COUNT gathers SIZE...
                         all send rank 0 as many of each SIZE, and then one that it waits for; its
                         memory grows by GROWTH MiB at most. Then it receives them. */
#include "check.h"

#include <unistd.h>

enum { SIZE = 64 << 10, LARGE = 20 << 20, GROWTH = 24, LATE_S = 2 };
enum { TAG_FLOOD = 1, TAG_WANTED };

static int count;
static unsigned char *buffer;

static void flood(int to)
{
    for (int i = 0; i < count; i++) {
        fill(buffer, SIZE, (uint64_t)i);
        MPI_Send(buffer, SIZE, MPI_BYTE, to, TAG_FLOOD, MPI_COMM_WORLD);
    }
}

static void receive(int from)
{
    for (int i = 0; i < count; i++) {
        check_item = i;
        MPI_Recv(buffer, SIZE, MPI_BYTE, from, TAG_FLOOD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_BYTES("message", buffer, SIZE, (uint64_t)i);
    }
}

/* Of this process; what it has mapped of files and other processes' is not counted. */
static long mebibytes(void)
{
    long all = 0, resident = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%ld %ld %ld", &all, &resident, &shared) != 3)
        MPI_Abort(MPI_COMM_WORLD, 98);
    fclose(f);
    return (resident - shared) * sysconf(_SC_PAGESIZE) >> 20;
}

static void wanted(int from, int size)
{
    MPI_Recv(buffer, size, MPI_BYTE, from, TAG_WANTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void waits(void)
{
    long before;

    fill(buffer, LARGE, 0);
    if (check_rank == 0)
        flood(1);
    if (check_rank == 2) {
        sleep(LATE_S);
        MPI_Send(buffer, LARGE, MPI_BYTE, 1, TAG_WANTED, MPI_COMM_WORLD);
    }
    if (check_rank != 1)
        return;
    before = mebibytes();
    wanted(2, LARGE);
    CHECK("grows little", 1, mebibytes() - before <= GROWTH);
    receive(0);
}

static void stuck(int polls)
{
    int found = 0;

    if (check_rank == 0) {
        flood(1);
        MPI_Send(buffer, 1, MPI_BYTE, 1, TAG_WANTED, MPI_COMM_WORLD);
    }
    while (check_rank == 1 && polls && !found)
        MPI_Iprobe(0, TAG_WANTED, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (check_rank == 1) {
        wanted(0, 1);
        receive(0);
    }
}

static void both(void)
{
    if (check_rank > 1)
        return;
    flood(1 - check_rank);
    receive(1 - check_rank);
}

/* Odd messages are synchronous ones, begun before and ended afterwards. */
static void send_all(int size)
{
    MPI_Request *requests = must_alloc((size_t)count * sizeof(*requests));
    unsigned char *all = must_alloc((size_t)count * (size_t)size);

    for (int i = 0; i < count; i++) {
        unsigned char *at = all + (size_t)i * (size_t)size;

        fill(at, (size_t)size, (uint64_t)(check_rank + i));
        (i & 1 ? MPI_Issend : MPI_Isend)(at, size, MPI_BYTE, 0, TAG_FLOOD, MPI_COMM_WORLD,
                                         &requests[i]);
    }
    MPI_Send(buffer, 1, MPI_BYTE, 0, TAG_WANTED, MPI_COMM_WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(all);
    free(requests);
}

/* Every third is found by a probe, and taken out. */
static void receive_one(int from, int size, int i)
{
    MPI_Message message;
    MPI_Status status;

    check_item = i;
    if (i % 3 > 0) {
        MPI_Recv(buffer, size, MPI_BYTE, from, TAG_FLOOD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        int bytes;

        MPI_Mprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        CHECK("bytes", size, bytes);
        MPI_Mrecv(buffer, size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
    CHECK_BYTES("message", buffer, (size_t)size, (uint64_t)(from + i));
}

static void gathers(int size)
{
    long before = mebibytes();

    if (check_rank > 0) {
        send_all(size);
        return;
    }
    for (int from = 1; from < check_size; from++)
        wanted(from, 1);
    CHECK("grows little", 1, mebibytes() - before <= GROWTH);
    for (int i = 0; i < count; i++)
        for (int from = check_size - 1; from > 0; from--)
            receive_one(from, size, i);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    count = argc > 1 ? atoi(argv[1]) : 0;
    buffer = must_alloc(LARGE);
    if (argc > 2 && strcmp(argv[2], "waits") == 0)
        waits();
    else if (argc > 2 && strcmp(argv[2], "both") == 0)
        both();
    else if (argc > 3 && strcmp(argv[2], "gathers") == 0)
        for (int i = 3; i < argc; i++)
            gathers(atoi(argv[i]));
    else
        stuck(argc > 2 && strcmp(argv[2], "polls") == 0);
    return check_finish("flood");
}
