/* Programs that ask MPI again and again instead of waiting, with 0 to 5 us of computing between two
 * questions: prints "KIND SECONDS" for each kind.
 *   polling TURNS FENCES    on 1 rank: collectives and fences; on 2 also round trips
 *   polling TURNS threads   on 2 ranks: round trips by Iprobe while a second thread of each rank
 *                           is in MPI_Recv */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

enum { TAG_TURN, TAG_THREAD };

#define THREAD_EVERY 10 /* turns between two messages to the thread in MPI_Recv */
#define THREAD_STOP (-1)

static int rank, size, turns;
static struct work work;
static long pause_cells; /* to compute between two questions */
static double per_us;    /* cells a microsecond */

/* --- one message, asked for ------------------------------------------------------------ */

static void take_iprobe(int *value)
{
    int there = 0;

    while (MPI_Iprobe(1 - rank, TAG_TURN, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE), !there)
        work_do(&work, pause_cells);
    MPI_Recv(value, 1, MPI_INT, 1 - rank, TAG_TURN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void wait_by_test(MPI_Request *request)
{
    int done = 0;

    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done)
        work_do(&work, pause_cells);
}

static void take_test(int *value)
{
    MPI_Request request;

    MPI_Irecv(value, 1, MPI_INT, 1 - rank, TAG_TURN, MPI_COMM_WORLD, &request);
    wait_by_test(&request);
}

/* A message of two parts: the second is like the first. */
static void take_testall(int *value)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int done = 0, second;

    MPI_Irecv(value, 1, MPI_INT, 1 - rank, TAG_TURN, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&second, 1, MPI_INT, 1 - rank, TAG_TURN, MPI_COMM_WORLD, &requests[1]);
    while (MPI_Testall(2, requests, &done, statuses), !done)
        work_do(&work, pause_cells);
}

/* --- kinds ----------------------------------------------------------------------------- */

static void send_turn(int turn, int parts)
{
    for (int i = 0; i < parts; i++)
        MPI_Send(&turn, 1, MPI_INT, 1 - rank, TAG_TURN, MPI_COMM_WORLD);
}

static void round_trip(int turn, int parts, void (*take)(int *))
{
    int value;

    if (rank == 0)
        send_turn(turn, parts);
    take(&value);
    if (value != turn)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 1)
        send_turn(turn, parts);
}

static void kind_iprobe(int turn)
{
    round_trip(turn, 1, take_iprobe);
}

static void kind_test(int turn)
{
    round_trip(turn, 1, take_test);
}

static void kind_testall(int turn)
{
    round_trip(turn, 2, take_testall);
}

static void kind_ibarrier(int turn)
{
    MPI_Request request;

    (void)turn;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_by_test(&request);
}

static void kind_iallreduce(int turn)
{
    MPI_Request request;
    int sum;

    MPI_Iallreduce(&turn, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    wait_by_test(&request);
    if (sum != turn * size)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

/* As a threaded program does it: now and then the other thread of the peer gets something too */
static void kind_threads(int turn)
{
    if (turn % THREAD_EVERY == 0)
        MPI_Send(&turn, 1, MPI_INT, 1 - rank, TAG_THREAD, MPI_COMM_WORLD);
    round_trip(turn, 1, take_iprobe);
}

/* --- running them ---------------------------------------------------------------------- */

static void report(const char *kind, int us, double start)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0)
        return;
    if (us >= 0)
        printf("%s-%dus %.6f\n", kind, us, MPI_Wtime() - start);
    else
        printf("%s %.6f\n", kind, MPI_Wtime() - start);
}

static void run(const char *kind, void (*one)(int turn))
{
    static const int pauses_us[] = {0, 1, 5};

    for (size_t i = 0; i < sizeof pauses_us / sizeof pauses_us[0]; i++) {
        double start;

        pause_cells = (long)(per_us * pauses_us[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (int turn = 0; turn < turns; turn++)
            one(turn);
        report(kind, pauses_us[i], start);
    }
}

/* A window of one rank: a fence waits for nobody. */
static void run_fences(int fences)
{
    double start;
    MPI_Win win;
    int *base;

    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < fences; i++)
        MPI_Win_fence(0, win);
    report("fence", -1, start);
    MPI_Win_free(&win);
}

static void *receive_until_stop(void *nothing)
{
    int value;

    do {
        MPI_Recv(&value, 1, MPI_INT, 1 - rank, TAG_THREAD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } while (value != THREAD_STOP);
    return nothing;
}

static void run_threads(void)
{
    int stop = THREAD_STOP;
    pthread_t thread;

    if (pthread_create(&thread, NULL, receive_until_stop, NULL))
        MPI_Abort(MPI_COMM_WORLD, 2);
    run("threads", kind_threads);
    MPI_Send(&stop, 1, MPI_INT, 1 - rank, TAG_THREAD, MPI_COMM_WORLD);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    int threads = argc > 2 && strcmp(argv[2], "threads") == 0, provided;

    turns = argc > 1 ? atoi(argv[1]) : 2000;
    per_us = work_cells_per_us();
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was measured before a run is ended counts */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 2 || (threads && (size != 2 || provided != MPI_THREAD_MULTIPLE))) {
        fprintf(stderr, "polling: %d ranks; expected at most 2, with threads 2\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (threads) {
        run_threads();
    } else {
        run("ibarrier", kind_ibarrier);
        run("iallreduce", kind_iallreduce);
        if (size == 2) {
            run("iprobe", kind_iprobe);
            run("test", kind_test);
            run("testall", kind_testall);
        }
        run_fences(argc > 2 ? atoi(argv[2]) : 20000);
    }
    usleep(200000); /* stock MPICH over UCX may hang when ranks reach MPI_Finalize at once */
    MPI_Finalize();
    return 0;
}
