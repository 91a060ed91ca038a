/* What MPI allows in collectives beside the plain cases, over communicators whose ranks are at one
   or several homes: types with gaps, backwards, and different on each rank; the operation's order;
   large counts; errors that the program handles; parts of the world, in other orders; many
   communicators at once. Every result is compared with what the ranks can compute themselves.
   argv[1]: rounds (default 3). */
#include "check.h"

enum { ELEMENTS = 7, MANY = 300 };

static MPI_Comm comm;
static int me, size;

static int value(int rank, int i)
{
    return rank * 1009 + i * 7 + 1;
}

/* --- types --- */

/* Rank r sends every other int, or ints backwards, or plain ones; all hold the same. */
static int send_ints(int *buffer, int rank, MPI_Datatype *type)
{
    int step = rank % 3 == 0 ? 1 : rank % 3 == 1 ? 2 : -1;

    guard(buffer, 2 * ELEMENTS * sizeof(int));
    for (int i = 0; i < ELEMENTS; i++)
        buffer[step < 0 ? ELEMENTS - 1 - i : step * i] = value(rank, i);
    MPI_Type_create_resized(MPI_INT, 0, step * (int)sizeof(int), type);
    MPI_Type_commit(type);
    return step < 0 ? ELEMENTS - 1 : 0;
}

static void test_gather_types(int root)
{
    int out[2 * ELEMENTS], at;
    int *in = must_alloc((size_t)size * ELEMENTS * sizeof(int));
    MPI_Datatype type;

    at = send_ints(out, me, &type);
    memset(in, 0, (size_t)size * ELEMENTS * sizeof(int));
    MPI_Gather(out + at, ELEMENTS, type, in, ELEMENTS, MPI_INT, root, comm);
    for (int i = 0; me == root && i < size * ELEMENTS; i++)
        CHECK("gather of types", value(i / ELEMENTS, i % ELEMENTS), in[i]);
    memset(in, 0, (size_t)size * ELEMENTS * sizeof(int));
    MPI_Allgather(out + at, ELEMENTS, type, in, ELEMENTS, MPI_INT, comm);
    for (int i = 0; i < size * ELEMENTS; i++)
        CHECK("allgather of types", value(i / ELEMENTS, i % ELEMENTS), in[i]);
    guard(out, sizeof(out));
    MPI_Scatter(in, ELEMENTS, MPI_INT, out + at, ELEMENTS, type, root, comm);
    for (int i = 0; i < ELEMENTS; i++) {
        int step = me % 3 == 0 ? 1 : me % 3 == 1 ? 2 : -1;

        CHECK("scatter of types", value(me, i), out[at + step * i]);
    }
    guard(out, sizeof(out));
    if (me == root) {
        MPI_Type_free(&type);
        at = send_ints(out, me, &type);
    }
    MPI_Bcast(out + at, ELEMENTS, type, root, comm);
    for (int i = 0; i < ELEMENTS; i++) {
        int step = me % 3 == 0 ? 1 : me % 3 == 1 ? 2 : -1;

        CHECK("bcast of types", value(root, i), out[at + step * i]);
    }
    MPI_Type_free(&type);
    free(in);
}

static void test_alltoall_types(void)
{
    int *out = must_alloc((size_t)size * 2 * sizeof(int));
    int *in = must_alloc((size_t)size * 3 * sizeof(int));
    MPI_Datatype apart;

    MPI_Type_vector(2, 1, 2, MPI_INT, &apart); /* two ints, with a gap between */
    MPI_Type_commit(&apart);
    for (int r = 0; r < size; r++)
        out[2 * r] = value(me, r), out[2 * r + 1] = -value(me, r);
    guard(in, (size_t)size * 3 * sizeof(int));
    MPI_Alltoall(out, 2, MPI_INT, in, 1, apart, comm);
    for (int r = 0; r < size; r++) {
        CHECK("alltoall of types", value(r, me), in[3 * r]);
        CHECK("alltoall of types, behind the gap", -value(r, me), in[3 * r + 2]);
        CHECK_GUARDED("gap of alltoall", in + 3 * r + 1, sizeof(int));
    }
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 1, apart, comm);
    for (int r = 0; r < size; r++)
        CHECK("alltoall in place", value(me, r), in[3 * r]);
    MPI_Type_free(&apart);
    free(out);
    free(in);
}

/* --- operations --- */

/* Is associative, but does not commute: of two pairs, the first of one and the second of the other.
 */
static void ends(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int *a = in, *b = inout;

    (void)type;
    for (int i = 0; i < *count; i++)
        b[2 * i] = a[2 * i];
}

static void test_order(void)
{
    int mine[2] = {me, me}, got[2] = {-1, -1};
    MPI_Datatype pair;
    MPI_Op op;

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(ends, 0, &op);
    MPI_Allreduce(mine, got, 1, pair, op, comm);
    CHECK("first operand", 0, got[0]);
    CHECK("last operand", size - 1, got[1]);
    MPI_Scan(mine, got, 1, pair, op, comm);
    CHECK("first operand of a scan", 0, got[0]);
    CHECK("last operand of a scan", me, got[1]);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
}

/* The order may be any, but the bits are the same on all ranks. */
static void test_same_bits(void)
{
    double mine[ELEMENTS], sum[ELEMENTS];
    double *all = must_alloc((size_t)size * sizeof(sum));

    for (int count = 1; count <= ELEMENTS; count += ELEMENTS - 1) {
        for (int i = 0; i < count; i++)
            mine[i] = 1.0 / (3 + me + i) * (i % 2 ? 1e9 : 1e-9);
        MPI_Allreduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, comm);
        MPI_Allgather(sum, count, MPI_DOUBLE, all, count, MPI_DOUBLE, comm);
        for (int r = 0; r < size; r++)
            CHECK("same bits", 0, memcmp(all + r * count, sum, (size_t)count * sizeof(*sum)));
    }
    free(all);
}

static void test_reduce_scatter(void)
{
    int *counts = must_alloc((size_t)size * sizeof(int));
    int total = 0, before = 0;
    int *out, *in;

    for (int r = 0; r < size; r++) {
        counts[r] = r % 3; /* some get nothing */
        before += r < me ? counts[r] : 0;
        total += counts[r];
    }
    out = must_alloc((size_t)total * sizeof(int));
    in = guarded_alloc((size_t)(total + 1) * sizeof(int));
    for (int i = 0; i < total; i++)
        out[i] = value(me, i);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < counts[me]; i++)
        CHECK("reduce_scatter", size * (size - 1) / 2 * 1009 + size * ((before + i) * 7 + 1),
              in[i]);
    CHECK_GUARDED("behind reduce_scatter", in + counts[me], sizeof(int));
    free(counts);
    free(out);
    free(in);
}

static void test_large_counts(void)
{
    int data[ELEMENTS], sum[ELEMENTS];

    for (int i = 0; i < ELEMENTS; i++)
        data[i] = me == 0 ? value(0, i) : 0;
    if (me % 2) /* the same message, by another function */
        MPI_Bcast_c(data, ELEMENTS, MPI_INT, 0, comm);
    else
        MPI_Bcast(data, ELEMENTS, MPI_INT, 0, comm);
    MPI_Allreduce_c(data, sum, ELEMENTS, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < ELEMENTS; i++)
        CHECK("large counts", size * value(0, i), sum[i]);
}

/* --- errors --- */

static void test_errors(void)
{
    int data[4] = {me, me, me, me}, in[4] = {0};

    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK_CLASS("a root that is none", MPI_ERR_ROOT, MPI_Bcast(data, 1, MPI_INT, size, comm));
    CHECK_CLASS("a count below 0", MPI_ERR_COUNT, MPI_Bcast(data, -1, MPI_INT, 0, comm));
    CHECK_CLASS("no type", MPI_ERR_TYPE, MPI_Bcast(data, 1, MPI_DATATYPE_NULL, 0, comm));
    CHECK_CLASS("no buffer", MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, MPI_INT, 0, comm));
    CHECK_CLASS("no operation", MPI_ERR_OP, MPI_Allreduce(data, in, 1, MPI_INT, MPI_OP_NULL, comm));
    CHECK_CLASS("an operation for other types", MPI_ERR_OP,
                MPI_Allreduce(data, in, 1, MPI_DOUBLE, MPI_BAND, comm));
    CHECK_CLASS("no communicator", MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Barrier(comm);
}

/* --- communicators --- */

static void test_all(int round)
{
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    /* often enough for whatever is done at first only */
    for (int i = 0; i < 4; i++) {
        test_gather_types((round + i) % size);
        test_alltoall_types();
        test_order();
        test_same_bits();
        test_reduce_scatter();
        test_large_counts();
    }
}

static void test_parts(int round)
{
    for (int parts = 1; parts <= 3; parts++) {
        MPI_Comm part;

        MPI_Comm_split(MPI_COMM_WORLD, check_rank % parts, (check_rank * 5 + round) % check_size,
                       &part);
        comm = part;
        test_all(round);
        MPI_Comm_free(&part);
    }
}

/* More than are given communicators of their own; they use what MPICH has for a process. */
static void test_many(void)
{
    MPI_Comm *all = must_alloc(MANY * sizeof(*all));
    int sum;

    for (int i = 0; i < MANY; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &all[i]);
    for (int use = 0; use < 6; use++)
        for (int i = 0; i < MANY; i++) {
            MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, all[i]);
            CHECK("many communicators", check_size * (check_size - 1) / 2, sum);
        }
    for (int i = 0; i < MANY; i++)
        MPI_Comm_free(&all[i]);
    free(all);
}

/* Two sides: not for what is about one. */
static void test_two_sides(void)
{
    int side = check_rank * 2 < check_size, data = check_rank;
    MPI_Comm half, between;

    if (check_size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, side, check_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? (check_size + 1) / 2 : 0, 1, &between);
    for (int i = 0; i < 6; i++) {
        MPI_Bcast(&data, 1, MPI_INT, side ? (check_rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0,
                  between);
        CHECK("between two sides", side ? check_rank : 0, data);
        MPI_Barrier(between);
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* A site is no node: what ranks share is shared by one rank alone. */
static void test_no_node(void)
{
    MPI_Comm node;
    int ranks;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    CHECK("ranks of a node", 1, ranks);
    MPI_Comm_free(&node);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 3;

    check_init(&argc, &argv);
    for (int round = 0; round < rounds; round++) {
        check_item = round;
        comm = MPI_COMM_WORLD;
        test_all(round);
        test_errors();
        test_parts(round);
        test_two_sides();
    }
    test_many();
    test_no_node();
    return check_finish("sites");
}
