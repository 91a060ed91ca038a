/* Every blocking collective, with several sizes, roots and operations, in place
   too, and with a user-defined non-commutative operation. argv[1]: the largest
   count of elements (default 20000). A displacement of MPI_Allgatherv with one
   rank is left out: MPICH 4.0.2 ignores it. */
#include "check.h"

static const int all_counts[] = {0, 1, 5, 100, 3000, 20000};
static int counts[6], n_counts, max_count;
static int me, size;
static int *out, *in; /* room for size * (max_count + size) ints each */
static int *amounts, *starts, *amounts2, *starts2;

/* Element i of what rank a has for rank b. */
static int value(int a, int b, int i)
{
    return a * 7919 + b * 131 + i * 3 + 1;
}

static void clear(void)
{
    guard(in, (size_t)size * (size_t)(max_count + size) * sizeof *in);
}

static void put(int *buf, int a, int b, int n)
{
    for (int i = 0; i < n; i++)
        buf[i] = value(a, b, i);
}

static void verify(const char *what, const int *buf, int a, int b, int n)
{
    for (int i = 0; i < n; i++)
        if (!CHECK(what, value(a, b, i), buf[i]))
            return;
}

/* Roots: first, last and one in the middle. */
static int root_of(int i)
{
    return i == 0 ? 0 : i == 1 ? size - 1 : size / 2;
}

static void test_barrier_bcast(int n)
{
    for (int r = 0; r < 3; r++) {
        int root = root_of(r);
        clear();
        if (me == root)
            put(in, root, n, n);
        MPI_Bcast(in, n, MPI_INT, root, MPI_COMM_WORLD);
        verify("bcast", in, root, n, n);
        CHECK_GUARDED("behind bcast", in + n, sizeof *in);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void test_gather_scatter(int n)
{
    for (int r = 0; r < 3; r++) {
        int root = root_of(r);
        clear();
        put(out, me, root, n);
        if (me == root)
            put(in + me * n, me, root, n);
        MPI_Gather(me == root && r == 1 ? MPI_IN_PLACE : out, n, MPI_INT, in, n, MPI_INT, root,
                   MPI_COMM_WORLD);
        for (int s = 0; s < size && me == root; s++)
            verify("gather", in + s * n, s, root, n);
        clear();
        for (int s = 0; s < size; s++)
            put(out + s * n, root, s, n);
        MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD);
        verify("scatter", in, root, me, n);
        CHECK_GUARDED("behind scatter", in + n, sizeof *in);
    }
}

/* Rank s has n + s elements, with a gap of one element before each. */
static void set_amounts(int n)
{
    int at = 0;

    for (int s = 0; s < size; s++) {
        amounts[s] = s % 3 == 2 ? 0 : n - n / 4 + s * n / (4 * size);
        starts[s] = at + 1;
        at = starts[s] + amounts[s];
    }
}

static void check_gaps(const char *what)
{
    for (int s = 0; s < size; s++)
        CHECK_GUARDED(what, &in[starts[s] - 1], sizeof *in);
}

static void test_gatherv_scatterv(int n)
{
    set_amounts(n);
    for (int r = 0; r < 3; r++) {
        int root = root_of(r);
        clear();
        put(out, me, root, amounts[me]);
        MPI_Gatherv(out, amounts[me], MPI_INT, in, amounts, starts, MPI_INT, root, MPI_COMM_WORLD);
        for (int s = 0; s < size && me == root; s++)
            verify("gatherv", in + starts[s], s, root, amounts[s]);
        check_gaps("gatherv gap");
        clear();
        for (int s = 0; s < size; s++)
            put(out + starts[s], root, s, amounts[s]);
        MPI_Scatterv(out, amounts, starts, MPI_INT, in, amounts[me], MPI_INT, root, MPI_COMM_WORLD);
        verify("scatterv", in, root, me, amounts[me]);
        CHECK_GUARDED("behind scatterv", in + amounts[me], sizeof *in);
    }
}

static void test_allgather(int n)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        clear();
        put(in_place ? in + me * n : out, me, 0, n);
        MPI_Allgather(in_place ? MPI_IN_PLACE : out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
        for (int s = 0; s < size; s++)
            verify("allgather", in + s * n, s, 0, n);
        set_amounts(n);
        if (size == 1)
            starts[0] = 0;
        clear();
        put(in_place ? in + starts[me] : out, me, 0, amounts[me]);
        MPI_Allgatherv(in_place ? MPI_IN_PLACE : out, amounts[me], MPI_INT, in, amounts, starts,
                       MPI_INT, MPI_COMM_WORLD);
        for (int s = 0; s < size; s++)
            verify("allgatherv", in + starts[s], s, 0, amounts[s]);
        if (size > 1)
            check_gaps("allgatherv gap");
    }
}

static void test_alltoall(int n)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        clear();
        for (int s = 0; s < size; s++)
            put((in_place ? in : out) + s * n, me, s, n);
        MPI_Alltoall(in_place ? MPI_IN_PLACE : out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
        for (int s = 0; s < size; s++)
            verify("alltoall", in + s * n, s, me, n);
    }
}

/* a sends b this many elements: some nothing. */
static int amount(int a, int b, int n)
{
    return (a + 2 * b) % 4 == 1 ? 0 : n / (1 + (a + b) % 3);
}

static void test_alltoallv(int n)
{
    MPI_Datatype *types = must_alloc((size_t)size * sizeof *types);
    int at = 0, at2 = 0;

    for (int s = 0; s < size; s++) {
        amounts[s] = amount(me, s, n);
        amounts2[s] = amount(s, me, n);
        starts[s] = at;
        starts2[s] = at2 + 1;
        at += amounts[s];
        at2 += amounts2[s] + 1;
        types[s] = MPI_INT;
        put(out + starts[s], me, s, amounts[s]);
    }
    clear();
    MPI_Alltoallv(out, amounts, starts, MPI_INT, in, amounts2, starts2, MPI_INT, MPI_COMM_WORLD);
    for (int round = 0; round < 2; round++) {
        for (int s = 0; s < size; s++) {
            verify(round ? "alltoallw" : "alltoallv", in + starts2[s], s, me, amounts2[s]);
            CHECK_GUARDED("alltoallv gap", in + starts2[s] - 1, sizeof *in);
        }
        if (round)
            break;
        clear();
        for (int s = 0; s < size; s++) {
            /* Alltoallw takes offsets in bytes. */
            starts[s] *= (int)sizeof(int);
            starts2[s] *= (int)sizeof(int);
        }
        MPI_Alltoallw(out, amounts, starts, types, in, amounts2, starts2, types, MPI_COMM_WORLD);
        for (int s = 0; s < size; s++)
            starts2[s] /= (int)sizeof(int);
    }
    free(types);
}

static long long reference(MPI_Op op, int from, int to, int b, int i)
{
    unsigned x = (unsigned)value(from, b, i);

    for (int s = from + 1; s <= to; s++) {
        unsigned y = (unsigned)value(s, b, i);
        if (op == MPI_SUM)
            x += y;
        else if (op == MPI_PROD)
            x *= y;
        else if (op == MPI_MAX)
            x = x > y ? x : y;
        else if (op == MPI_MIN)
            x = x < y ? x : y;
        else if (op == MPI_BAND)
            x &= y;
        else if (op == MPI_BOR)
            x |= y;
        else
            x ^= y;
    }
    return x;
}

static void verify_reduced(const char *what, MPI_Op op, int from, int to, const int *buf, int b,
                           int n)
{
    for (int i = 0; i < n; i++)
        if (!CHECK(what, reference(op, from, to, b, i), (unsigned)buf[i]))
            return;
}

static void test_reduce(int n, MPI_Op op)
{
    for (int r = 0; r < 3; r++) {
        int root = root_of(r), in_place = r == 1;
        clear();
        put(out, me, 0, n);
        if (in_place && me == root)
            put(in, me, 0, n);
        MPI_Reduce(in_place && me == root ? MPI_IN_PLACE : out, in, n, MPI_UNSIGNED, op, root,
                   MPI_COMM_WORLD);
        if (me == root)
            verify_reduced("reduce", op, 0, size - 1, in, 0, n);
        clear();
        if (in_place)
            put(in, me, 0, n);
        MPI_Allreduce(in_place ? MPI_IN_PLACE : out, in, n, MPI_UNSIGNED, op, MPI_COMM_WORLD);
        verify_reduced("allreduce", op, 0, size - 1, in, 0, n);
        CHECK_GUARDED("behind allreduce", in + n, sizeof *in);
    }
}

static void test_scan(int n, MPI_Op op)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        clear();
        put(in_place ? in : out, me, 0, n);
        MPI_Scan(in_place ? MPI_IN_PLACE : out, in, n, MPI_UNSIGNED, op, MPI_COMM_WORLD);
        verify_reduced("scan", op, 0, me, in, 0, n);
        clear();
        put(in_place ? in : out, me, 0, n);
        MPI_Exscan(in_place ? MPI_IN_PLACE : out, in, n, MPI_UNSIGNED, op, MPI_COMM_WORLD);
        if (me > 0)
            verify_reduced("exscan", op, 0, me - 1, in, 0, n);
    }
}

static void test_reduce_scatter(int n, MPI_Op op)
{
    int *buf;

    for (int in_place = 0; in_place < 2; in_place++) {
        clear();
        buf = in_place ? in : out;
        for (int s = 0; s < size; s++)
            put(buf + s * n, me, s, n);
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : out, in, n, MPI_UNSIGNED, op,
                                 MPI_COMM_WORLD);
        verify_reduced("reduce_scatter_block", op, 0, size - 1, in, me, n);
        set_amounts(n);
        clear();
        for (int s = 0, at = 0; s < size; at += amounts[s++])
            put(buf + at, me, s, amounts[s]);
        MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : out, in, amounts, MPI_UNSIGNED, op,
                           MPI_COMM_WORLD);
        verify_reduced("reduce_scatter", op, 0, size - 1, in, me, amounts[me]);
    }
}

/* Composition of x -> a x + b modulo 2^32: associative, not commutative. */
static void compose(void *left, void *right, int *n, MPI_Datatype *type)
{
    unsigned *l = left, *r = right;

    (void)type;
    for (int i = 0; i < 2 * *n; i += 2) {
        r[i + 1] += r[i] * l[i + 1];
        r[i] *= l[i];
    }
}

static void expect_composed(const char *what, const int *buf, int to, int n)
{
    for (int i = 0; i < n; i++) {
        unsigned acc[2] = {(unsigned)value(0, 0, 2 * i), (unsigned)value(0, 0, 2 * i + 1)};
        for (int s = 1; s <= to; s++) {
            unsigned a = (unsigned)value(s, 0, 2 * i);
            acc[1] = (unsigned)value(s, 0, 2 * i + 1) + a * acc[1];
            acc[0] *= a;
        }
        if (!CHECK(what, acc[0], (unsigned)buf[2 * i]) ||
            !CHECK(what, acc[1], (unsigned)buf[2 * i + 1]))
            return;
    }
}

static void test_user_op(int n)
{
    MPI_Datatype pair;
    MPI_Op op;

    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    n /= 2;
    put(out, me, 0, 2 * n);
    for (int r = 0; r < 3; r++) {
        clear();
        MPI_Reduce(out, in, n, pair, op, root_of(r), MPI_COMM_WORLD);
        if (me == root_of(r))
            expect_composed("user-defined reduce", in, size - 1, n);
    }
    MPI_Allreduce(out, in, n, pair, op, MPI_COMM_WORLD);
    expect_composed("user-defined allreduce", in, size - 1, n);
    MPI_Scan(out, in, n, pair, op, MPI_COMM_WORLD);
    expect_composed("user-defined scan", in, me, n);
    MPI_Exscan(out, in, n, pair, op, MPI_COMM_WORLD);
    if (me > 0)
        expect_composed("user-defined exscan", in, me - 1, n);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
}

struct located {
    double value;
    int at;
};

/* Element i is largest on rank i % size, smallest on the one before; ties (every
   seventh element is the same everywhere) go to the lowest rank. */
static void test_locations(int n)
{
    struct located *mine = guarded_alloc((size_t)n * sizeof *mine);
    struct located *best = guarded_alloc((size_t)n * sizeof *best);

    for (int i = 0; i < n; i++) {
        mine[i].value = i % 7 == 0 ? 1.5 : (me - i % size + size) % size;
        mine[i].at = me;
    }
    for (int largest = 0; largest < 2; largest++) {
        MPI_Allreduce(mine, best, n, MPI_DOUBLE_INT, largest ? MPI_MAXLOC : MPI_MINLOC,
                      MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) {
            int at = largest ? (i + size - 1) % size : i % size;
            double want = largest ? size - 1 : 0;
            CHECK("location", i % 7 == 0 ? 0 : at, best[i].at);
            CHECK("value, doubled", i % 7 == 0 ? 3 : (int)(2 * want), (int)(2 * best[i].value));
        }
    }
    free(best);
    free(mine);
}

static void test_logical_and_double(void)
{
    int flags[3] = {1, me == 0, me == size / 2}, got[3];
    double half = me + 0.5, sum;

    MPI_Allreduce(flags, got, 3, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    CHECK("land", 1, got[0]);
    CHECK("land", size == 1, got[1]);
    MPI_Allreduce(flags, got, 3, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    CHECK("lor", 1, got[2]);
    MPI_Allreduce(flags, got, 3, MPI_INT, MPI_LXOR, MPI_COMM_WORLD);
    CHECK("lxor", size % 2, got[0]);
    MPI_Allreduce(&half, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK("sum of halves, doubled", size * size, (int)(2 * sum));
}

static void test_count(int n)
{
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR};

    test_barrier_bcast(n);
    test_gather_scatter(n);
    test_gatherv_scatterv(n);
    test_allgather(n);
    test_alltoall(n);
    test_alltoallv(n);
    for (int o = 0; o < (n > 100 ? 2 : 7); o++)
        test_reduce(n, ops[o]);
    for (int o = 0; o < (n > 100 ? 1 : 7); o += 3) {
        test_scan(n, ops[o]);
        test_reduce_scatter(n, ops[o]);
    }
    test_user_op(n);
    test_locations(n);
}

int main(int argc, char **argv)
{
    size_t bytes;

    check_init(&argc, &argv);
    me = check_rank;
    size = check_size;
    max_count = argc > 1 ? atoi(argv[1]) : 20000;
    for (size_t i = 0; i < sizeof all_counts / sizeof *all_counts; i++)
        if (all_counts[i] <= max_count)
            counts[n_counts++] = all_counts[i];
    bytes = (size_t)size * (size_t)(max_count + size) * sizeof *in;
    out = must_alloc(bytes);
    in = must_alloc(bytes);
    amounts = must_alloc((size_t)size * sizeof(int));
    starts = must_alloc((size_t)size * sizeof(int));
    amounts2 = must_alloc((size_t)size * sizeof(int));
    starts2 = must_alloc((size_t)size * sizeof(int));
    for (int i = 0; i < n_counts; i++) {
        check_item = counts[i];
        test_count(counts[i]);
    }
    test_logical_and_double();
    free(starts2);
    free(amounts2);
    free(starts);
    free(amounts);
    free(in);
    free(out);
    return check_finish("collectives");
}
