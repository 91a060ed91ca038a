/* All ranks start sends of 1 to 8 MB to all others before anyone posts a
   receive, pass a barrier, and receive everything in reverse order. Nothing may
   deadlock, however little the network buffers. Then pairs of ranks take
   turns in sending as much by blocking sends. */
#include "check.h"

enum { BURST = 4, MB = 1 << 20 };

static uint64_t seed_of(int from, int to, int i)
{
    return ((uint64_t)from * 64 + (uint64_t)to) * BURST + (uint64_t)i;
}

static void receive_one(char *in, int from, int i)
{
    size_t size = (size_t)MB << i;
    MPI_Status status;

    check_item = from * 10 + i;
    MPI_Recv(in, (int)size, MPI_BYTE, from, i, MPI_COMM_WORLD, &status);
    CHECK_STATUS("large message", &status, from, i, MPI_BYTE, (int)size);
    CHECK_BYTES("large message", in, size, seed_of(from, check_rank, i));
}

static void test_bursts(char *in)
{
    int n = BURST * check_size;
    MPI_Request *requests = must_alloc((size_t)n * sizeof *requests);
    char **out = must_alloc((size_t)n * sizeof *out);

    for (int k = 0; k < n; k++) {
        int to = k / BURST, i = k % BURST;
        out[k] = NULL;
        requests[k] = MPI_REQUEST_NULL;
        if (to == check_rank)
            continue;
        out[k] = must_alloc((size_t)MB << i);
        fill(out[k], (size_t)MB << i, seed_of(check_rank, to, i));
        MPI_Isend(out[k], MB << i, MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = n - 1; k >= 0; k--)
        if (k / BURST != check_rank)
            receive_one(in, k / BURST, k % BURST);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < n; k++)
        free(out[k]);
    free(out);
    free(requests);
}

/* In the first turn even ranks send to the odd ones behind them, then back. */
static void test_blocking(char *buf)
{
    int partner = check_rank ^ 1;

    if (partner >= check_size)
        return;
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < BURST; i++)
            if (check_rank % 2 == turn) {
                fill(buf, (size_t)MB << i, seed_of(check_rank, partner, i));
                MPI_Send(buf, MB << i, MPI_BYTE, partner, i, MPI_COMM_WORLD);
            } else {
                receive_one(buf, partner, i);
            }
}

int main(int argc, char **argv)
{
    char *buf;

    check_init(&argc, &argv);
    buf = must_alloc((size_t)MB << (BURST - 1));
    test_bursts(buf);
    test_bursts(buf);
    test_blocking(buf);
    free(buf);
    return check_finish("unsafe");
}
