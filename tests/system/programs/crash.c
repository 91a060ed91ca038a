/* A ring of argv[3] rounds (default 200) in which a rank crashes:
     segv RANK ROUNDS         writes to address 0 in the middle, in every process
     once RANK ROUNDS FILE    calls abort() in the middle, unless FILE is there, which it makes
   Without arguments nothing happens to it. */
#include "check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* What no compiler knows to be nowhere. */
static volatile uintptr_t nowhere;

static void crash(const char *mode, const char *path)
{
    if (strcmp(mode, "segv") == 0)
        *(volatile int *)nowhere = 1;
    if (strcmp(mode, "once") == 0) {
        bool there = access(path, F_OK) == 0; /* a re-execution makes with O_EXCL what it made */

        close(open(path, O_WRONLY | O_CREAT, 0600));
        if (!there)
            abort();
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "", *path = argc > 4 ? argv[4] : "";
    int chosen = argc > 2 ? atoi(argv[2]) : -1, rounds = argc > 3 ? atoi(argv[3]) : 200;

    check_init(&argc, &argv);
    for (int round = 0; round < rounds; round++) {
        int sum = 0;

        check_item = round;
        if (check_rank == chosen && round == rounds / 2)
            crash(mode, path);
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK("sum of a round", round * check_size, sum);
    }
    return check_finish("crash");
}
