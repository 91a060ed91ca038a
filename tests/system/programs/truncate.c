/* Receives into buffers that are too small: the error class, the bytes behind
   the buffer and the messages that follow, for small and large messages (eager
   and rendezvous), expected and unexpected, contiguous and derived types. And
   into derived types with room, of messages that end within an element: they are
   received as errors as well, and one that ends between two elements is not. */
#include "check.h"

#include <stdbool.h>

enum { MAX_SIZE = 2 << 20, SLACK = 4096, FOLLOW = 10 };

static const int sizes[] = {1, 8, 500, 8000, 20000, 65536, 100000, MAX_SIZE};
static const int n_sizes = sizeof sizes / sizeof *sizes;
static const int ends[] = {0, 1, 3, 4, 7, 13, 16, 9999, 200000, 200001};
static const int n_ends = sizeof ends / sizeof *ends;
static int left, right;
static char *out, *in;

/* What follows a truncated message must arrive unharmed. */
static void send_following(MPI_Request *requests, int *values)
{
    for (int i = 0; i < FOLLOW; i++) {
        values[i] = check_rank * 100 + i;
        MPI_Isend(&values[i], 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[i]);
    }
}

static void receive_following(void)
{
    MPI_Status status;
    int value;

    for (int i = 0; i < FOLLOW; i++) {
        CHECK("following message", MPI_SUCCESS,
              MPI_Recv(&value, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &status));
        CHECK_STATUS("following message", &status, left, 2, MPI_INT, 1);
        CHECK("following message", left * 100 + i, value);
    }
}

/* Receives with a buffer of room bytes. ways: 0 blocking, 1 wait, 2 waitall. */
static void receive_small(int room, int way, MPI_Request *request)
{
    MPI_Status status;
    int code;

    if (way == 0) {
        code = MPI_Recv(in, room, MPI_BYTE, left, 1, MPI_COMM_WORLD, &status);
    } else if (way == 1) {
        code = MPI_Wait(request, &status);
    } else {
        code = MPI_Waitall(1, request, &status);
        CHECK_CLASS("waitall", MPI_ERR_IN_STATUS, code);
        code = status.MPI_ERROR;
    }
    CHECK_CLASS("truncated message", MPI_ERR_TRUNCATE, code);
    CHECK("source", left, status.MPI_SOURCE);
    CHECK("tag", 1, status.MPI_TAG);
    CHECK_GUARDED("behind the buffer", in + room, SLACK);
}

static void test_bytes(int size, int room, int way)
{
    MPI_Request receive, send, follow[FOLLOW];
    int values[FOLLOW];

    fill(out, (size_t)size, (uint64_t)check_rank);
    guard(in, (size_t)size + SLACK);
    if (way > 0)
        MPI_Irecv(in, room, MPI_BYTE, left, 1, MPI_COMM_WORLD, &receive);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out, size, MPI_BYTE, right, 1, MPI_COMM_WORLD, &send);
    send_following(follow, values);
    receive_small(room, way, &receive);
    receive_following();
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Waitall(FOLLOW, follow, MPI_STATUSES_IGNORE);
    /* And the same message again, with room. */
    CHECK("with room", MPI_SUCCESS,
          MPI_Sendrecv(out, size, MPI_BYTE, right, 3, in, size, MPI_BYTE, left, 3, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE));
    CHECK_BYTES("with room", in, (size_t)size, (uint64_t)left);
}

/* count ints, every other one of the buffer, are sent; there is room for less. */
static void test_derived(int count, int room)
{
    MPI_Datatype vector, sparse;
    MPI_Request send, follow[FOLLOW];
    MPI_Status status;
    int values[FOLLOW], *ints = (int *)in;

    MPI_Type_vector(1, 1, 1, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 2 * (MPI_Aint)sizeof(int), &sparse);
    MPI_Type_commit(&sparse);
    fill(out, (size_t)count * 8, (uint64_t)check_rank);
    guard(in, (size_t)count * 8 + SLACK);
    MPI_Isend(out, count, sparse, right, 1, MPI_COMM_WORLD, &send);
    send_following(follow, values);
    CHECK_CLASS("truncated derived type", MPI_ERR_TRUNCATE,
                MPI_Recv(in, room, sparse, left, 1, MPI_COMM_WORLD, &status));
    CHECK("source", left, status.MPI_SOURCE);
    for (int i = 0; i < room; i++)
        CHECK_GUARDED("gap", &ints[2 * i + 1], sizeof(int));
    CHECK_GUARDED("behind the buffer", &ints[2 * room], SLACK);
    receive_following();
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Waitall(FOLLOW, follow, MPI_STATUSES_IGNORE);
    MPI_Type_free(&sparse);
    MPI_Type_free(&vector);
}

/* Receives what is a message of bytes, by a way of its own each. */
static int receive_as(MPI_Datatype type, int way, MPI_Request *request, MPI_Status *status)
{
    MPI_Message message;

    if (way == 0)
        return MPI_Recv(in, 1, type, left, 1, MPI_COMM_WORLD, status);
    if (way == 1)
        return MPI_Wait(request, status);
    MPI_Mprobe(left, 1, MPI_COMM_WORLD, &message, status);
    return MPI_Mrecv(in, 1, type, &message, status);
}

static void test_ends_within(int bytes, int way, bool synchronous)
{
    bool whole = bytes % (int)sizeof(int) == 0;
    int *ints = (int *)in, elements, value;
    MPI_Request send, receive;
    MPI_Datatype every_other;
    MPI_Status status;

    MPI_Type_vector(MAX_SIZE / 8, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    fill(out, (size_t)bytes, (uint64_t)check_rank);
    guard(in, MAX_SIZE);
    if (way == 1)
        MPI_Irecv(in, 1, every_other, left, 1, MPI_COMM_WORLD, &receive);
    MPI_Barrier(MPI_COMM_WORLD);
    (synchronous ? MPI_Issend : MPI_Isend)(out, bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD, &send);
    /* what a rank sends to itself MPICH copies, whole elements of it */
    CHECK_CLASS("ends within an element",
                whole || left == check_rank ? MPI_SUCCESS : MPI_ERR_TRUNCATE,
                receive_as(every_other, way, &receive, &status));
    CHECK("source", left, status.MPI_SOURCE);
    CHECK("tag", 1, status.MPI_TAG);
    MPI_Get_elements(&status, every_other, &elements);
    if (whole)
        CHECK("elements", bytes / (int)sizeof(int), elements);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    fill(out, (size_t)bytes, (uint64_t)left);
    for (int i = 0; whole && i < bytes / (int)sizeof(int); i++) {
        memcpy(&value, out + 4 * (size_t)i, sizeof value);
        CHECK("element", value, ints[2 * (size_t)i]);
        CHECK_GUARDED("gap", &ints[2 * (size_t)i + 1], sizeof(int));
    }
    MPI_Type_free(&every_other);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    out = must_alloc(MAX_SIZE + SLACK);
    in = must_alloc(MAX_SIZE + SLACK);
    for (int i = 0; i < n_sizes; i++)
        for (int way = 0; way < 3; way++) {
            check_item = sizes[i];
            test_bytes(sizes[i], sizes[i] - 1, way);
            test_bytes(sizes[i], sizes[i] / 2, way);
            test_bytes(sizes[i], 0, way);
        }
    for (int i = 1; i < n_sizes; i++) {
        check_item = sizes[i];
        test_derived(sizes[i] / 8, sizes[i] / 8 - 1);
        test_derived(sizes[i] / 8, sizes[i] / 20);
    }
    for (int way = 0; way < 3; way++)
        for (int i = 0; i < n_ends; i++) {
            check_item = ends[i];
            test_ends_within(ends[i], way, false);
            test_ends_within(ends[i], way, true);
        }
    free(in);
    free(out);
    return check_finish("truncate");
}
