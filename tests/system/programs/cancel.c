/* MPI_Cancel of receives: not matched (must be cancelled), matched (must not
   be), and while a message is under way (either, but nothing may be lost); then
   communication goes on. Cancelling sends is deprecated and left out. */
#include "check.h"

enum { N = 64, TRIALS = 50, BIG = 200000 };

static int left, right;
static char *out, *in;

static int wait_cancelled(MPI_Request *request, MPI_Status *status)
{
    int flag;

    MPI_Wait(request, status);
    MPI_Test_cancelled(status, &flag);
    return flag;
}

/* A ring exchange, to see that nothing is left over from the test before. */
static void exchange(int tag, int size)
{
    MPI_Status status;
    int flag;

    fill(out, (size_t)size, (uint64_t)(check_rank * 1000 + tag));
    MPI_Sendrecv(out, size, MPI_BYTE, right, tag, in, BIG, MPI_BYTE, left, tag, MPI_COMM_WORLD,
                 &status);
    CHECK_STATUS("exchange", &status, left, tag, MPI_BYTE, size);
    CHECK_BYTES("exchange", in, (size_t)size, (uint64_t)(left * 1000 + tag));
    MPI_Test_cancelled(&status, &flag);
    CHECK("exchange is not cancelled", 0, flag);
}

static void test_unmatched(int source, int tag)
{
    MPI_Request request;
    MPI_Status status;

    guard(in, BIG);
    MPI_Irecv(in, BIG, MPI_BYTE, source, tag, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    CHECK("not matched: cancelled", 1, wait_cancelled(&request, &status));
    CHECK("request freed", 1, request == MPI_REQUEST_NULL);
    CHECK_GUARDED("buffer of a cancelled receive", in, BIG);
    MPI_Barrier(MPI_COMM_WORLD);
    exchange(5, 10);
    exchange(5, BIG);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A synchronous send has ended, so the receive has surely matched. */
static void test_matched(int size)
{
    MPI_Request request;
    MPI_Status status;

    fill(out, (size_t)size, (uint64_t)check_rank);
    MPI_Irecv(in, BIG, MPI_BYTE, left, 6, MPI_COMM_WORLD, &request);
    MPI_Ssend(out, size, MPI_BYTE, right, 6, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Cancel(&request);
    CHECK("matched: not cancelled", 0, wait_cancelled(&request, &status));
    CHECK_STATUS("matched", &status, left, 6, MPI_BYTE, size);
    CHECK_BYTES("matched", in, (size_t)size, (uint64_t)left);
    exchange(6, 100);
}

/* Cancels while the message comes: when cancelled, it must still be there. */
static void test_race(int size, int trial)
{
    MPI_Request receive, send;
    MPI_Status status;

    fill(out, (size_t)size, (uint64_t)(check_rank + trial));
    MPI_Irecv(in, BIG, MPI_BYTE, left, 7, MPI_COMM_WORLD, &receive);
    MPI_Isend(out, size, MPI_BYTE, right, 7, MPI_COMM_WORLD, &send);
    if (trial % 2)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Cancel(&receive);
    if (wait_cancelled(&receive, &status))
        MPI_Recv(in, BIG, MPI_BYTE, left, 7, MPI_COMM_WORLD, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    CHECK_STATUS("race", &status, left, 7, MPI_BYTE, size);
    CHECK_BYTES("race", in, (size_t)size, (uint64_t)(left + trial));
}

/* Cancels the odd ones of many posted receives; the even ones get messages. */
static void test_every_other(void)
{
    MPI_Request receives[N], sends[N];
    int got[N], value[N];
    MPI_Status status;

    for (int i = 0; i < N; i++) {
        got[i] = -1;
        MPI_Irecv(&got[i], 1, MPI_INT, left, i / 2, MPI_COMM_WORLD, &receives[i]);
    }
    for (int i = 1; i < N; i += 2)
        MPI_Cancel(&receives[i]);
    for (int i = 1; i < N; i += 2) {
        check_item = i;
        CHECK("odd one: cancelled", 1, wait_cancelled(&receives[i], &status));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i += 2) {
        value[i] = check_rank * N + i;
        MPI_Isend(&value[i], 1, MPI_INT, right, i / 2, MPI_COMM_WORLD, &sends[i / 2]);
    }
    for (int i = 0; i < N; i++) {
        check_item = i;
        if (i % 2 == 0) {
            CHECK("even one: not cancelled", 0, wait_cancelled(&receives[i], &status));
            CHECK_STATUS("even one", &status, left, i / 2, MPI_INT, 1);
        }
        CHECK("value", i % 2 ? -1 : left * N + i, got[i]);
    }
    MPI_Waitall(N / 2, sends, MPI_STATUSES_IGNORE);
}

static void test_persistent(void)
{
    MPI_Request request;
    MPI_Status status;

    MPI_Recv_init(in, BIG, MPI_BYTE, left, 8, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Cancel(&request);
    CHECK("persistent: cancelled", 1, wait_cancelled(&request, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&request);
    fill(out, 300, (uint64_t)check_rank);
    MPI_Send(out, 300, MPI_BYTE, right, 8, MPI_COMM_WORLD);
    CHECK("persistent: not cancelled", 0, wait_cancelled(&request, &status));
    CHECK_STATUS("persistent", &status, left, 8, MPI_BYTE, 300);
    CHECK_BYTES("persistent", in, 300, (uint64_t)left);
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    out = must_alloc(BIG);
    in = must_alloc(BIG);
    test_unmatched(left, 5);
    test_unmatched(MPI_ANY_SOURCE, 5);
    test_unmatched(left, MPI_ANY_TAG);
    test_unmatched(MPI_ANY_SOURCE, MPI_ANY_TAG);
    test_matched(0);
    test_matched(1000);
    test_matched(BIG);
    for (int trial = 0; trial < TRIALS; trial++) {
        check_item = trial;
        test_race(trial % 4 < 2 ? 100 : BIG, trial);
    }
    test_every_other();
    check_item = 0;
    test_persistent();
    exchange(9, BIG);
    free(in);
    free(out);
    return check_finish("cancel");
}
