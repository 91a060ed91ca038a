/* Standard output in parts of lines, written at once, with messages between the parts, and no
   newline at the end. With argv[1] lines every rank prints so many, to stderr too; without it rank
   0 prints the "ok" of the end in parts. */
#include "check.h"

#include <unistd.h>

static void part(FILE *to, const char *text)
{
    fputs(text, to);
    fflush(to);
}

/* Something to take part in between two parts. */
static void meet(void)
{
    int one = 1, sum = 0;

    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK("ranks that met", check_size, sum);
}

static void one_line(int line)
{
    char text[64];

    check_item = line;
    snprintf(text, sizeof text, "rank %d ", check_rank);
    part(stdout, text);
    meet();
    snprintf(text, sizeof text, "line %d", line);
    part(stdout, text);
    if (line % 10 == 0)
        fprintf(stderr, "rank %d error %d\n", check_rank, line);
    meet();
    part(stdout, " ends\n");
}

int main(int argc, char **argv)
{
    static const char *const parts[] = {"o", "k", " part", "ial_", "lines"};
    int lines, all, mine;

    check_init(&argc, &argv);
    lines = argc > 1 ? atoi(argv[1]) : 0;
    for (int line = 1; line <= lines; line++)
        one_line(line);
    mine = check_failures;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && all == 0; i++) {
        meet();
        if (check_rank == 0)
            part(stdout, parts[i]);
    }
    finalize_after_pause();
    return all != 0;
}
