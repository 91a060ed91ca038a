/* Ends in the ways a program can end. Arguments are a mode and its values:
     exit R C        rank R calls exit(C) after MPI_Init, the others wait
     abort R C       rank R calls MPI_Abort with C, the others wait
     signal R S      rank R raises signal S, the others wait
     nofinalize R    rank R returns 0 without MPI_Finalize, the others wait
     noinit R        rank R returns 0 before MPI_Init
     sleep R SECONDS rank R sleeps before MPI_Init; then all finish ("ok exitcode")
     hang            all wait in MPI_Recv for ever
   All ranks pass a barrier before one ends badly, and wait in the next one. Which
   rank this is must be known before MPI_Init for two modes: from PMI_RANK. */
#include "check.h"

#include <signal.h>

static int usage(void)
{
    fprintf(stderr, "usage: exitcode exit|abort|signal|nofinalize|noinit|sleep|hang [R [VALUE]]\n");
    return 2;
}

static int early_rank(void)
{
    const char *text = getenv("PMI_RANK");

    return text ? atoi(text) : -1;
}

static void receive_for_ever(void)
{
    int value;

    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* What rank R does after MPI_Init. Returns when main shall return. */
static void end_badly(const char *mode, int value)
{
    if (strcmp(mode, "exit") == 0)
        exit(value);
    if (strcmp(mode, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, value);
    if (strcmp(mode, "signal") == 0)
        raise(value);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int chosen = argc > 2 ? atoi(argv[2]) : -1, value = argc > 3 ? atoi(argv[3]) : 0;
    int needed = !strcmp(mode, "hang") ? 2 : !strcmp(mode, "noinit") ? 3 : 4;

    if (strcmp(mode, "nofinalize") == 0)
        needed = 3;
    if (argc < needed)
        return usage();
    if (strcmp(mode, "noinit") == 0 && early_rank() == chosen)
        return 0;
    if (strcmp(mode, "sleep") == 0 && early_rank() == chosen) {
        struct timespec pause = {value, 0};
        thrd_sleep(&pause, NULL);
    }
    check_init(&argc, &argv);
    if (strcmp(mode, "hang") == 0)
        receive_for_ever();
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == chosen && strcmp(mode, "sleep") != 0) {
        end_badly(mode, value);
        return 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return check_finish("exitcode");
}
