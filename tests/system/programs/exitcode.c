/* Ends in the ways a program can end. Arguments are a mode and its values:
     exit R C        rank R calls exit(C) after MPI_Init, the others wait
     abort R C       rank R calls MPI_Abort with C, the others wait
     abort_self R C  ... on MPI_COMM_SELF
     abort_inter R C ... on an intercommunicator of even and odd ranks; the others end well
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
    fprintf(stderr, "usage: exitcode exit|abort[_self|_inter]|signal|nofinalize|noinit|sleep|hang "
                    "[R [VALUE]]\n");
    return 2;
}

static int early_rank(void)
{
    const char *text = getenv("PMI_RANK");

    return text ? atoi(text) : -1;
}

static MPI_Comm make_inter(void)
{
    MPI_Comm mine, both;

    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, check_rank, &mine);
    MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 1 - check_rank % 2, 5, &both);
    return both;
}

static void receive_for_ever(void)
{
    int value;

    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* What rank R does after MPI_Init. Returns when main shall return. */
static void end_badly(const char *mode, int value, MPI_Comm inter)
{
    if (strcmp(mode, "exit") == 0)
        exit(value);
    if (strcmp(mode, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, value);
    if (strcmp(mode, "abort_self") == 0)
        MPI_Abort(MPI_COMM_SELF, value);
    if (strcmp(mode, "abort_inter") == 0)
        MPI_Abort(inter, value);
    if (strcmp(mode, "signal") == 0)
        raise(value);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int chosen = argc > 2 ? atoi(argv[2]) : -1, value = argc > 3 ? atoi(argv[3]) : 0;
    int needed = !strcmp(mode, "hang") ? 2 : !strcmp(mode, "noinit") ? 3 : 4;

    MPI_Comm inter = MPI_COMM_NULL;

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
    if (strcmp(mode, "abort_inter") == 0)
        inter = make_inter();
    if (strcmp(mode, "hang") == 0)
        receive_for_ever();
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == chosen && strcmp(mode, "sleep") != 0) {
        end_badly(mode, value, inter);
        return 0;
    }
    if (strcmp(mode, "abort_inter") != 0)
        MPI_Barrier(MPI_COMM_WORLD);
    return check_finish("exitcode");
}
