/* Communicators: dup, idup, split, split_type, create, create_group, group
   operations, intercommunicators (p2p, collectives, merge), attributes, names,
   and many communicators made and freed. */
#include "check.h"

enum { MANY = 120, AT_ONCE = 40 };

static int me, size;

/* A sum over the communicator and a ring message, to see that it works. */
static void exercise(MPI_Comm comm, int want_size, int want_rank, int want_sum)
{
    int rank, n, sum, got = -1;
    MPI_Status status;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &n);
    CHECK("size", want_size, n);
    CHECK("rank", want_rank, rank);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK("sum of world ranks", want_sum, sum);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % n, 3, &got, 1, MPI_INT, (rank + n - 1) % n, 3,
                 comm, &status);
    CHECK("ring", (rank + n - 1) % n, got);
    CHECK_STATUS("ring", &status, (rank + n - 1) % n, 3, MPI_INT, 1);
}

static void test_dup(void)
{
    int sum = size * (size - 1) / 2, result, got[2], value[2] = {me * 2, me * 2 + 1};
    MPI_Comm dup, idup;
    MPI_Request requests[4];

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_idup(MPI_COMM_WORLD, &idup, &requests[0]);
    exercise(dup, size, me, sum);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    exercise(idup, size, me, sum);
    MPI_Comm_compare(dup, idup, &result);
    CHECK("compare", MPI_CONGRUENT, result);
    /* The same tag and partner: only the communicator tells them apart. */
    MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, 1, idup, &requests[0]);
    MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 1, dup, &requests[1]);
    MPI_Isend(&value[0], 1, MPI_INT, (me + 1) % size, 1, dup, &requests[2]);
    MPI_Isend(&value[1], 1, MPI_INT, (me + 1) % size, 1, idup, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++)
        CHECK("apart", (me + size - 1) % size * 2 + i, got[i]);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&idup);
    CHECK("freed", 1, dup == MPI_COMM_NULL);
}

/* Colours by remainder, in reverse order; then some with no colour. */
static void test_split(void)
{
    MPI_Comm comm;

    for (int colours = 1; colours <= 3; colours++) {
        int colour = me % colours, members = 0, sum = 0;
        for (int s = colour; s < size; s += colours) {
            members++;
            sum += s;
        }
        MPI_Comm_split(MPI_COMM_WORLD, colour, -me, &comm);
        exercise(comm, members, members - 1 - me / colours, sum);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_split(MPI_COMM_WORLD, me == 0 ? 5 : MPI_UNDEFINED, 0, &comm);
    CHECK("no colour", me == 0, comm != MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL) {
        exercise(comm, 1, 0, 0);
        MPI_Comm_free(&comm);
    }
}

/* Any partition will do: all members must agree who the members are. */
static void test_split_type(void)
{
    int n, rank, first, firsts, *members, *view;
    MPI_Comm comm;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &rank);
    CHECK("shared: size", 1, n >= 1 && n <= size);
    members = must_alloc((size_t)n * sizeof *members);
    view = must_alloc((size_t)n * sizeof *view);
    MPI_Allgather(&me, 1, MPI_INT, members, 1, MPI_INT, comm);
    CHECK("shared: rank", me, members[rank]);
    memcpy(view, members, (size_t)n * sizeof *view);
    MPI_Bcast(view, n, MPI_INT, 0, comm);
    CHECK("shared: one view", 0, memcmp(view, members, (size_t)n * sizeof *view));
    for (int i = 1; i < n; i++)
        CHECK("shared: in order", 1, members[i] > members[i - 1]);
    first = rank == 0 ? n : 0;
    MPI_Allreduce(&first, &firsts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK("shared: a partition", size, firsts);
    free(view);
    free(members);
    MPI_Comm_free(&comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &comm);
    CHECK("split_type of none", 1, comm == MPI_COMM_NULL);
}

static void test_groups(void)
{
    MPI_Group world, even, odd, all, none, back;
    int ranges[1][3] = {{0, size - 1, 2}}, n, result, rank, first = 0, other;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, ranges, &even);
    MPI_Group_range_excl(world, 1, ranges, &odd);
    MPI_Group_size(even, &n);
    CHECK("even ones", (size + 1) / 2, n);
    MPI_Group_size(odd, &n);
    CHECK("odd ones", size / 2, n);
    MPI_Group_union(odd, even, &all);
    MPI_Group_compare(all, world, &result);
    CHECK("union", size == 1 ? MPI_IDENT : MPI_SIMILAR, result);
    MPI_Group_intersection(odd, even, &none);
    CHECK("intersection", 1, none == MPI_GROUP_EMPTY);
    MPI_Group_difference(world, odd, &back);
    MPI_Group_compare(back, even, &result);
    CHECK("difference", MPI_IDENT, result);
    MPI_Group_rank(even, &rank);
    CHECK("group rank", me % 2 ? MPI_UNDEFINED : me / 2, rank);
    MPI_Group_translate_ranks(all, 1, &first, world, &other);
    CHECK("translate", size > 1, other);
    MPI_Group_free(&back);
    MPI_Group_free(&all);
    MPI_Group_free(&odd);
    MPI_Group_free(&even);
    MPI_Group_free(&world);
}

static void test_create(void)
{
    int n = (size + 1) / 2, *upper = must_alloc((size_t)n * sizeof *upper), sum = 0;
    MPI_Group world, group;
    MPI_Comm comm;

    /* The last n ranks, backwards. */
    for (int i = 0; i < n; i++)
        sum += upper[i] = size - 1 - i;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, n, upper, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
    CHECK("create: member", me >= size - n, comm != MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL) {
        exercise(comm, n, size - 1 - me, sum);
        MPI_Comm_free(&comm);
    }
    if (me >= size - n) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 17, &comm);
        exercise(comm, n, size - 1 - me, sum);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    free(upper);
}

/* side: whether this rank is on the odd side; others: how many are over there. */
static void test_inter_collectives(MPI_Comm inter, int side, int others, int rank)
{
    int *values = must_alloc((size_t)others * sizeof *values), sum, want = 0, token = -1;
    int *out = must_alloc((size_t)others * sizeof *out);

    for (int i = 0; i < others; i++) {
        want += 2 * i + !side;
        out[i] = me * 100 + i;
    }
    MPI_Barrier(inter);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK("sum of the other side", want, sum);
    MPI_Allgather(&me, 1, MPI_INT, values, 1, MPI_INT, inter);
    for (int i = 0; i < others; i++)
        CHECK("allgather of the other side", 2 * i + !side, values[i]);
    MPI_Alltoall(out, 1, MPI_INT, values, 1, MPI_INT, inter);
    for (int i = 0; i < others; i++)
        CHECK("alltoall with the other side", (2 * i + !side) * 100 + rank, values[i]);
    if (!side)
        token = 4242;
    MPI_Bcast(&token, 1, MPI_INT, side ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    CHECK("bcast from the other side", 4242, token);
    free(out);
    free(values);
}

static void test_inter(void)
{
    int side = me % 2, rank = me / 2, others = side ? (size + 1) / 2 : size / 2, n, flag, got;
    MPI_Comm half, inter, dup, merged;
    MPI_Request request;
    MPI_Status status;

    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !side, 23, &inter);
    MPI_Comm_test_inter(inter, &flag);
    CHECK("test_inter", 1, flag);
    MPI_Comm_remote_size(inter, &n);
    CHECK("remote size", others, n);
    /* Everyone sends to its counterpart's place; the other side may be smaller. */
    MPI_Isend(&me, 1, MPI_INT, rank % others, 5, inter, &request);
    for (int from = rank; from < others; from += side ? size / 2 : (size + 1) / 2) {
        MPI_Recv(&got, 1, MPI_INT, from, 5, inter, &status);
        CHECK_STATUS("from the other side", &status, from, 5, MPI_INT, 1);
        CHECK("from the other side", 2 * from + !side, got);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup(inter, &dup);
    test_inter_collectives(inter, side, others, rank);
    test_inter_collectives(dup, side, others, rank);
    for (int high = 0; high < 2; high++) {
        int below = high == side ? 0 : others;
        MPI_Intercomm_merge(inter, high != side, &merged);
        exercise(merged, size, below + rank, size * (size - 1) / 2);
        MPI_Comm_free(&merged);
    }
    MPI_Comm_free(&dup);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static int copies, deletes;

static int copy_plus_one(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    (void)key;
    copies += *(int *)extra;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int count_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    deletes += *(int *)extra;
    return MPI_SUCCESS;
}

static void test_attributes(void)
{
    int key, flag, one = 1, *tag_ub;
    char base[4], *value, name[MPI_MAX_OBJECT_NAME];
    MPI_Comm first, second;

    MPI_Comm_create_keyval(copy_plus_one, count_delete, &key, &one);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_get_attr(first, key, &value, &flag);
    CHECK("no attribute", 0, flag);
    MPI_Comm_set_attr(first, key, base);
    MPI_Comm_dup(first, &second);
    MPI_Comm_get_attr(second, key, &value, &flag);
    CHECK("attribute", 1, flag);
    CHECK("attribute copied", 1, value == base + 1);
    MPI_Comm_delete_attr(first, key);
    MPI_Comm_set_name(second, "second");
    MPI_Comm_get_name(second, name, &flag);
    CHECK("name", 0, strcmp(name, "second"));
    MPI_Comm_free(&second);
    MPI_Comm_free(&first);
    CHECK("copies", 1, copies);
    CHECK("deletes", 2, deletes);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &flag);
    CHECK("tag_ub", 1, flag && *tag_ub >= 32767);
}

static void test_many(void)
{
    MPI_Comm comms[AT_ONCE];
    int sum;

    for (int i = 0; i < MANY; i++) {
        check_item = i;
        if (i >= AT_ONCE)
            MPI_Comm_free(&comms[i % AT_ONCE]);
        if (i % 2)
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i % AT_ONCE]);
        else
            MPI_Comm_split(MPI_COMM_WORLD, 0, size - me, &comms[i % AT_ONCE]);
        MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comms[i % AT_ONCE]);
        CHECK("one of many", size * (size - 1) / 2, sum);
    }
    for (int i = 0; i < AT_ONCE; i++)
        MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    me = check_rank;
    size = check_size;
    test_dup();
    test_split();
    test_split_type();
    test_groups();
    test_create();
    if (size > 1)
        test_inter();
    test_attributes();
    test_many();
    check_item = 0;
    exercise(MPI_COMM_WORLD, size, me, size * (size - 1) / 2);
    exercise(MPI_COMM_SELF, 1, 0, me);
    return check_finish("comms");
}
