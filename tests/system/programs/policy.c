/* Which scheduling policy a rank has: policy POLICY_AFTER_LARGE POLICY_AFTER_SMALL, as numbers of
   sched(7). Large messages go in both directions at once, so that each rank waits amid them. */
#include "check.h"

#include <sched.h>

enum { LARGE = 8 << 20, LARGE_TIMES = 10, SMALL_TIMES = 500 };

static void exchange(char *out, char *in, int size, int times)
{
    int peer = 1 - check_rank;

    for (int i = 0; i < times; i++)
        MPI_Sendrecv(out, size, MPI_BYTE, peer, 0, in, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    char *out = must_alloc(LARGE), *in = must_alloc(LARGE);

    check_init(&argc, &argv);
    if (argc != 3 || check_size != 2) {
        fprintf(stderr, "usage: policy NUMBER NUMBER, two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(out, 1, LARGE);
    exchange(out, in, LARGE, LARGE_TIMES);
    CHECK("policy after large messages", atoi(argv[1]), sched_getscheduler(0));
    exchange(out, in, 1, SMALL_TIMES);
    CHECK("policy after small messages", atoi(argv[2]), sched_getscheduler(0));
    free(in);
    free(out);
    return check_finish("policy");
}
