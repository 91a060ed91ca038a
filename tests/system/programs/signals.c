/* Handlers of signals that ask clocks, as those of profilers do, in argv[1] rounds (default 60):
   a timer of 1 kHz has one called from before MPI_Init to the end, which asks argv[3] times
   (default 200). The program asks argv[2] times a round (default 6000) between its messages, and
   tells its neighbour what it was told. And what a program sets for a signal it is told again. */
#define _GNU_SOURCE /* sysv_signal */
#include "tell.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <time.h>

enum { READ_TAG = 2, LARGE_TAG = 3, LARGE_SIZE = 150000, JUMP_EVERY = 4 };

static int asked_by_handler = 200;
static volatile sig_atomic_t last_signal, last_code;
static sigjmp_buf back;

static uint64_t now(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Also another function than the program: a repetition knows them apart. */
static void on_timer(int number)
{
    struct timeval t;

    (void)number;
    for (int i = 0; i < asked_by_handler; i++) {
        now(CLOCK_MONOTONIC);
        gettimeofday(&t, NULL);
    }
}

static void start_timer(void)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

static void on_info(int number, siginfo_t *info, void *context)
{
    last_signal = number;
    last_code = info->si_code;
    CHECK("a context", true, context != NULL);
}

static void on_plain(int number)
{
    last_signal = number;
}

static void on_jump(int number)
{
    now(CLOCK_REALTIME);
    siglongjmp(back, number);
}

/* A signal is blocked in its handler, and not beyond it. */
static void jump_out(void)
{
    sigset_t blocked;
    int number = sigsetjmp(back, 1);

    if (number == 0) {
        signal(SIGUSR2, on_jump);
        raise(SIGUSR2);
    }
    CHECK("jumped out of a handler", SIGUSR2, number);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    CHECK("blocked after it", 0, sigismember(&blocked, SIGUSR2));
}

static void test_sigaction(void)
{
    struct sigaction action = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO | SA_RESETHAND}, was;

    CHECK("sigaction", 0, sigaction(SIGUSR1, &action, &was));
    CHECK("handler at first", true, was.sa_handler == SIG_DFL);
    CHECK("sigaction of no signal", -1, sigaction(0, &action, &was));
    CHECK("sigaction of no signal", -1, sigaction(1000, &action, &was));
    CHECK("sigaction of SIGKILL", -1, sigaction(SIGKILL, &action, NULL));
    sigaction(SIGUSR1, NULL, &was);
    CHECK("handler", true, was.sa_sigaction == on_info);
    CHECK("flags", SA_SIGINFO | (int)SA_RESETHAND, was.sa_flags & (SA_SIGINFO | (int)SA_RESETHAND));
    raise(SIGUSR1);
    CHECK("signal", SIGUSR1, last_signal);
    CHECK("code", SI_TKILL, last_code);
    sigaction(SIGUSR1, NULL, &was);
    CHECK("handler that was reset", true, was.sa_handler == SIG_DFL);
}

static void test_signal(void)
{
    CHECK("signal at first", true, signal(SIGUSR1, on_plain) == SIG_DFL);
    CHECK("sysv_signal", true, sysv_signal(SIGUSR1, on_jump) == on_plain);
    CHECK("signal of the other", true, signal(SIGUSR1, on_plain) == on_jump);
    raise(SIGUSR1);
    CHECK("signal", SIGUSR1, last_signal);
    CHECK("SIG_IGN", true, signal(SIGUSR1, SIG_IGN) == on_plain);
    raise(SIGUSR1);
    CHECK("SIG_DFL", true, signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    CHECK("signal of SIGKILL", true, signal(SIGKILL, on_plain) == SIG_ERR);
    CHECK("signal of no signal", true, signal(-1, on_plain) == SIG_ERR);
}

static uint64_t ask(int times)
{
    uint64_t sum = 0;

    for (int i = 0; i < times; i++)
        sum = tell_mix(sum, now(CLOCK_MONOTONIC));
    return sum;
}

static void send_large(const struct teller *t, char *out, char *in, int round)
{
    fill(out, LARGE_SIZE, (uint64_t)(check_rank + round));
    MPI_Sendrecv(out, LARGE_SIZE, MPI_BYTE, t->right, LARGE_TAG, in, LARGE_SIZE, MPI_BYTE, t->left,
                 LARGE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_BYTES("large message", in, LARGE_SIZE, (uint64_t)(t->left + round));
}

int main(int argc, char **argv)
{
    uint64_t out[TELL_WORDS_MAX], in[TELL_WORDS_MAX];
    int rounds = argc > 1 ? atoi(argv[1]) : 60, times = argc > 2 ? atoi(argv[2]) : 6000, count;
    char *large_out = must_alloc(LARGE_SIZE), *large_in = must_alloc(LARGE_SIZE);
    struct teller t;
    MPI_Status status;

    if (argc > 3)
        asked_by_handler = atoi(argv[3]);
    start_timer();
    test_sigaction(); /* before MPI_Init, for MPICH has a handler of SIGUSR1 */
    test_signal();
    jump_out();
    check_init(&argc, &argv);
    t = tell_start();
    for (int round = 0; round < rounds; round++) {
        check_item = round;
        count = tell_prepare(&t, out, ask(times));
        MPI_Sendrecv(out, count, MPI_UINT64_T, t.right, READ_TAG, in, TELL_WORDS_MAX, MPI_UINT64_T,
                     t.left, READ_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        tell_hear(&t, in, count);
        send_large(&t, large_out, large_in, round);
        if (round % JUMP_EVERY == 0)
            jump_out();
        tell_echo(&t);
    }
    free(large_in);
    free(large_out);
    return check_finish("signals");
}
