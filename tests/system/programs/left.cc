/* Handlers of signals that are left in other ways than by their return: left [ROUNDS [WAY]]. In
   each round a signal comes, its handler asks a clock as often as it likes and is left, and the
   rank tells its neighbour what clocks say afterwards: a rank that repeats itself must be told the
   same. Compiled with -fnon-call-exceptions. */
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mpi.h>
#include <stdexcept>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

namespace
{

const int DEPTH = 20, STACK_BYTES = 65536;
int rank, ranks, failures;
int way;
sigjmp_buf back;
void *back_of_compiler[5];
ucontext_t program, handler;
volatile sig_atomic_t returned;
volatile int *volatile nowhere;
volatile char sink;

uint64_t now(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

/* Another number of times, and another clock, in each execution: not recorded, or this diverges. */
void ask_in_handler()
{
    for (uint64_t i = now(CLOCK_MONOTONIC) / 64 % 5; i > 0; i--)
        time(nullptr);
}

struct thrown : std::runtime_error {
    thrown() : std::runtime_error("by a handler")
    {
    }
};

void on_throw(int)
{
    ask_in_handler();
    throw thrown();
}

__attribute__((noinline, noreturn)) void jump_as_compiler()
{
    __builtin_longjmp(back_of_compiler, 1);
}

void on_signal(int)
{
    int times = static_cast<int>(now(CLOCK_MONOTONIC) / 64 % 5);

    ask_in_handler();
    switch (way) {
    case 2:
        siglongjmp(back, 1);
    case 3:
        setcontext(&program);
        break;
    case 4:
        swapcontext(&handler, &program);
        ask_in_handler(); /* it was gone back to */
        break;
    case 5:
        jump_as_compiler();
    case 6:
        if (sigsetjmp(back, 1) == 0)
            siglongjmp(back, 1);
        for (int i = 0; i < times; i++)
            time(nullptr); /* still in it */
        break;
    case 7:
        way = 2; /* a handler in a handler */
        raise(SIGUSR1);
    }
    returned = 1;
}

__attribute__((noinline)) void touch()
{
    sink = static_cast<char>(*nowhere);
}

/* Each way to leave, with the handler on the ordinary or an alternate stack. */
void leave(bool alternate)
{
    struct sigaction action = {};

    volatile int times = 0;

    action.sa_flags = SA_NODEFER | (alternate ? SA_ONSTACK : 0);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, nullptr);
    action.sa_handler = on_throw;
    sigaction(SIGSEGV, &action, nullptr);
    returned = 0;
    switch (way) {
    case 1:
        try {
            touch();
        } catch (const thrown &) {
            break;
        }
        failures++;
        break;
    case 3:
        getcontext(&program);
        times = times + 1;
        if (times == 1)
            raise(SIGUSR1);
        break;
    case 5:
        if (__builtin_setjmp(back_of_compiler) == 0)
            raise(SIGUSR1);
        break;
    case 2:
    case 7:
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
        break;
    default:
        raise(SIGUSR1);
    }
}

/* By a handler on the stack of a context of its own. */
void run_and_leave()
{
    raise(SIGUSR1);
    swapcontext(&handler, &program);
}

void change_contexts(std::vector<char> &stack, bool last)
{
    getcontext(&handler);
    handler.uc_stack.ss_sp = stack.data();
    handler.uc_stack.ss_size = stack.size();
    makecontext(&handler, run_and_leave, 0);
    swapcontext(&program, &handler); /* it raises, and its handler comes back here */
    if (last)
        return;
    now(CLOCK_REALTIME);
    swapcontext(&program, &handler); /* the handler ends */
    if (!returned)
        failures++;
}

/* Deeper in the stack than the handler was. */
__attribute__((noinline)) uint64_t ask(int depth)
{
    volatile char room[512];

    room[0] = static_cast<char>(depth);
    if (depth > 0)
        return ask(depth - 1) + static_cast<uint64_t>(room[0] - depth);
    return now(CLOCK_MONOTONIC) ^ now(CLOCK_REALTIME) << 1 ^
           static_cast<uint64_t>(MPI_Wtime() * 1e9);
}

void tell(int round)
{
    uint64_t said[3] = {ask(0), ask(DEPTH), ask(2 * DEPTH)}, heard[3], echo[3];
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

    MPI_Sendrecv(said, 3, MPI_UINT64_T, right, 0, heard, 3, MPI_UINT64_T, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(heard, 3, MPI_UINT64_T, left, 1, echo, 3, MPI_UINT64_T, right, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++)
        if (echo[i] != said[i]) {
            std::fprintf(stderr, "FAIL rank %d, round %d: the neighbour was told another time\n",
                         rank, round);
            failures++;
        }
}

} // namespace

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 200, all = 0;
    std::vector<char> alternate(4 * STACK_BYTES), stack(STACK_BYTES);
    stack_t stack_of_signals = {};

    stack_of_signals.ss_sp = alternate.data();
    stack_of_signals.ss_size = alternate.size();
    sigaltstack(&stack_of_signals, nullptr);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < rounds; round++) {
        way = argc > 2 ? std::atoi(argv[2]) : 1 + round % 7;
        if (way == 4) {
            struct sigaction action = {};

            action.sa_handler = on_signal;
            action.sa_flags = SA_NODEFER;
            sigaction(SIGUSR1, &action, nullptr);
            returned = 0;
            change_contexts(stack, round % 2 == 0);
        } else {
            leave(round / 7 % 2 == 0);
        }
        tell(round);
    }
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0)
        std::puts("ok left");
    MPI_Finalize();
    return all != 0;
}
