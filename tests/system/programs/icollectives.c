/* Every non-blocking collective: all of them outstanding at once on one
   communicator, several rounds on two communicators, with point-to-point
   messages under way, completed by waitall, testany or one by one in reverse.
   argv[1]: the largest count of elements (default 5000). */
#include "check.h"

enum { KINDS = 17, P2P = 6, ROUNDS = 6, COMMS = 2 };

/* Buffers of one collective. Counts and offsets are per rank. */
struct call {
    int *out, *in, *amounts, *starts, *amounts2, *starts2;
    MPI_Datatype *types;
};

static const char *const names[KINDS] = {
    "ibarrier",   "ibcast",     "igather",     "igatherv",        "iscatter",
    "iscatterv",  "iallgather", "iallgatherv", "ialltoall",       "ialltoallv",
    "ialltoallw", "ireduce",    "iallreduce",  "ireduce_scatter", "ireduce_scatter_block",
    "iscan",      "iexscan"};
static int me, size;

/* Element i of what rank a has for rank b in round r. */
static int value(int r, int a, int b, int i)
{
    return r * 1000003 + a * 7919 + b * 131 + i * 3 + 1;
}

static int sum_value(int r, int ranks, int b, int i)
{
    int sum = 0;

    for (int a = 0; a < ranks; a++)
        sum += value(r, a, b, i);
    return sum;
}

static void make_call(struct call *c)
{
    size_t ints = (size_t)size * sizeof(int);

    c->amounts = must_alloc(ints);
    c->starts = must_alloc(ints);
    c->amounts2 = must_alloc(ints);
    c->starts2 = must_alloc(ints);
    c->types = must_alloc((size_t)size * sizeof *c->types);
}

static void free_call(struct call *c)
{
    free(c->amounts);
    free(c->starts);
    free(c->amounts2);
    free(c->starts2);
    free(c->types);
}

/* Rank a sends b this much in the v and w variants with a base of n. */
static int amount(int a, int b, int n)
{
    return (a + b) % 3 == 0 ? n / 2 : n - (a + b) % 2 * (n / 3);
}

static void fill_call(struct call *c, int kind, int n, int r)
{
    int w = kind == 10 ? (int)sizeof(int) : 1;

    c->out = must_alloc((size_t)size * (size_t)n * sizeof(int));
    c->in = guarded_alloc((size_t)size * (size_t)n * sizeof(int));
    for (int s = 0; s < size; s++) {
        c->starts[s] = c->starts2[s] = s * n * w;
        c->amounts[s] = kind == 3 || kind == 5 || kind == 7 ? amount(s, s, n) : amount(me, s, n);
        c->amounts2[s] = amount(s, me, n);
        c->types[s] = MPI_INT;
        for (int i = 0; i < n; i++)
            c->out[s * n + i] = value(r, me, s, i);
    }
    if (kind == 1 && me == r % size)
        for (int i = 0; i < n; i++)
            c->in[i] = value(r, me, 0, i);
    if (kind == 13) {
        /* Contiguous parts of different lengths. */
        for (int s = 0, at = 0; s < size; at += c->amounts[s++]) {
            c->amounts[s] = amount(s, s, n);
            for (int i = 0; i < c->amounts[s]; i++)
                c->out[at + i] = value(r, me, s, i);
        }
    }
}

static void start_rooted(const struct call *c, int kind, int n, int root, MPI_Comm comm,
                         MPI_Request *q)
{
    if (kind == 0)
        MPI_Ibarrier(comm, q);
    else if (kind == 1)
        MPI_Ibcast(c->in, n, MPI_INT, root, comm, q);
    else if (kind == 2)
        MPI_Igather(c->out, n, MPI_INT, c->in, n, MPI_INT, root, comm, q);
    else if (kind == 3)
        MPI_Igatherv(c->out, c->amounts[me], MPI_INT, c->in, c->amounts, c->starts, MPI_INT, root,
                     comm, q);
    else if (kind == 4)
        MPI_Iscatter(c->out, n, MPI_INT, c->in, n, MPI_INT, root, comm, q);
    else if (kind == 5)
        MPI_Iscatterv(c->out, c->amounts, c->starts, MPI_INT, c->in, c->amounts[me], MPI_INT, root,
                      comm, q);
    else
        MPI_Ireduce(c->out, c->in, n, MPI_INT, MPI_SUM, root, comm, q);
}

static void start_call(const struct call *c, int kind, int n, int root, MPI_Comm comm,
                       MPI_Request *q)
{
    if (kind <= 5 || kind == 11)
        start_rooted(c, kind, n, root, comm, q);
    else if (kind == 6)
        MPI_Iallgather(c->out, n, MPI_INT, c->in, n, MPI_INT, comm, q);
    else if (kind == 7)
        MPI_Iallgatherv(c->out, c->amounts[me], MPI_INT, c->in, c->amounts, c->starts, MPI_INT,
                        comm, q);
    else if (kind == 8)
        MPI_Ialltoall(c->out, n, MPI_INT, c->in, n, MPI_INT, comm, q);
    else if (kind == 9)
        MPI_Ialltoallv(c->out, c->amounts, c->starts, MPI_INT, c->in, c->amounts2, c->starts2,
                       MPI_INT, comm, q);
    else if (kind == 10)
        MPI_Ialltoallw(c->out, c->amounts, c->starts, c->types, c->in, c->amounts2, c->starts2,
                       c->types, comm, q);
    else if (kind == 12)
        MPI_Iallreduce(c->out, c->in, n, MPI_INT, MPI_SUM, comm, q);
    else if (kind == 13)
        MPI_Ireduce_scatter(c->out, c->in, c->amounts, MPI_INT, MPI_SUM, comm, q);
    else if (kind == 14)
        MPI_Ireduce_scatter_block(c->out, c->in, n, MPI_INT, MPI_SUM, comm, q);
    else if (kind == 15)
        MPI_Iscan(c->out, c->in, n, MPI_INT, MPI_SUM, comm, q);
    else
        MPI_Iexscan(c->out, c->in, n, MPI_INT, MPI_SUM, comm, q);
}

/* The n values rank a had for b must be at buf, and nothing behind them. */
static void verify(const char *what, int *buf, int r, int a, int b, int n, int room)
{
    for (int i = 0; i < n; i++)
        if (!CHECK(what, value(r, a, b, i), buf[i]))
            return;
    CHECK_GUARDED(what, buf + n, (size_t)(room - n) * sizeof(int));
}

static void verify_sum(const char *what, const int *buf, int r, int ranks, int b, int n)
{
    for (int i = 0; i < n; i++)
        if (!CHECK(what, sum_value(r, ranks, b, i), buf[i]))
            return;
}

static void verify_call(const struct call *c, int kind, int n, int r)
{
    const char *name = names[kind];
    int root = r % size;

    check_item = n;
    if (kind == 1)
        verify(name, c->in, r, root, 0, n, n);
    else if (kind == 4 || kind == 5)
        verify(name, c->in, r, root, me, kind == 4 ? n : c->amounts[me], n);
    else if (kind == 11 && me == root)
        verify_sum(name, c->in, r, size, 0, n);
    else if (kind == 12)
        verify_sum(name, c->in, r, size, 0, n);
    else if (kind == 13 || kind == 14)
        verify_sum(name, c->in, r, size, me, kind == 13 ? c->amounts[me] : n);
    else if (kind == 15 || (kind == 16 && me > 0))
        verify_sum(name, c->in, r, me + (kind == 15), 0, n);
    for (int s = 0; s < size; s++)
        if ((kind == 2 && me == root) || kind == 6)
            verify(name, c->in + s * n, r, s, 0, n, n);
        else if ((kind == 3 && me == root) || kind == 7)
            verify(name, c->in + s * n, r, s, 0, c->amounts[s], n);
        else if (kind >= 8 && kind <= 10)
            verify(name, c->in + s * n, r, s, me, kind == 8 ? n : c->amounts2[s], n);
}

/* Ring messages, of which half are started before the collectives. */
static void start_p2p(int from, int to, char *out, char *in, int bytes, MPI_Request *requests)
{
    int left = (me + size - 1) % size, right = (me + 1) % size;

    for (int p = from; p < to; p++) {
        fill(out + p * bytes, (size_t)bytes, (uint64_t)(me * P2P + p));
        MPI_Isend(out + p * bytes, bytes, MPI_BYTE, right, p, MPI_COMM_WORLD, &requests[2 * p]);
        MPI_Irecv(in + p * bytes, bytes, MPI_BYTE, left, p, MPI_COMM_WORLD, &requests[2 * p + 1]);
    }
}

static void complete(MPI_Request *requests, int n, int way)
{
    int index = 0, flag = 0;

    if (way == 0)
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    else if (way == 1)
        for (int i = n - 1; i >= 0; i--)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    else
        while (!flag || index != MPI_UNDEFINED)
            MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        CHECK("request freed", 1, requests[i] == MPI_REQUEST_NULL);
}

static void one_round(struct call calls[COMMS][KINDS], MPI_Comm *comms, int n, int bytes, int r)
{
    MPI_Request requests[COMMS * KINDS + 2 * P2P];
    char *out = must_alloc((size_t)(P2P * bytes)), *in = guarded_alloc((size_t)(P2P * bytes));
    int left = (me + size - 1) % size;

    for (int c = 0; c < COMMS; c++)
        for (int k = 0; k < KINDS; k++)
            fill_call(&calls[c][k], k, n, r + c);
    start_p2p(0, P2P / 2, out, in, bytes, requests);
    /* The two communicators are served in an order of each rank's own. */
    for (int step = 0; step < COMMS; step++)
        for (int k = 0; k < KINDS; k++) {
            int c = (step + me) % COMMS, at = 2 * P2P + c * KINDS + k;
            start_call(&calls[c][k], k, n, (r + c) % size, comms[c], &requests[at]);
        }
    start_p2p(P2P / 2, P2P, out, in, bytes, requests);
    complete(requests, COMMS * KINDS + 2 * P2P, r % 3);
    for (int c = 0; c < COMMS; c++)
        for (int k = 0; k < KINDS; k++) {
            verify_call(&calls[c][k], k, n, r + c);
            free(calls[c][k].out);
            free(calls[c][k].in);
        }
    for (int p = 0; p < P2P; p++)
        CHECK_BYTES("message among collectives", in + p * bytes, (size_t)bytes,
                    (uint64_t)(left * P2P + p));
    free(in);
    free(out);
}

/* The barrier must not end before the last rank has started it. */
static void test_ibarrier(void)
{
    MPI_Request request;
    int flag, token = 0;

    if (me == size - 1 && size > 1) {
        MPI_Recv(&token, 1, MPI_INT, 0, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
    } else {
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        for (int i = 0; i < 1000 && size > 1; i++) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            if (me == 0)
                CHECK("barrier too early", 0, flag);
        }
        if (me == 0 && size > 1)
            MPI_Send(&token, 1, MPI_INT, size - 1, 50, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    static const int counts[] = {1, 60, 5000};
    struct call calls[COMMS][KINDS];
    MPI_Comm comms[COMMS];
    int max_count;

    check_init(&argc, &argv);
    me = check_rank;
    size = check_size;
    max_count = argc > 1 ? atoi(argv[1]) : 5000;
    for (int c = 0; c < COMMS; c++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
        for (int k = 0; k < KINDS; k++)
            make_call(&calls[c][k]);
    }
    test_ibarrier();
    for (size_t i = 0; i < sizeof counts / sizeof *counts && counts[i] <= max_count; i++)
        for (int r = 0; r < ROUNDS; r++)
            one_round(calls, comms, counts[i], counts[i] * 20, r);
    for (int c = 0; c < COMMS; c++) {
        MPI_Comm_free(&comms[c]);
        for (int k = 0; k < KINDS; k++)
            free_call(&calls[c][k]);
    }
    return check_finish("icollectives");
}
