/* One-sided communication while a second thread, which does not call MPI, allocates and frees
   memory: the addresses that MPICH sends to be given back must not depend on it. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 60, HELD = 64, CELLS = 4096, AT_ONCE = 700 };

static volatile int over;
static char *mailbox[HELD]; /* what the first thread allocates, and the second one frees */

static void *allocate(void *arg)
{
    void *held[HELD] = {0};
    unsigned seed = (unsigned)getpid();

    (void)arg;
    while (!over) {
        int i = rand_r(&seed) % HELD;
        size_t size = rand_r(&seed) % 8 ? rand_r(&seed) % 2000 : 100000 + rand_r(&seed) % 400000;

        free(held[i]);
        held[i] = malloc(size + 1);
        memset(held[i], 1, size < 100 ? size : 100);
        free(__atomic_exchange_n(&mailbox[i], NULL, __ATOMIC_ACQ_REL));
        if (rand_r(&seed) % 64 == 0)
            usleep(200);
    }
    for (int i = 0; i < HELD; i++)
        free(held[i]);
    return NULL;
}

/* Everyone adds to a cell of everyone, and reads what the others have added. */
static void one_round(MPI_Win win, int round)
{
    long *got = malloc(CELLS * sizeof(*got)), *ones = malloc(CELLS * sizeof(*ones));
    int to = (check_rank + round) % check_size;
    static long many[AT_ONCE];
    static MPI_Request requests[AT_ONCE];
    int at_once = AT_ONCE * (round + 1) / ROUNDS; /* more and more */
    long one = 1, before;

    for (int i = 0; i < HELD; i++)
        free(__atomic_exchange_n(&mailbox[i], malloc((size_t)(i * 37 % 1500)), __ATOMIC_ACQ_REL));
    for (int i = 0; i < CELLS; i++)
        ones[i] = 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
    for (int i = 0; i < at_once; i++)
        MPI_Rget_accumulate(&one, 1, MPI_LONG, &many[i], 1, MPI_LONG, to, CELLS + 1, 1, MPI_LONG,
                            MPI_SUM, win, &requests[i]);
    MPI_Waitall(at_once, requests, MPI_STATUSES_IGNORE);
    for (int i = 1; i < at_once; i++)
        CHECK("many at once", many[0] + i, many[i]);
    MPI_Get_accumulate(ones, CELLS, MPI_LONG, got, CELLS, MPI_LONG, to, 0, CELLS, MPI_LONG, MPI_SUM,
                       win);
    MPI_Win_flush(to, win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, to, CELLS, MPI_SUM, win);
    MPI_Win_unlock(to, win);
    for (int i = 1; i < CELLS; i++)
        CHECK("a cell that was added to", got[0], got[i]);
    CHECK("the counter beside them", got[0], before);
    free(got);
    free(ones);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    long *base;
    MPI_Win win;

    check_init(&argc, &argv);
    MPI_Win_allocate((CELLS + 2) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                     &win);
    memset(base, 0, (CELLS + 2) * sizeof(long));
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_create(&thread, NULL, allocate, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        check_item = round;
        one_round(win, round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK("all that was added", (long)ROUNDS, base[CELLS]);
    over = 1;
    pthread_join(thread, NULL);
    MPI_Win_free(&win);
    return check_finish("rma_beside");
}
