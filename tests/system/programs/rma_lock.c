/* Passive target: exclusive and shared locks, lock_all, flush in all forms,
   request-based rput, rget, raccumulate and rget_accumulate, up to 4 MB, on
   created, allocated and dynamic windows. */
#include "rma.h"

enum { MAX_SIZE = 4 << 20, SLACK = 64, TURNS = 30 };

static const size_t sizes[] = {1, 1000, 20000, 300000, MAX_SIZE};
static const int n_sizes = sizeof sizes / sizeof *sizes;
static int left, right;
static char *local;

/* Sets up the own window while nobody else accesses it. */
static void set_own(struct window *w, size_t size, int seed)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, w->win);
    if (seed < 0)
        guard(w->base, size);
    else
        fill(w->base, size, (uint64_t)seed);
    MPI_Win_unlock(check_rank, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A counter on rank 0, read and written back under an exclusive lock. */
static void test_exclusive(struct window *w)
{
    int value;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, w->win);
    memset(w->base, 0, sizeof(int));
    MPI_Win_unlock(check_rank, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < TURNS; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win);
        MPI_Get(&value, 1, MPI_INT, 0, window_at(w, 0, 0), 1, MPI_INT, w->win);
        MPI_Win_flush(0, w->win);
        value++;
        MPI_Put(&value, 1, MPI_INT, 0, window_at(w, 0, 0), 1, MPI_INT, w->win);
        MPI_Win_unlock(0, w->win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
    MPI_Get(&value, 1, MPI_INT, 0, window_at(w, 0, 0), 1, MPI_INT, w->win);
    MPI_Win_unlock(0, w->win);
    CHECK("counter under exclusive locks", TURNS * check_size, value);
}

/* Everyone writes a part of its own to everyone under shared locks. */
static void test_shared(struct window *w)
{
    size_t part = MAX_SIZE / 8 / (size_t)check_size;

    set_own(w, part * (size_t)check_size + SLACK, -1);
    for (int k = 0; k < check_size; k++) {
        int to = (check_rank + k) % check_size;
        fill(local, part, (uint64_t)(check_rank * check_size + to));
        MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w->win);
        MPI_Put(local, (int)part, MPI_BYTE, to, window_at(w, to, part * (size_t)check_rank),
                (int)part, MPI_BYTE, w->win);
        MPI_Win_unlock(to, w->win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w->win);
    for (int s = 0; s < check_size; s++)
        CHECK_BYTES("put under a shared lock", w->base + (size_t)s * part, part,
                    (uint64_t)(s * check_size + check_rank));
    CHECK_GUARDED("behind the parts", w->base + part * (size_t)check_size, SLACK);
    MPI_Win_unlock(check_rank, w->win);
}

static void flush(struct window *w, int target, int way)
{
    if (way == 0)
        MPI_Win_flush(target, w->win);
    else
        MPI_Win_flush_all(w->win);
}

/* Put to the right, flush, get it back within one epoch. */
static void test_lock_all(struct window *w, size_t size)
{
    set_own(w, size + SLACK, -1);
    MPI_Win_lock_all(0, w->win);
    for (int way = 0; way < 2; way++) {
        fill(local, size, (uint64_t)(check_rank + 100 * way));
        MPI_Put(local, (int)size, MPI_BYTE, right, window_at(w, right, 0), (int)size, MPI_BYTE,
                w->win);
        if (way == 0)
            MPI_Win_flush_local(right, w->win);
        else
            MPI_Win_flush_local_all(w->win);
        guard(local, size);
        flush(w, right, way);
        MPI_Get(local, (int)size, MPI_BYTE, right, window_at(w, right, 0), (int)size, MPI_BYTE,
                w->win);
        flush(w, right, way);
        CHECK_BYTES("put, flushed, got back", local, size, (uint64_t)(check_rank + 100 * way));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(w->win);
    CHECK_BYTES("put under lock_all", w->base, size, (uint64_t)(left + 100));
    CHECK_GUARDED("behind the put", w->base + size, SLACK);
    MPI_Win_unlock_all(w->win);
}

static void test_requests(struct window *w, size_t size)
{
    char *back = guarded_alloc(size);
    MPI_Request requests[2];

    set_own(w, 2 * size + SLACK, check_rank);
    fill(local, size, (uint64_t)(check_rank + 1000));
    MPI_Win_lock_all(0, w->win);
    /* Reads the first half there, writes the second. */
    MPI_Rput(local, (int)size, MPI_BYTE, right, window_at(w, right, size), (int)size, MPI_BYTE,
             w->win, &requests[0]);
    MPI_Rget(back, (int)size, MPI_BYTE, right, window_at(w, right, 0), (int)size, MPI_BYTE, w->win,
             &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_BYTES("rget", back, size, (uint64_t)right);
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w->win);
    CHECK_BYTES("rput", w->base + size, size, (uint64_t)(left + 1000));
    MPI_Win_unlock(check_rank, w->win);
    free(back);
}

static void test_accumulate_requests(struct window *w, size_t size)
{
    int n = (int)(size / sizeof(int)), *mine = (int *)local, *there = (int *)w->base;
    int *before = guarded_alloc(size);
    MPI_Request request;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, w->win);
    for (int i = 0; i < n; i++) {
        mine[i] = 2 * check_rank + i;
        there[i] = 5 * check_rank + i;
    }
    MPI_Win_unlock(check_rank, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, w->win);
    MPI_Raccumulate(mine, n, MPI_INT, right, window_at(w, right, 0), n, MPI_INT, MPI_SUM, w->win,
                    &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget_accumulate(mine, n, MPI_INT, before, n, MPI_INT, right, window_at(w, right, 0), n,
                        MPI_INT, MPI_REPLACE, w->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        if (!CHECK("raccumulate", 5 * right + i + mine[i], before[i]))
            break;
    MPI_Win_unlock(right, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w->win);
    for (int i = 0; i < n; i++)
        if (!CHECK("rget_accumulate", 2 * left + i, there[i]))
            break;
    MPI_Win_unlock(check_rank, w->win);
    free(before);
}

int main(int argc, char **argv)
{
    struct window w;

    check_init(&argc, &argv);
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    local = must_alloc(MAX_SIZE + SLACK);
    for (int kind = 0; kind < WINDOW_KINDS; kind++) {
        window_make(&w, kind, 2 * MAX_SIZE + SLACK);
        check_item = kind;
        test_exclusive(&w);
        test_shared(&w);
        for (int i = 0; i < n_sizes; i++) {
            check_item = kind * 10000000 + (long)sizes[i];
            test_lock_all(&w, sizes[i]);
            test_requests(&w, sizes[i]);
            test_accumulate_requests(&w, sizes[i]);
        }
        window_free(&w);
    }
    free(local);
    return check_finish("rma_lock");
}
