/* Point-to-point modes around a ring (with one rank: to itself): standard,
   synchronous, buffered and ready sends, blocking, non-blocking and persistent,
   of 0 B to 4 MB; sendrecv, sendrecv_replace, and MPI_PROC_NULL. Source and tag
   of the status of MPI_Irecv from MPI_PROC_NULL are not checked: MPICH 4.0.2
   leaves them unset. */
#include "check.h"

enum { MAX_SIZE = 4 << 20, SLACK = 64, TAG = 11, PARTS = 6, ROUNDS = 4 };

typedef int blocking_send(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int nonblocking_send(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static const int sizes[] = {0,    1,     7,     64,    1000,   4096,    8191,    8192,
                            8193, 65535, 65536, 65537, 262144, 1048579, MAX_SIZE};
static const int n_sizes = sizeof sizes / sizeof *sizes;

static blocking_send *const blocking[] = {MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
static nonblocking_send *const nonblocking[] = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
static nonblocking_send *const persistent[] = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init,
                                               MPI_Rsend_init};
enum { READY = 3, MODES = 4 };

static int left, right;
static char *out, *in;
static void *pool;
static int pool_size;

static uint64_t seed_of(int rank, int size, int mode)
{
    return (uint64_t)rank * 1000003 + (uint64_t)size * 10 + (uint64_t)mode;
}

static void check_arrival(const char *what, int size, int mode, const MPI_Status *status)
{
    CHECK_STATUS(what, status, left, TAG + mode, MPI_BYTE, size);
    CHECK_BYTES(what, in, (size_t)size, seed_of(left, size, mode));
    CHECK_GUARDED("bytes behind the message", in + size, SLACK);
}

static void one_blocking(int size, int mode)
{
    MPI_Request request;
    MPI_Status status;

    fill(out, (size_t)size, seed_of(check_rank, size, mode));
    guard(in, (size_t)size + SLACK);
    MPI_Irecv(in, size + SLACK, MPI_BYTE, left, TAG + mode, MPI_COMM_WORLD, &request);
    if (mode == READY)
        MPI_Barrier(MPI_COMM_WORLD);
    blocking[mode](out, size, MPI_BYTE, right, TAG + mode, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    check_arrival("blocking send", size, mode, &status);
}

static void one_nonblocking(int size, int mode)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];

    fill(out, (size_t)size, seed_of(check_rank, size, mode));
    guard(in, (size_t)size + SLACK);
    MPI_Irecv(in, size + SLACK, MPI_BYTE, left, TAG + mode, MPI_COMM_WORLD, &requests[0]);
    if (mode == READY)
        MPI_Barrier(MPI_COMM_WORLD);
    nonblocking[mode](out, size, MPI_BYTE, right, TAG + mode, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK("request freed", 1, requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    check_arrival("non-blocking send", size, mode, &statuses[0]);
}

/* The sends come first, so that the messages are unexpected. */
static void one_unexpected(int size, int mode)
{
    MPI_Request request;
    MPI_Status status;

    fill(out, (size_t)size, seed_of(check_rank, size, mode));
    guard(in, (size_t)size + SLACK);
    nonblocking[mode](out, size, MPI_BYTE, right, TAG + mode, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(in, size + SLACK, MPI_BYTE, left, TAG + mode, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_arrival("unexpected message", size, mode, &status);
}

/* Nothing but blocking calls: odd ranks receive first. */
static void one_alternating(int size, int mode)
{
    MPI_Status status;

    fill(out, (size_t)size, seed_of(check_rank, size, mode));
    guard(in, (size_t)size + SLACK);
    if (check_rank % 2 == 0)
        blocking[mode](out, size, MPI_BYTE, right, TAG + mode, MPI_COMM_WORLD);
    MPI_Recv(in, size + SLACK, MPI_BYTE, left, TAG + mode, MPI_COMM_WORLD, &status);
    if (check_rank % 2 != 0)
        blocking[mode](out, size, MPI_BYTE, right, TAG + mode, MPI_COMM_WORLD);
    check_arrival("alternating ranks", size, mode, &status);
}

/* Detaching waits until all buffered messages are gone. */
static void empty_pool(void)
{
    MPI_Buffer_detach(&pool, &pool_size);
    MPI_Buffer_attach(pool, pool_size);
}

static void test_modes(void)
{
    for (int mode = 0; mode < MODES; mode++)
        for (int i = 0; i < n_sizes; i++) {
            check_item = sizes[i];
            empty_pool();
            one_blocking(sizes[i], mode);
            one_nonblocking(sizes[i], mode);
            if (mode == READY)
                continue;
            one_unexpected(sizes[i], mode);
            if (check_size > 1)
                one_alternating(sizes[i], mode);
        }
}

static void test_sendrecv(void)
{
    MPI_Status status;

    for (int i = 0; i < n_sizes; i++) {
        int size = sizes[i];

        check_item = size;
        fill(out, (size_t)size, seed_of(check_rank, size, 0));
        guard(in, (size_t)size + SLACK);
        MPI_Sendrecv(out, size, MPI_BYTE, right, TAG, in, size + SLACK, MPI_BYTE, left, TAG,
                     MPI_COMM_WORLD, &status);
        check_arrival("sendrecv", size, 0, &status);

        fill(in, (size_t)size, seed_of(check_rank, size, 1));
        MPI_Sendrecv_replace(in, size, MPI_BYTE, right, TAG + 1, left, TAG + 1, MPI_COMM_WORLD,
                             &status);
        check_arrival("sendrecv_replace", size, 1, &status);
    }
}

static void test_self(void)
{
    MPI_Request requests[2];
    MPI_Status status;

    for (int i = 0; i < n_sizes; i++) {
        int size = sizes[i];

        check_item = size;
        fill(out, (size_t)size, seed_of(check_rank, size, 2));
        guard(in, (size_t)size + SLACK);
        MPI_Isend(out, size, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in, size, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Wait(&requests[1], &status);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK_STATUS("message to self", &status, check_rank, TAG, MPI_BYTE, size);
        CHECK_BYTES("message to self", in, (size_t)size, seed_of(check_rank, size, 2));
        CHECK_GUARDED("behind a message to self", in + size, SLACK);
    }
}

static void test_proc_null(void)
{
    MPI_Request requests[2];
    MPI_Status status, statuses[2];
    char byte = 'x';
    int count;

    check_item = 0;
    MPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
    MPI_Ssend(&byte, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
    MPI_Recv(&byte, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
    CHECK_STATUS("recv from nobody", &status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_BYTE, 0);
    MPI_Irecv(&byte, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&byte, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Get_count(&statuses[0], MPI_BYTE, &count);
    CHECK("irecv from nobody", 0, count);
    MPI_Sendrecv_replace(&byte, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_PROC_NULL, TAG, MPI_COMM_WORLD,
                         &status);
    CHECK_STATUS("sendrecv_replace with nobody", &status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_BYTE, 0);
    CHECK("byte untouched", 'x', byte);
}

/* PARTS messages a round from one buffer to another, parts of different sizes. */
static void one_persistent(int mode, int part_size)
{
    MPI_Request receives[PARTS], sends[PARTS];
    MPI_Status statuses[PARTS];

    for (int p = 0; p < PARTS; p++) {
        MPI_Recv_init(in + p * part_size, part_size, MPI_BYTE, left, p, MPI_COMM_WORLD,
                      &receives[p]);
        persistent[mode](out + p * part_size, part_size - p, MPI_BYTE, right, p, MPI_COMM_WORLD,
                         &sends[p]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        empty_pool();
        guard(in, (size_t)(PARTS * part_size));
        for (int p = 0; p < PARTS; p++)
            fill(out + p * part_size, (size_t)(part_size - p), seed_of(check_rank, p, round));
        MPI_Startall(PARTS - 1, receives);
        MPI_Start(&receives[PARTS - 1]);
        if (mode == READY)
            MPI_Barrier(MPI_COMM_WORLD);
        MPI_Start(&sends[0]);
        MPI_Startall(PARTS - 1, sends + 1);
        MPI_Waitall(PARTS, sends, MPI_STATUSES_IGNORE);
        MPI_Waitall(PARTS, receives, statuses);
        for (int p = 0; p < PARTS; p++) {
            char *at = in + p * part_size;
            CHECK_STATUS("persistent", &statuses[p], left, p, MPI_BYTE, part_size - p);
            CHECK_BYTES("persistent", at, (size_t)(part_size - p), seed_of(left, p, round));
            CHECK_GUARDED("behind a persistent one", at + part_size - p, (size_t)p);
            CHECK("request kept", 1, receives[p] != MPI_REQUEST_NULL);
        }
    }
    for (int p = 0; p < PARTS; p++) {
        MPI_Request_free(&receives[p]);
        MPI_Request_free(&sends[p]);
    }
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    out = must_alloc(MAX_SIZE + SLACK);
    in = must_alloc(MAX_SIZE + SLACK);
    pool_size = 4 * (MAX_SIZE + 2 * PARTS * MPI_BSEND_OVERHEAD);
    pool = must_alloc((size_t)pool_size);
    MPI_Buffer_attach(pool, pool_size);

    test_modes();
    test_sendrecv();
    test_self();
    test_proc_null();
    for (int mode = 0; mode < MODES; mode++)
        for (int size = 16; size <= MAX_SIZE / PARTS; size *= 20) {
            check_item = size;
            one_persistent(mode, size);
        }

    MPI_Buffer_detach(&pool, &pool_size);
    free(pool);
    free(in);
    free(out);
    return check_finish("p2p_modes");
}
