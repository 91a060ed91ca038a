/* One-sided communication between fences, on created, allocated and dynamic
   windows: put, get, accumulate and get_accumulate, 1 B to 4 MB, and derived
   types on both sides. */
#include "rma.h"

enum { MAX_SIZE = 4 << 20, SLACK = 64 };

static const size_t sizes[] = {1, 8, 1000, 8192, 65537, 262144, MAX_SIZE};
static const int n_sizes = sizeof sizes / sizeof *sizes;
static int left, right;
static char *local;

static void test_put_get(struct window *w, size_t size)
{
    fill(local, size, (uint64_t)check_rank);
    guard(w->base, size + SLACK);
    MPI_Win_fence(0, w->win);
    MPI_Put(local, (int)size, MPI_BYTE, right, window_at(w, right, 3), (int)size, MPI_BYTE, w->win);
    MPI_Win_fence(0, w->win);
    CHECK_GUARDED("before a put", w->base, 3);
    CHECK_BYTES("put", w->base + 3, size, (uint64_t)left);
    CHECK_GUARDED("behind a put", w->base + 3 + size, SLACK - 3);

    guard(local, size + SLACK);
    MPI_Win_fence(0, w->win);
    MPI_Get(local, (int)size, MPI_BYTE, right, window_at(w, right, 3), (int)size, MPI_BYTE, w->win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    CHECK_BYTES("get", local, size, (uint64_t)check_rank);
    CHECK_GUARDED("behind a get", local + size, SLACK);
}

/* All ranks add to all windows. */
static void test_accumulate(struct window *w, size_t size)
{
    int n = (int)(size / sizeof(int)), *mine = (int *)local, *sums = (int *)w->base;
    int ranks = check_size * (check_size + 1) / 2;

    for (int i = 0; i < n; i++) {
        mine[i] = (check_rank + 1) * (i + 1);
        sums[i] = i;
    }
    MPI_Win_fence(0, w->win);
    for (int s = 0; s < check_size; s++)
        MPI_Accumulate(mine, n, MPI_INT, s, window_at(w, s, 0), n, MPI_INT, MPI_SUM, w->win);
    MPI_Win_fence(0, w->win);
    for (int i = 0; i < n; i++)
        if (!CHECK("accumulate", i + ranks * (i + 1), sums[i]))
            break;
}

static void test_get_accumulate(struct window *w, size_t size)
{
    int n = (int)(size / sizeof(int)), *mine = (int *)local, *there = (int *)w->base;
    int *before = guarded_alloc(size);

    for (int i = 0; i < n; i++) {
        mine[i] = i % 3 + check_rank;
        there[i] = check_rank * 10 + i;
    }
    MPI_Win_fence(0, w->win);
    MPI_Get_accumulate(mine, n, MPI_INT, before, n, MPI_INT, right, window_at(w, right, 0), n,
                       MPI_INT, MPI_SUM, w->win);
    MPI_Win_fence(0, w->win);
    for (int i = 0; i < n; i++) {
        CHECK("get_accumulate: before", right * 10 + i, before[i]);
        CHECK("get_accumulate: after", check_rank * 10 + i + i % 3 + left, there[i]);
    }
    free(before);
}

/* Every second int from here goes to every third int there, and back. */
static void test_derived(struct window *w, size_t size)
{
    int n = (int)(size / 3 / sizeof(int)), *mine = (int *)local, *there = (int *)w->base;
    MPI_Datatype twos, threes;

    MPI_Type_vector(n, 1, 2, MPI_INT, &twos);
    MPI_Type_vector(n, 1, 3, MPI_INT, &threes);
    MPI_Type_commit(&twos);
    MPI_Type_commit(&threes);
    for (int i = 0; i < 2 * n; i++)
        mine[i] = check_rank * 1000 + i;
    guard(there, size);
    MPI_Win_fence(0, w->win);
    MPI_Put(mine, 1, twos, right, window_at(w, right, 0), 1, threes, w->win);
    MPI_Win_fence(0, w->win);
    for (int i = 0; i < n; i++) {
        CHECK("derived put", left * 1000 + 2 * i, there[3 * i]);
        CHECK_GUARDED("derived put: gap", &there[3 * i + 1], (i < n - 1 ? 2 : 0) * sizeof(int));
    }
    guard(mine, size);
    MPI_Win_fence(0, w->win);
    MPI_Get(mine, 1, twos, right, window_at(w, right, 0), 1, threes, w->win);
    MPI_Win_fence(0, w->win);
    MPI_Accumulate(mine, 1, twos, right, window_at(w, right, 0), 1, threes, MPI_SUM, w->win);
    MPI_Win_fence(0, w->win);
    for (int i = 0; i < n; i++) {
        CHECK("derived get", check_rank * 1000 + 2 * i, mine[2 * i]);
        CHECK("derived accumulate", 2 * (left * 1000 + 2 * i), there[3 * i]);
        if (i < n - 1)
            CHECK_GUARDED("derived get: gap", &mine[2 * i + 1], sizeof(int));
    }
    MPI_Type_free(&twos);
    MPI_Type_free(&threes);
}

/* Many small puts to everyone in one epoch. */
static void test_many(struct window *w)
{
    enum { EACH = 200 };
    int *mine = (int *)local, *there = (int *)w->base;

    guard(there, (size_t)(EACH * check_size) * sizeof(int));
    MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
    for (int i = 0; i < EACH; i++)
        for (int s = 0; s < check_size; s++) {
            int at = check_rank * EACH + i;
            mine[i * check_size + s] = check_rank * 100000 + s * 1000 + i;
            MPI_Put(&mine[i * check_size + s], 1, MPI_INT, s,
                    window_at(w, s, (size_t)at * sizeof(int)), 1, MPI_INT, w->win);
        }
    MPI_Win_fence(MPI_MODE_NOSTORE, w->win);
    for (int k = 0; k < EACH * check_size; k++)
        CHECK("many puts", k / EACH * 100000 + check_rank * 1000 + k % EACH, there[k]);
}

int main(int argc, char **argv)
{
    struct window w;

    check_init(&argc, &argv);
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    local = must_alloc(MAX_SIZE + SLACK);
    for (int kind = 0; kind < WINDOW_KINDS; kind++) {
        window_make(&w, kind, MAX_SIZE + SLACK);
        for (int i = 0; i < n_sizes; i++) {
            check_item = kind * 10000000 + (long)sizes[i];
            test_put_get(&w, sizes[i]);
            test_accumulate(&w, sizes[i]);
            test_get_accumulate(&w, sizes[i]);
            if (sizes[i] <= 262144)
                test_derived(&w, sizes[i]);
        }
        test_many(&w);
        window_free(&w);
    }
    free(local);
    return check_finish("rma_fence");
}
