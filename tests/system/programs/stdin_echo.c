/* Rank 0 reads lines from stdin and broadcasts each; all ranks keep a checksum of what they got,
   and compare it after each line. With "echo" as argv[1] rank 0 prints a line again once all have
   it. */
#include "check.h"

enum { LINE_MAX_BYTES = 4096 };

/* All ranks have the same. */
static void compare(uint64_t sum)
{
    uint64_t ends[2] = {sum, ~sum}, least[2];

    MPI_Allreduce(ends, least, 2, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    CHECK("checksum of the lines", least[0], ~least[1]);
}

static uint64_t add_line(uint64_t sum, const char *line)
{
    for (; *line; line++)
        sum = (sum ^ (unsigned char)*line) * 0x100000001B3u;
    return sum;
}

int main(int argc, char **argv)
{
    static char line[LINE_MAX_BYTES];
    uint64_t sum = 0xCBF29CE484222325u;
    int length, echo;

    check_init(&argc, &argv);
    echo = argc > 1 && strcmp(argv[1], "echo") == 0;
    for (;;) {
        length = 0;
        if (check_rank == 0 && fgets(line, sizeof line, stdin))
            length = (int)strlen(line) + 1;
        MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (length == 0)
            break;
        MPI_Bcast(line, length, MPI_CHAR, 0, MPI_COMM_WORLD);
        sum = add_line(sum, line);
        compare(sum);
        if (check_rank == 0 && echo)
            fputs(line, stdout);
        fflush(stdout);
    }
    compare(sum);
    return check_finish("stdin_echo");
}
