/* Topologies and neighbourhood collectives: cart, graph and dist_graph
   communicators; neighbor_allgather(v), neighbor_alltoall(v,w), blocking and
   non-blocking; cart_shift, cart_coords, cart_sub, dims_create. Left out is
   neighbor_alltoallw on dist_graph communicators: MPICH 4.0.2 delivers wrong data
   where ranks have unequal in and out degrees (MPICH issue 6233). */
#include "check.h"

enum { MAX_DEGREE = 64, N = 300, KINDS = 5, KINDS_BUT_W = 4 };

static const char *const names[KINDS] = {"neighbor_allgather", "neighbor_allgatherv",
                                         "neighbor_alltoall", "neighbor_alltoallv",
                                         "neighbor_alltoallw"};
static int me, size;

/* What the neighbours of this rank are, and per neighbour amounts and offsets. */
struct edges {
    int n_in, n_out, from[MAX_DEGREE], to[MAX_DEGREE];
    int in_count[MAX_DEGREE], out_count[MAX_DEGREE], in_at[MAX_DEGREE], out_at[MAX_DEGREE];
    MPI_Aint in_byte[MAX_DEGREE], out_byte[MAX_DEGREE];
    MPI_Datatype types[MAX_DEGREE];
};

/* Element i of what a sends to b (of allgather: to all, b < 0). */
static int value(int a, int b, int i)
{
    return a * 100003 + (b + 1) * 1009 + i;
}

static int amount(int a, int b)
{
    return (a + b) % 3 == 0 ? 0 : N - a * 7 % 50 - (b + 1) * 3 % 20;
}

static void run(const struct edges *e, int kind, int nonblocking, const int *out, int *in,
                MPI_Comm comm)
{
    int own = amount(me, -1);
    MPI_Request q = MPI_REQUEST_NULL;

    if (kind == 0 && nonblocking)
        MPI_Ineighbor_allgather(out, N, MPI_INT, in, N, MPI_INT, comm, &q);
    else if (kind == 0)
        MPI_Neighbor_allgather(out, N, MPI_INT, in, N, MPI_INT, comm);
    else if (kind == 1 && nonblocking)
        MPI_Ineighbor_allgatherv(out, own, MPI_INT, in, e->in_count, e->in_at, MPI_INT, comm, &q);
    else if (kind == 1)
        MPI_Neighbor_allgatherv(out, own, MPI_INT, in, e->in_count, e->in_at, MPI_INT, comm);
    else if (kind == 2 && nonblocking)
        MPI_Ineighbor_alltoall(out, N, MPI_INT, in, N, MPI_INT, comm, &q);
    else if (kind == 2)
        MPI_Neighbor_alltoall(out, N, MPI_INT, in, N, MPI_INT, comm);
    else if (kind == 3 && nonblocking)
        MPI_Ineighbor_alltoallv(out, e->out_count, e->out_at, MPI_INT, in, e->in_count, e->in_at,
                                MPI_INT, comm, &q);
    else if (kind == 3)
        MPI_Neighbor_alltoallv(out, e->out_count, e->out_at, MPI_INT, in, e->in_count, e->in_at,
                               MPI_INT, comm);
    else if (nonblocking)
        MPI_Ineighbor_alltoallw(out, e->out_count, e->out_byte, e->types, in, e->in_count,
                                e->in_byte, e->types, comm, &q);
    else
        MPI_Neighbor_alltoallw(out, e->out_count, e->out_byte, e->types, in, e->in_count,
                               e->in_byte, e->types, comm);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void set_amounts(struct edges *e, int kind)
{
    for (int k = 0; k < MAX_DEGREE; k++) {
        e->types[k] = MPI_INT;
        e->in_at[k] = e->out_at[k] = k * N;
        e->in_byte[k] = e->out_byte[k] = k * N * (MPI_Aint)sizeof(int);
        if (k < e->n_in)
            e->in_count[k] = kind == 0 || kind == 2 ? N : amount(e->from[k], kind == 1 ? -1 : me);
        if (k < e->n_out)
            e->out_count[k] = kind == 2 ? N : amount(me, e->to[k]);
    }
}

/* Runs one kind over the edges. Slots of MPI_PROC_NULL must stay untouched. */
static void test_kind(struct edges *e, int kind, int nonblocking, MPI_Comm comm)
{
    int *out = must_alloc(MAX_DEGREE * N * sizeof(int));
    int *in = guarded_alloc(MAX_DEGREE * N * sizeof(int));

    set_amounts(e, kind);
    check_item = kind * 10 + nonblocking;
    for (int i = 0; i < N && kind <= 1; i++)
        out[i] = value(me, -1, i);
    for (int k = 0; k < e->n_out && kind >= 2; k++)
        for (int i = 0; i < N; i++)
            out[k * N + i] = value(me, e->to[k], i);
    run(e, kind, nonblocking, out, in, comm);
    for (int k = 0; k < e->n_in; k++) {
        int n = e->from[k] == MPI_PROC_NULL ? 0 : e->in_count[k];
        for (int i = 0; i < n; i++)
            if (!CHECK(names[kind], value(e->from[k], kind <= 1 ? -1 : me, i), in[k * N + i]))
                break;
        CHECK_GUARDED(names[kind], in + k * N + n, (size_t)(N - n) * sizeof(int));
    }
    CHECK_GUARDED(names[kind], in + e->n_in * N, (size_t)(MAX_DEGREE - e->n_in) * N * sizeof(int));
    free(in);
    free(out);
}

static void test_edges(struct edges *e, int kinds, MPI_Comm comm)
{
    for (int kind = 0; kind < kinds; kind++)
        for (int nonblocking = 0; nonblocking < 2; nonblocking++)
            test_kind(e, kind, nonblocking, comm);
}

static void check_dims(int n, int dimensions, const int *dims)
{
    int product = 1;

    for (int d = 0; d < dimensions; d++) {
        product *= dims[d];
        CHECK("dims_create: order", 1, d == 0 || dims[d] <= dims[d - 1]);
    }
    CHECK("dims_create: product", n, product);
}

static void test_dims(void)
{
    int dims[4] = {0};

    for (int n = 1; n <= 64; n++)
        for (int d = 1; d <= 4; d++) {
            memset(dims, 0, sizeof dims);
            MPI_Dims_create(n, d, dims);
            check_item = n;
            check_dims(n, d, dims);
        }
    memset(dims, 0, sizeof dims);
    dims[1] = 3;
    MPI_Dims_create(12, 2, dims);
    CHECK("dims_create: given dimension", 4, dims[0]);
}

/* A ring or a line in every dimension. Two processes that are neighbours twice
   are left to test_dist_graph(), where the order of the pairs is defined. */
static void test_cart(int dimensions, int periodic)
{
    int dims[3] = {0}, periods[3] = {periodic, 0, periodic}, got[3], coords[3], topology, rank;
    struct edges e = {0};
    int twice = 0;
    MPI_Comm cart;

    MPI_Dims_create(size, dimensions, dims);
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &cart);
    MPI_Topo_test(cart, &topology);
    CHECK("topo_test", MPI_CART, topology);
    MPI_Cart_get(cart, dimensions, got, periods, coords);
    MPI_Cart_rank(cart, coords, &rank);
    CHECK("cart_rank", me, rank);
    for (int d = 0, stride = size; d < dimensions; d++) {
        CHECK("cart_get", dims[d], got[d]);
        stride /= dims[d];
        CHECK("coordinate", me / stride % dims[d], coords[d]);
        MPI_Cart_shift(cart, d, 1, &e.from[2 * d], &e.from[2 * d + 1]);
        for (int way = 0; way < 2; way++) {
            int at = coords[d] + (way ? 1 : -1);
            int inside = at >= 0 && at < dims[d];
            int want = me + ((at + dims[d]) % dims[d] - coords[d]) * stride;
            CHECK("cart_shift", inside || periods[d] ? want : MPI_PROC_NULL, e.from[2 * d + way]);
        }
        twice |= periods[d] && dims[d] <= 2;
    }
    e.n_in = e.n_out = 2 * dimensions;
    memcpy(e.to, e.from, sizeof e.to);
    if (!twice)
        test_edges(&e, KINDS, cart);
    MPI_Comm_free(&cart);
}

static void test_cart_sub(void)
{
    int dims[2] = {0}, periods[2] = {0}, keep[2] = {0, 1}, coords[2], rank, n, sum, want = 0;
    MPI_Comm cart, row;

    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart);
    MPI_Comm_rank(cart, &rank);
    MPI_Cart_coords(cart, rank, 2, coords);
    MPI_Cart_sub(cart, keep, &row);
    MPI_Comm_size(row, &n);
    CHECK("cart_sub: size", dims[1], n);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, row);
    for (int c = 0; c < dims[1]; c++)
        want += coords[0] * dims[1] + c;
    CHECK("cart_sub: sum of ranks", want, sum);
    MPI_Comm_free(&row);
    MPI_Comm_free(&cart);
}

/* A star with rank 0 in the middle, plus a ring around it. */
static int star(int rank, int *to)
{
    int n = 0;

    for (int s = 0; s < size; s++)
        if (s != rank && (s == 0 || rank == 0 || s == rank - 1 || s == rank + 1))
            to[n++] = s;
    return n;
}

static void test_graph(void)
{
    int *index = must_alloc((size_t)size * sizeof *index), *to, total = 0, n, topology;
    struct edges e = {0};
    MPI_Comm graph;

    to = must_alloc((size_t)size * (size_t)size * sizeof *to);
    for (int s = 0; s < size; s++)
        index[s] = total += star(s, to + total);
    MPI_Graph_create(MPI_COMM_WORLD, size, index, to, 0, &graph);
    MPI_Topo_test(graph, &topology);
    CHECK("topo_test", MPI_GRAPH, topology);
    MPI_Graph_neighbors_count(graph, me, &n);
    CHECK("graph_neighbors_count", star(me, e.to), n);
    MPI_Graph_neighbors(graph, me, n, e.from);
    for (int k = 0; k < n; k++)
        CHECK("graph_neighbors", e.to[k], e.from[k]);
    e.n_in = e.n_out = n;
    test_edges(&e, KINDS, graph);
    MPI_Comm_free(&graph);
    free(to);
    free(index);
}

/* Rank a sends to a + 1, a + 2 and a - 1, and even ranks to rank 0. */
static int targets(int a, int *to)
{
    int n = 0;

    to[n++] = (a + 1) % size;
    to[n++] = (a + 2) % size;
    to[n++] = (a + size - 1) % size;
    if (a % 2 == 0 && a > 0)
        to[n++] = 0;
    /* An edge twice would make the order of its two messages matter. */
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            if (to[i] == to[j]) {
                to[j] = to[--n];
                j--;
            }
    return n;
}

static void test_dist_graph(int adjacent)
{
    int weights[MAX_DEGREE] = {0}, weighted, n_in, n_out, to[4];
    struct edges e = {0}, got = {0};
    MPI_Comm graph;

    e.n_out = targets(me, e.to);
    for (int s = 0; s < size; s++)
        for (int k = 0, n = targets(s, to); k < n; k++)
            if (to[k] == me)
                e.from[e.n_in++] = s;
    if (adjacent)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, e.n_in, e.from, MPI_UNWEIGHTED, e.n_out,
                                       e.to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    else
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, &e.n_out, e.to, MPI_UNWEIGHTED, MPI_INFO_NULL,
                              0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &n_in, &n_out, &weighted);
    CHECK("dist_graph: sources", e.n_in, n_in);
    CHECK("dist_graph: targets", e.n_out, n_out);
    CHECK("dist_graph: weighted", 0, weighted);
    MPI_Dist_graph_neighbors(graph, n_in, got.from, weights, n_out, got.to, weights);
    got.n_in = n_in;
    got.n_out = n_out;
    for (int k = 0; k < n_in; k++) {
        int found = 0;
        for (int i = 0; i < e.n_in; i++)
            found += e.from[i] == got.from[k];
        CHECK("dist_graph: source", adjacent ? e.from[k] : got.from[k], got.from[k]);
        CHECK("dist_graph: known source", 1, found);
    }
    test_edges(&got, KINDS_BUT_W, graph);
    MPI_Comm_free(&graph);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    me = check_rank;
    size = check_size;
    test_dims();
    for (int dimensions = 1; dimensions <= 3; dimensions++)
        for (int periodic = 0; periodic < 2; periodic++)
            test_cart(dimensions, periodic);
    test_cart_sub();
    test_graph();
    test_dist_graph(0);
    test_dist_graph(1);
    return check_finish("neighbor");
}
