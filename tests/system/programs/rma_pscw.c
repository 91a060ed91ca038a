/* Post, start, complete, wait and test: a ring with puts, gets and accumulates
   up to 4 MB, and one rank exposed to all others, on all kinds of windows. Left out:
   roots in turn without a barrier, over which MPICH 4.0.2 hangs now and then. */
#include "rma.h"

enum { MAX_SIZE = 4 << 20, SLACK = 64, ROUNDS = 20 };

static const size_t sizes[] = {4, 1000, 20000, 300000, MAX_SIZE};
static const int n_sizes = sizeof sizes / sizeof *sizes;
static int left, right;
static char *local;
static MPI_Group world;

static void close_exposure(struct window *w, int by_test)
{
    int flag = 0;

    if (!by_test)
        MPI_Win_wait(w->win);
    while (by_test && !flag)
        MPI_Win_test(w->win, &flag);
}

static void test_ring(struct window *w, size_t size, int by_test)
{
    MPI_Group from, to;
    int *ints = (int *)w->base, *mine = (int *)local, n = (int)(size / sizeof(int));

    MPI_Group_incl(world, 1, &left, &from);
    MPI_Group_incl(world, 1, &right, &to);
    fill(local, size, (uint64_t)check_rank);
    guard(w->base, size + SLACK);
    MPI_Win_post(from, 0, w->win);
    MPI_Win_start(to, 0, w->win);
    MPI_Put(local, (int)size, MPI_BYTE, right, window_at(w, right, 0), (int)size, MPI_BYTE, w->win);
    MPI_Win_complete(w->win);
    close_exposure(w, by_test);
    CHECK_BYTES("put", w->base, size, (uint64_t)left);
    CHECK_GUARDED("behind the put", w->base + size, SLACK);

    guard(local, size + SLACK);
    MPI_Win_post(from, 0, w->win);
    MPI_Win_start(to, 0, w->win);
    MPI_Get(local, (int)size, MPI_BYTE, right, window_at(w, right, 0), (int)size, MPI_BYTE, w->win);
    MPI_Win_complete(w->win);
    CHECK_BYTES("get", local, size, (uint64_t)check_rank);
    CHECK_GUARDED("behind the get", local + size, SLACK);
    close_exposure(w, by_test);

    for (int i = 0; i < n; i++) {
        mine[i] = check_rank + i;
        ints[i] = 3 * i;
    }
    MPI_Win_post(from, 0, w->win);
    MPI_Win_start(to, 0, w->win);
    MPI_Accumulate(mine, n, MPI_INT, right, window_at(w, right, 0), n, MPI_INT, MPI_SUM, w->win);
    MPI_Win_complete(w->win);
    close_exposure(w, by_test);
    for (int i = 0; i < n; i++)
        if (!CHECK("accumulate", 4 * i + left, ints[i]))
            break;
    MPI_Group_free(&from);
    MPI_Group_free(&to);
}

/* The root is exposed to all others, which put one int and read another. */
static void test_root(struct window *w, int root, int round)
{
    int *ints = (int *)w->base, value = check_rank * 1000 + round, got = -1;
    MPI_Group others, alone;

    /* MPI_Win_start of MPICH 4.0.2 counts a post of the next root, too, and hangs. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Group_excl(world, 1, &root, &others);
    MPI_Group_incl(world, 1, &root, &alone);
    if (check_rank == root) {
        for (int s = 0; s < check_size; s++) {
            ints[s] = -1;
            ints[check_size + s] = s + 77 * round;
        }
        MPI_Win_post(others, 0, w->win);
        MPI_Win_wait(w->win);
        for (int s = 0; s < check_size; s++)
            CHECK("put to the root", s == root ? -1 : s * 1000 + round, ints[s]);
    } else {
        size_t mine = (size_t)check_rank * sizeof(int);
        size_t other = mine + (size_t)check_size * sizeof(int);
        MPI_Win_start(alone, 0, w->win);
        MPI_Put(&value, 1, MPI_INT, root, window_at(w, root, mine), 1, MPI_INT, w->win);
        MPI_Get(&got, 1, MPI_INT, root, window_at(w, root, other), 1, MPI_INT, w->win);
        MPI_Win_complete(w->win);
        CHECK("got from the root", check_rank + 77 * round, got);
    }
    MPI_Group_free(&others);
    MPI_Group_free(&alone);
}

int main(int argc, char **argv)
{
    struct window w;

    check_init(&argc, &argv);
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    local = must_alloc(MAX_SIZE + SLACK);
    for (int kind = 0; kind < WINDOW_KINDS; kind++) {
        window_make(&w, kind, MAX_SIZE + SLACK);
        for (int i = 0; i < n_sizes; i++) {
            check_item = kind * 10000000 + (long)sizes[i];
            test_ring(&w, sizes[i], i % 2);
        }
        for (int round = 0; round < ROUNDS; round++) {
            check_item = round;
            test_root(&w, round % check_size, round);
        }
        window_free(&w);
    }
    MPI_Group_free(&world);
    free(local);
    return check_finish("rma_pscw");
}
