/* Standard streams: rank 0 copies stdin to stdout; every rank prints argv[1]
   (default 100) numbered lines to stdout and as many to stderr. */
#include "check.h"

static void copy_stdin(void)
{
    char buf[65536];
    size_t n;

    while ((n = fread(buf, 1, sizeof buf, stdin)) > 0)
        if (fwrite(buf, 1, n, stdout) != n)
            CHECK("copied to stdout", 1, 0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int lines, failed;

    check_init(&argc, &argv);
    lines = argc > 1 ? atoi(argv[1]) : 100;
    if (check_rank == 0)
        copy_stdin();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < lines; i++) {
        printf("rank %d line %d\n", check_rank, i);
        fprintf(stderr, "rank %d line %d\n", check_rank, i);
    }
    failed = fflush(stdout) != 0 || check_failures;
    MPI_Barrier(MPI_COMM_WORLD);
    finalize_after_pause();
    return failed;
}
