/* MPI_THREAD_MULTIPLE: four threads a rank exchange messages in rings at once,
   first over one communicator and a tag per thread, then over a communicator
   per thread, with blocking, non-blocking and probing calls and collectives. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 24, WAYS = 4, MAX_SIZE = 100000 };

struct job {
    int thread, own_comm;
    MPI_Comm comm;
    char *out, *in;
};

static int left, right;

/* Every eighth round a large message; lengths differ between ranks. */
static int size_of(int rank, int thread, int round)
{
    return round % 8 == 7 ? MAX_SIZE - rank : (rank * 7 + thread * 31 + round * 13) % 2000;
}

static uint64_t seed_of(int rank, int thread, int round)
{
    return (uint64_t)((rank * THREADS + thread) * ROUNDS + round);
}

/* Receives after probing; with a communicator of its own, by wildcards. */
static void probed_receive(const struct job *j, int tag, MPI_Status *status)
{
    int source = j->own_comm ? MPI_ANY_SOURCE : left, count;
    MPI_Message message;

    MPI_Mprobe(source, j->own_comm ? MPI_ANY_TAG : tag, j->comm, &message, status);
    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Mrecv(j->in, count, MPI_BYTE, &message, status);
}

static void one_round(const struct job *j, int way, int tag, int n, MPI_Status *status)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int flag = 0;

    if (way == 0) {
        MPI_Sendrecv(j->out, n, MPI_BYTE, right, tag, j->in, MAX_SIZE, MPI_BYTE, left, tag, j->comm,
                     status);
        return;
    }
    if (way == 1) {
        MPI_Irecv(j->in, MAX_SIZE, MPI_BYTE, left, tag, j->comm, &requests[0]);
        MPI_Isend(j->out, n, MPI_BYTE, right, tag, j->comm, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        *status = statuses[0];
        return;
    }
    MPI_Isend(j->out, n, MPI_BYTE, right, tag, j->comm, &requests[0]);
    if (way == 2) {
        probed_receive(j, tag, status);
    } else {
        while (!flag)
            MPI_Iprobe(left, tag, j->comm, &flag, status);
        MPI_Recv(j->in, MAX_SIZE, MPI_BYTE, left, tag, j->comm, status);
    }
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void *work(void *arg)
{
    const struct job *j = arg;
    int t = j->thread, tag = 10 + t, sum;
    MPI_Status status;

    for (int round = 0; round < ROUNDS; round++) {
        int n = size_of(check_rank, t, round), want = size_of(left, t, round);
        check_item = t * 1000 + round;
        fill(j->out, (size_t)n, seed_of(check_rank, t, round));
        one_round(j, (round + t) % WAYS, tag, n, &status);
        CHECK_STATUS("ring of a thread", &status, left, tag, MPI_BYTE, want);
        CHECK_BYTES("ring of a thread", j->in, (size_t)want, seed_of(left, t, round));
        if (!j->own_comm)
            continue;
        /* Keeps a neighbour's next message from the wildcards, too. */
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, j->comm);
        CHECK("allreduce of a thread", round * check_size, sum);
    }
    return NULL;
}

static void run_threads(int own_comm)
{
    struct job jobs[THREADS];
    pthread_t threads[THREADS];

    for (int t = 0; t < THREADS; t++) {
        jobs[t].thread = t;
        jobs[t].own_comm = own_comm;
        jobs[t].comm = MPI_COMM_WORLD;
        if (own_comm)
            MPI_Comm_dup(MPI_COMM_WORLD, &jobs[t].comm);
        jobs[t].out = must_alloc(MAX_SIZE);
        jobs[t].in = must_alloc(MAX_SIZE);
    }
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, work, &jobs[t]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        free(jobs[t].out);
        free(jobs[t].in);
    }
    for (int t = 0; t < THREADS && own_comm; t++)
        MPI_Comm_free(&jobs[t].comm);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    check_start();
    CHECK("thread level", MPI_THREAD_MULTIPLE, provided);
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    if (provided == MPI_THREAD_MULTIPLE) {
        run_threads(0);
        run_threads(1);
    }
    return check_finish("threads");
}
