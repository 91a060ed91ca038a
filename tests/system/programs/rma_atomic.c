/* Atomic operations that all ranks aim at the same place: fetch_and_op,
   compare_and_swap, accumulate and get_accumulate of several types and
   operations, on all kinds of windows. */
#include "rma.h"

enum { TURNS = 20, INTS = 16, WINDOW = 4096 };

/* Clears the windows while nobody accesses them. */
static void clear_windows(struct window *w)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, w->win);
    memset(w->base, 0, WINDOW);
    MPI_Win_unlock(check_rank, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The tickets all ranks draw are 0, 1, 2 ... each once, rising for each rank. */
static void test_tickets(struct window *w, int target)
{
    long long one = 1, tickets[TURNS], *all = must_alloc(sizeof tickets * (size_t)check_size);
    int n = TURNS * check_size, *seen = calloc((size_t)n, sizeof *seen);

    clear_windows(w);
    MPI_Win_lock_all(0, w->win);
    for (int i = 0; i < TURNS; i++) {
        MPI_Fetch_and_op(&one, &tickets[i], MPI_LONG_LONG, target, window_at(w, target, 8), MPI_SUM,
                         w->win);
        MPI_Win_flush(target, w->win);
        CHECK("tickets rise", 1, i == 0 || tickets[i] > tickets[i - 1]);
    }
    MPI_Win_unlock_all(w->win);
    MPI_Allgather(tickets, TURNS, MPI_LONG_LONG, all, TURNS, MPI_LONG_LONG, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        if (CHECK("ticket in range", 1, all[i] >= 0 && all[i] < n))
            seen[all[i]]++;
    for (int i = 0; i < n; i++)
        CHECK("each ticket once", 1, seen[i]);
    free(seen);
    free(all);
}

/* Counts up by compare_and_swap, trying again when another was faster. */
static void test_swap(struct window *w, int target)
{
    int old = 0, new, seen, final;

    clear_windows(w);
    MPI_Win_lock_all(0, w->win);
    for (int i = 0; i < TURNS;) {
        new = old + 1;
        MPI_Compare_and_swap(&new, &old, &seen, MPI_INT, target, window_at(w, target, 4), w->win);
        MPI_Win_flush(target, w->win);
        CHECK("never backwards", 1, seen >= old);
        i += seen == old;
        old = seen == old ? new : seen;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Fetch_and_op(NULL, &final, MPI_INT, target, window_at(w, target, 4), MPI_NO_OP, w->win);
    MPI_Win_flush(target, w->win);
    CHECK("count by compare_and_swap", TURNS * check_size, final);
    MPI_Win_unlock_all(w->win);
}

/* Values are handed on by MPI_REPLACE: each comes out exactly once. */
static void test_replace(struct window *w)
{
    long long sums[2] = {0, 0}, all[2];
    int got, last;

    clear_windows(w);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
    for (int i = 0; i < TURNS; i++) {
        int mine = 1 + check_rank * TURNS + i;
        MPI_Fetch_and_op(&mine, &got, MPI_INT, 0, window_at(w, 0, 0), MPI_REPLACE, w->win);
        MPI_Win_flush(0, w->win);
        sums[0] += mine;
        sums[1] += got;
    }
    MPI_Win_unlock(0, w->win);
    MPI_Allreduce(sums, all, 2, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
    MPI_Get(&last, 1, MPI_INT, 0, window_at(w, 0, 0), 1, MPI_INT, w->win);
    MPI_Win_unlock(0, w->win);
    CHECK("replaced values", all[0], all[1] + last);
}

/* All ranks accumulate arrays onto all; what get_accumulate fetches rises. */
static void test_arrays(struct window *w)
{
    double ones[INTS], before[INTS], last[INTS], *here = (double *)(w->base + 64);

    for (int k = 0; k < INTS; k++) {
        ones[k] = k + 1;
        last[k] = -1;
    }
    clear_windows(w);
    MPI_Win_lock_all(0, w->win);
    for (int i = 0; i < TURNS; i++)
        for (int s = 0; s < check_size; s++) {
            MPI_Aint at = window_at(w, s, 64);
            MPI_Accumulate(ones, INTS, MPI_DOUBLE, s, at, INTS, MPI_DOUBLE, MPI_SUM, w->win);
            if (i % 10 != 9)
                continue;
            MPI_Get_accumulate(ones, INTS, MPI_DOUBLE, before, INTS, MPI_DOUBLE, s, at, INTS,
                               MPI_DOUBLE, MPI_SUM, w->win);
            MPI_Win_flush(s, w->win);
            for (int k = 0; k < INTS && s == 0; k++) {
                CHECK("get_accumulate rises", 1, before[k] > last[k]);
                CHECK("whole multiples", 0, (long long)before[k] % (k + 1));
                last[k] = before[k];
            }
        }
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w->win);
    for (int k = 0; k < INTS; k++)
        CHECK("accumulated", (TURNS + TURNS / 10) * check_size * (k + 1), here[k]);
    MPI_Win_unlock(check_rank, w->win);
}

/* Operations other than sums. */
static void test_operations(struct window *w)
{
    const MPI_Op ops[] = {MPI_MAX, MPI_MIN, MPI_BOR, MPI_BXOR, MPI_BAND, MPI_PROD};
    int size = check_size < 16 ? check_size : 16, *here = (int *)w->base, set = 0;
    int bit = check_rank < 16 ? 1 << check_rank : 0, factor = check_rank < 16 ? 2 : 1;
    int mine[] = {check_rank - 5, check_rank - 5, bit, bit, ~bit, factor};
    int want[6];

    for (int s = 0; s < size; s++)
        set |= 1 << s;
    want[0] = check_size - 6 > 0 ? check_size - 6 : 0;
    want[1] = -5;
    want[2] = want[3] = set;
    want[4] = 0xffff & ~set;
    want[5] = 1 << size;
    clear_windows(w);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, w->win);
    here[4] = 0xffff;
    here[5] = 1;
    MPI_Win_unlock(check_rank, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, w->win);
    for (int o = 0; o < 6; o++)
        for (int s = 0; s < check_size; s++)
            MPI_Accumulate(&mine[o], 1, MPI_INT, s, window_at(w, s, (size_t)o * sizeof(int)), 1,
                           MPI_INT, ops[o], w->win);
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w->win);
    for (int o = 0; o < 6; o++) {
        check_item = o;
        CHECK("operation", want[o], here[o]);
    }
    MPI_Win_unlock(check_rank, w->win);
}

int main(int argc, char **argv)
{
    struct window w;

    check_init(&argc, &argv);
    for (int kind = 0; kind < WINDOW_KINDS; kind++) {
        window_make(&w, kind, WINDOW);
        check_item = kind;
        test_tickets(&w, 0);
        test_tickets(&w, check_size - 1);
        test_swap(&w, 0);
        test_swap(&w, check_size / 2);
        test_replace(&w);
        test_arrays(&w);
        test_operations(&w);
        window_free(&w);
    }
    return check_finish("rma_atomic");
}
