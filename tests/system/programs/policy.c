/* The scheduling policy of a rank stays what it is: policy NUMBER, as in sched(7), and so do the
   processors that it may use, also for its children, and after MPI_Finalize. Large messages go in
   both directions at once, so that each rank waits amid them. */
#define _GNU_SOURCE /* cpu_set_t */
#include "check.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 8 << 20, LARGE_TIMES = 10, SMALL_TIMES = 500 };

static void exchange(char *out, char *in, int size, int times)
{
    int peer = 1 - check_rank;

    for (int i = 0; i < times; i++)
        MPI_Sendrecv(out, size, MPI_BYTE, peer, 0, in, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

/* 100 * the processors, and the policy */
static int policy(void)
{
    cpu_set_t all;

    return sched_getaffinity(0, sizeof(all), &all) == 0
               ? 100 * CPU_COUNT(&all) + sched_getscheduler(0)
               : -1;
}

static int child(void)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(policy());
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    char *out = must_alloc(LARGE), *in = must_alloc(LARGE);
    int first = policy();
    int wrong;

    check_init(&argc, &argv);
    if (argc != 2 || check_size != 2) {
        fprintf(stderr, "usage: policy NUMBER, two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(out, 1, LARGE);
    exchange(out, in, LARGE, LARGE_TIMES);
    CHECK("policy", atoi(argv[1]), first % 100);
    CHECK("after large messages", first, policy());
    CHECK("of a child", first & 255, child());
    exchange(out, in, 1, SMALL_TIMES);
    CHECK("after small messages", first, policy());
    free(in);
    free(out);
    wrong = check_finish("policy");
    if (policy() != first) {
        printf("not ok policy: %d after MPI_Finalize, %d before MPI_Init\n", policy(), first);
        wrong = 1;
    }
    return wrong;
}
