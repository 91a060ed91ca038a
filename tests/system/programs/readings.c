/* What clocks and random numbers said is told to the neighbour, in argv[1] rounds (default 200):
   every function of libc that a rank may ask, before MPI_Init too, and there argv[2] times one of
   two clocks (default 0). Loops wait on a clock; with argv[3], a file, for longer, and in the later
   rounds the last rank kills itself in one, if it can remove that file. */
#define _GNU_SOURCE
#include "tell.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

enum { READ_TAG = 2 };

static uint64_t of_clock(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t of_day(void)
{
    struct timeval now;

    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_usec;
}

static uint64_t of_calendar(void)
{
    struct timespec now;

    timespec_get(&now, TIME_UTC);
    return (uint64_t)time(NULL) ^ (uint64_t)now.tv_nsec << 32;
}

static uint64_t of_processor(void)
{
    struct tms spent;
    uint64_t ticks = (uint64_t)times(&spent);

    return ticks << 20 ^ (uint64_t)clock() ^ (uint64_t)spent.tms_utime << 40;
}

static uint64_t of_random(void)
{
    uint64_t value = 0, more = 0;

    if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value)
        CHECK("bytes of getrandom", sizeof value, -1);
    if (getentropy(&more, sizeof more) != 0)
        CHECK("getentropy", 0, -1);
    return value ^ more;
}

static uint64_t read_all(void)
{
    uint64_t sum = 0;

    sum = tell_mix(sum, of_clock(CLOCK_REALTIME));
    sum = tell_mix(sum, of_clock(CLOCK_MONOTONIC));
    sum = tell_mix(sum, of_clock(CLOCK_PROCESS_CPUTIME_ID));
    sum = tell_mix(sum, of_day());
    sum = tell_mix(sum, of_calendar());
    sum = tell_mix(sum, of_processor());
    return tell_mix(sum, of_random());
}

/* Numbers of times a loop ran until a clock had moved on: as NetPIPE does it. The device does not
   see that the file is removed. */
static uint64_t count_until(double seconds, const char *file)
{
    double start = MPI_Wtime();
    uint64_t count = 0;

    while (MPI_Wtime() - start < seconds)
        if (++count == 20000 && file && syscall(SYS_unlink, file) == 0)
            raise(SIGKILL);
    return count;
}

static uint64_t read_early(int times)
{
    uint64_t sum = read_all();

    for (int i = 0; i < times; i++)
        sum = tell_mix(sum, of_clock(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME));
    return sum;
}

static uint64_t wait_and_count(int round, int rounds, const char *file)
{
    bool killed = check_rank == check_size - 1 && round > rounds / 2;

    if (file)
        return count_until(20e-3, killed ? file : NULL);
    return count_until(round % 50 ? 20e-6 : 2e-3, NULL);
}

int main(int argc, char **argv)
{
    uint64_t early = read_early(argc > 2 ? atoi(argv[2]) : 0), out[TELL_WORDS_MAX],
             in[TELL_WORDS_MAX];
    struct teller t;
    MPI_Status status;
    int count, rounds;

    check_init(&argc, &argv);
    rounds = argc > 1 ? atoi(argv[1]) : 200;
    t = tell_start();
    for (int round = 0; round < rounds; round++) {
        uint64_t counted = wait_and_count(round, rounds, argc > 3 ? argv[3] : NULL);
        uint64_t value = round ? tell_mix(read_all(), counted) : early;

        check_item = round;
        count = tell_prepare(&t, out, value);
        MPI_Sendrecv(out, count, MPI_UINT64_T, t.right, READ_TAG, in, TELL_WORDS_MAX, MPI_UINT64_T,
                     t.left, READ_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        tell_hear(&t, in, count);
        tell_echo(&t);
    }
    return check_finish("readings");
}
