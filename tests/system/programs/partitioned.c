/* Partitioned sends and receives (MPI 4.0, chapter 4) around a ring, again and again with the same
   requests: partitions of 1 byte to 1 MB, more or fewer at the receiver than at the sender, made
   ready in turn and backwards. */
#include "check.h"

enum { MAX_SIZE = 1 << 20, PARTS_MAX = 8, ROUNDS = 6, TAG = 7 };

static const int sizes[] = {1, 1000, 8000, 8193, 70000, MAX_SIZE};
static const int parts_sent[] = {1, 4, 8};
static const int parts_received[] = {1, 8, 4};
static char *out, *in;

static void make_ready(MPI_Request *send, int parts, int backwards)
{
    for (int i = 0; i < parts; i++)
        MPI_Pready(backwards ? parts - 1 - i : i, *send);
}

/* All of it, partition by partition. */
static void wait_for(MPI_Request *receive, int parts)
{
    for (int i = 0; i < parts; i++)
        for (int arrived = 0; !arrived;)
            MPI_Parrived(*receive, i, &arrived);
    MPI_Wait(receive, MPI_STATUS_IGNORE);
}

static void ring(int size, int sent, int received)
{
    int right = (check_rank + 1) % check_size;
    int left = (check_rank + check_size - 1) % check_size;
    size_t total = (size_t)size * PARTS_MAX;
    MPI_Request send, receive;

    check_item = size;
    MPI_Psend_init(out, sent, (MPI_Count)(total / (size_t)sent), MPI_BYTE, right, TAG,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(in, received, (MPI_Count)(total / (size_t)received), MPI_BYTE, left, TAG,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    for (int round = 0; round < ROUNDS; round++) {
        fill(out, total, (uint64_t)(check_rank * 100 + round));
        guard(in, total);
        MPI_Start(&receive);
        MPI_Start(&send);
        make_ready(&send, sent, round % 2);
        wait_for(&receive, received);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        CHECK_BYTES("received", in, total, (uint64_t)(left * 100 + round));
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    out = must_alloc((size_t)MAX_SIZE * PARTS_MAX);
    in = must_alloc((size_t)MAX_SIZE * PARTS_MAX);
    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(*sizes)); i++)
        for (int j = 0; j < (int)(sizeof(parts_sent) / sizeof(*parts_sent)); j++)
            ring(sizes[i], parts_sent[j], parts_received[j]);
    free(out);
    free(in);
    return check_finish("partitioned");
}
