/* Ring exchange of messages of 0, 1, 2, 4 ... bytes and one byte less and more,
   up to argv[1] bytes (default 16 MB). The receiver does not know the size. */
#include "check.h"

enum { SLACK = 64 };

static void exchange(char *out, char *in, size_t size)
{
    int left = (check_rank + check_size - 1) % check_size;
    int right = (check_rank + 1) % check_size;
    MPI_Status status;

    check_item = (long)size;
    fill(out, size, (uint64_t)check_rank + size);
    guard(in, size < 4096 ? size + SLACK : SLACK);
    guard(in + size, SLACK);
    MPI_Sendrecv(out, (int)size, MPI_BYTE, right, 1, in, (int)size + SLACK, MPI_BYTE, left, 1,
                 MPI_COMM_WORLD, &status);
    CHECK_STATUS("ring", &status, left, 1, MPI_BYTE, (int)size);
    CHECK_BYTES("ring", in, size, (uint64_t)left + size);
    CHECK_GUARDED("behind the message", in + size, SLACK);
}

int main(int argc, char **argv)
{
    size_t max;
    char *out, *in;

    check_init(&argc, &argv);
    max = argc > 1 ? strtoul(argv[1], NULL, 10) : 16 << 20;
    out = must_alloc(max + SLACK);
    in = must_alloc(max + SLACK);
    exchange(out, in, 0);
    for (size_t size = 1; size <= max; size *= 2) {
        if (size > 2)
            exchange(out, in, size - 1);
        exchange(out, in, size);
        if (size > 1 && size < max)
            exchange(out, in, size + 1);
    }
    free(in);
    free(out);
    return check_finish("sizes");
}
