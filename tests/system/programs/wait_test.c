/* Waitany, waitsome, waitall, test, testany, testsome, testall and
   request_get_status, with messages that come in an order known to both sides.
   Ranks work in pairs, each being the receiver in turn; an odd last rank and a
   single rank look on. */
#include "check.h"

enum { N = 8, MAX_SIZE = 200000, TAG_GO = 99 };

static const int order[N] = {5, 2, 7, 0, 3, 6, 1, 4};
static int partner;
static char *out[N], *in[N];

/* Every other message is large. */
static int size_of(int i)
{
    return i % 2 ? MAX_SIZE - i : 10 + i;
}

static void post_all(MPI_Request *requests)
{
    for (int i = 0; i < N; i++) {
        guard(in[i], MAX_SIZE);
        MPI_Irecv(in[i], MAX_SIZE, MPI_BYTE, partner, i, MPI_COMM_WORLD, &requests[i]);
    }
}

/* Lets the partner send its next message. */
static void go(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, partner, TAG_GO, MPI_COMM_WORLD);
}

static void check_arrival(const char *what, int i, const MPI_Status *status)
{
    check_item = i;
    CHECK_STATUS(what, status, partner, i, MPI_BYTE, size_of(i));
    CHECK_BYTES(what, in[i], (size_t)size_of(i), (uint64_t)(partner * N + i));
    CHECK_GUARDED(what, in[i] + size_of(i), (size_t)(MAX_SIZE - size_of(i)));
}

static void check_empty(const char *what, const MPI_Status *status)
{
    CHECK_STATUS(what, status, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_BYTE, 0);
}

/* Message order[k] is sent once the receiver has said go for the k-th time. */
static void serve(void)
{
    for (int k = 0; k < N; k++) {
        int i = order[k];
        fill(out[i], (size_t)size_of(i), (uint64_t)(check_rank * N + i));
        MPI_Recv(NULL, 0, MPI_BYTE, partner, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out[i], size_of(i), MPI_BYTE, partner, i, MPI_COMM_WORLD);
    }
}

static void by_waitany(MPI_Request *requests)
{
    MPI_Status status;
    int index;

    for (int k = 0; k < N; k++) {
        go();
        MPI_Waitany(N, requests, &index, &status);
        CHECK("waitany", order[k], index);
        CHECK("request freed", 1, requests[index] == MPI_REQUEST_NULL);
        check_arrival("waitany", index, &status);
    }
    MPI_Waitany(N, requests, &index, &status);
    CHECK("waitany of none", MPI_UNDEFINED, index);
    check_empty("waitany of none", &status);
}

static void by_testany(MPI_Request *requests)
{
    MPI_Status status;
    int index, flag;

    for (int k = 0; k < N; k++) {
        MPI_Testany(N, requests, &index, &flag, &status);
        CHECK("testany too early", 0, flag);
        CHECK("testany too early", MPI_UNDEFINED, index);
        go();
        while (!flag)
            MPI_Testany(N, requests, &index, &flag, &status);
        CHECK("testany", order[k], index);
        check_arrival("testany", index, &status);
    }
    MPI_Testany(N, requests, &index, &flag, &status);
    CHECK("testany of none", 1, flag);
    CHECK("testany of none", MPI_UNDEFINED, index);
    check_empty("testany of none", &status);
}

static void by_waitsome(MPI_Request *requests)
{
    MPI_Status statuses[N];
    int count, indices[N], done = 0;

    while (done < N) {
        /* Two at a time. */
        go();
        go();
        for (int got = 0; got < 2; got += count) {
            MPI_Waitsome(N, requests, &count, indices, statuses);
            if (!CHECK("waitsome: one or two", 1, count == 1 || (count == 2 && got == 0)))
                MPI_Abort(MPI_COMM_WORLD, 1);
            for (int c = 0; c < count; c++) {
                CHECK("waitsome", 1, indices[c] == order[done] || indices[c] == order[done + 1]);
                check_arrival("waitsome", indices[c], &statuses[c]);
            }
        }
        done += 2;
    }
    MPI_Waitsome(N, requests, &count, indices, statuses);
    CHECK("waitsome of none", MPI_UNDEFINED, count);
}

static void by_testsome(MPI_Request *requests)
{
    MPI_Status statuses[N];
    int count, indices[N];

    for (int k = 0; k < N; k++) {
        MPI_Testsome(N, requests, &count, indices, statuses);
        CHECK("testsome too early", 0, count);
        go();
        while (count == 0)
            MPI_Testsome(N, requests, &count, indices, statuses);
        CHECK("testsome", 1, count);
        CHECK("testsome", order[k], indices[0]);
        check_arrival("testsome", indices[0], &statuses[0]);
    }
    MPI_Testsome(N, requests, &count, indices, statuses);
    CHECK("testsome of none", MPI_UNDEFINED, count);
}

static void by_testall(MPI_Request *requests)
{
    MPI_Status statuses[N];
    int flag;

    for (int k = 0; k < N; k++) {
        MPI_Testall(N, requests, &flag, statuses);
        CHECK("testall too early", 0, flag);
        go();
    }
    while (!flag)
        MPI_Testall(N, requests, &flag, statuses);
    for (int i = 0; i < N; i++)
        check_arrival("testall", i, &statuses[i]);
}

static void by_waitall(MPI_Request *requests)
{
    MPI_Status statuses[N];

    for (int k = 0; k < N; k++)
        go();
    MPI_Waitall(N, requests, statuses);
    for (int i = 0; i < N; i++)
        check_arrival("waitall", i, &statuses[i]);
}

static void by_wait(MPI_Request *requests)
{
    MPI_Status status;

    for (int k = 0; k < N; k++)
        go();
    for (int i = N - 1; i >= 0; i--) {
        MPI_Wait(&requests[i], &status);
        check_arrival("wait", i, &status);
        MPI_Wait(&requests[i], &status);
        check_empty("wait for nothing", &status);
    }
}

static void by_test(MPI_Request *requests)
{
    MPI_Status status;
    int flag;

    for (int k = 0; k < N; k++) {
        int i = order[k];
        MPI_Test(&requests[i], &flag, &status);
        CHECK("test too early", 0, flag);
        go();
        while (!flag)
            MPI_Test(&requests[i], &flag, &status);
        check_arrival("test", i, &status);
        MPI_Test(&requests[i], &flag, &status);
        CHECK("test of nothing", 1, flag);
        check_empty("test of nothing", &status);
    }
}

static void by_get_status(MPI_Request *requests)
{
    MPI_Status status;
    int flag;

    for (int k = 0; k < N; k++) {
        int i = order[k];
        MPI_Request_get_status(requests[i], &flag, &status);
        CHECK("get_status too early", 0, flag);
        go();
        while (!flag)
            MPI_Request_get_status(requests[i], &flag, &status);
        check_arrival("get_status", i, &status);
        CHECK("request kept", 1, requests[i] != MPI_REQUEST_NULL);
        MPI_Wait(&requests[i], &status);
        check_arrival("wait after get_status", i, &status);
    }
}

int main(int argc, char **argv)
{
    static void (*const receive[])(MPI_Request *) = {by_waitany,  by_testany, by_waitsome,
                                                     by_testsome, by_testall, by_waitall,
                                                     by_wait,     by_test,    by_get_status};
    MPI_Request requests[N];

    check_init(&argc, &argv);
    partner = check_rank ^ 1;
    for (int i = 0; i < N; i++) {
        in[i] = must_alloc(MAX_SIZE);
        out[i] = must_alloc(MAX_SIZE);
    }
    for (size_t way = 0; way < sizeof receive / sizeof *receive; way++)
        for (int turn = 0; turn < 2 && partner < check_size; turn++) {
            if (check_rank % 2 != turn) {
                serve();
            } else {
                post_all(requests);
                receive[way](requests);
                for (int i = 0; i < N; i++)
                    CHECK("request freed", 1, requests[i] == MPI_REQUEST_NULL);
            }
        }
    for (int i = 0; i < N; i++) {
        free(in[i]);
        free(out[i]);
    }
    return check_finish("wait_test");
}
