/* MPI_Probe, Iprobe, Mprobe, Improbe, Mrecv and Imrecv around a ring, with and
   without wildcards, of small and large messages; counts from the probe's
   status; a message taken by Mprobe is out of reach of other receives. */
#include "check.h"

enum { MAX_SIZE = 3 << 20, SLACK = 32, WAYS = 6 };

static const int sizes[] = {0, 1, 100, 5000, 20000, 70000, 1000000, MAX_SIZE};
static const int n_sizes = sizeof sizes / sizeof *sizes;
static int left, right;
static char *out, *in;

/* Waits in one of WAYS ways until a message is there, and receives it. */
static void take(int way, int source, int tag, MPI_Status *probed, MPI_Status *received)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request request;
    int flag = 0, count;

    if (way == 0)
        MPI_Probe(source, tag, MPI_COMM_WORLD, probed);
    else if (way == 1)
        while (!flag)
            MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, probed);
    else if (way <= 3)
        MPI_Mprobe(source, tag, MPI_COMM_WORLD, &message, probed);
    else
        while (!flag)
            MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, &message, probed);
    MPI_Get_count(probed, MPI_BYTE, &count);
    if (way <= 1) {
        MPI_Recv(in, count, MPI_BYTE, probed->MPI_SOURCE, probed->MPI_TAG, MPI_COMM_WORLD,
                 received);
    } else if (way % 2 == 0) {
        MPI_Mrecv(in, count, MPI_BYTE, &message, received);
    } else {
        MPI_Imrecv(in, count, MPI_BYTE, &message, &request);
        MPI_Wait(&request, received);
    }
    CHECK("message handle", 1, message == MPI_MESSAGE_NULL);
}

static void one_message(int way, int size, int wild)
{
    int tag = way * 10 + wild, source = wild & 1 ? MPI_ANY_SOURCE : left;
    uint64_t seed = (uint64_t)(size * 100 + tag);
    MPI_Status probed, received;
    MPI_Request request;

    fill(out, (size_t)size, seed + (uint64_t)check_rank);
    guard(in, (size_t)size + SLACK);
    MPI_Isend(out, size, MPI_BYTE, right, tag, MPI_COMM_WORLD, &request);
    take(way, source, wild & 2 ? MPI_ANY_TAG : tag, &probed, &received);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_STATUS("probe", &probed, left, tag, MPI_BYTE, size);
    CHECK_STATUS("receive after probe", &received, left, tag, MPI_BYTE, size);
    CHECK_BYTES("receive after probe", in, (size_t)size, seed + (uint64_t)left);
    CHECK_GUARDED("behind the message", in + size, SLACK);
}

/* Several waiting messages with different tags are probed last tag first. */
static void test_reverse_tags(void)
{
    enum { N = 20, EACH = 500 };
    MPI_Request requests[N];
    MPI_Status status;

    for (int i = 0; i < N; i++) {
        fill(out + i * EACH, EACH, (uint64_t)(check_rank * N + i));
        MPI_Isend(out + i * EACH, EACH - i, MPI_BYTE, right, 100 + i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = N - 1; i >= 0; i--) {
        check_item = i;
        MPI_Probe(MPI_ANY_SOURCE, 100 + i, MPI_COMM_WORLD, &status);
        CHECK_STATUS("probe, last tag first", &status, left, 100 + i, MPI_BYTE, EACH - i);
        MPI_Recv(in, EACH, MPI_BYTE, left, 100 + i, MPI_COMM_WORLD, &status);
        CHECK_STATUS("last tag first", &status, left, 100 + i, MPI_BYTE, EACH - i);
        CHECK_BYTES("last tag first", in, (size_t)(EACH - i), (uint64_t)(left * N + i));
    }
    MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
}

/* Takes the first of three equal messages away, and receives it last. */
static void test_taken_message(int size)
{
    MPI_Request requests[3];
    MPI_Message message;
    MPI_Status status;
    int order[3] = {1, 2, 0};

    for (int i = 0; i < 3; i++) {
        fill(out + i * size, (size_t)size, (uint64_t)(check_rank * 3 + i));
        MPI_Isend(out + i * size, size, MPI_BYTE, right, 7, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Mprobe(left, 7, MPI_COMM_WORLD, &message, &status);
    CHECK_STATUS("mprobe", &status, left, 7, MPI_BYTE, size);
    for (int i = 0; i < 3; i++) {
        guard(in, (size_t)size);
        if (i < 2)
            MPI_Recv(in, size, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status);
        else
            MPI_Mrecv(in, size, MPI_BYTE, &message, &status);
        CHECK_STATUS("around a taken message", &status, left, 7, MPI_BYTE, size);
        CHECK_BYTES("around a taken message", in, (size_t)size, (uint64_t)(left * 3 + order[i]));
    }
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void test_nothing_there(void)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Comm quiet;
    int flag;

    MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
    for (int i = 0; i < 100; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, quiet, &flag, &status);
        CHECK("iprobe finds nothing", 0, flag);
        MPI_Improbe(left, 3, quiet, &flag, &message, &status);
        CHECK("improbe finds nothing", 0, flag);
    }
    MPI_Comm_free(&quiet);

    MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    CHECK_STATUS("probe of nobody", &status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_BYTE, 0);
    MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status);
    CHECK("iprobe of nobody", 1, flag);
    MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
    CHECK("mprobe of nobody", 1, message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(in, 1, MPI_BYTE, &message, &status);
    CHECK_STATUS("mrecv from nobody", &status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_BYTE, 0);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    out = must_alloc(MAX_SIZE + SLACK);
    in = must_alloc(MAX_SIZE + SLACK);
    for (int way = 0; way < WAYS; way++)
        for (int i = 0; i < n_sizes; i++)
            for (int wild = 0; wild < 4; wild++) {
                check_item = sizes[i];
                one_message(way, sizes[i], wild);
                /* Keeps a neighbour's next message from the wildcards. */
                MPI_Barrier(MPI_COMM_WORLD);
            }
    test_reverse_tags();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int size = 1; size <= MAX_SIZE / 3; size *= 100) {
        check_item = size;
        test_taken_message(size);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    check_item = 0;
    test_nothing_there();
    free(in);
    free(out);
    return check_finish("probe");
}
