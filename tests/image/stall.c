/* stall MIB [huge|small|text]: how long a program with so much memory stands still for an image,
 * what the stream brings, and how fast it is restored. Prints figures; a bench, not a test. `text`
 * is memory that compresses well, the others none that does. */
#include "tests/image/taker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    size_t size = (argc > 1 ? (size_t)atol(argv[1]) : 1024) << 20;
    bool huge = argc > 2 && !strcmp(argv[2], "huge");
    bool text = argc > 2 && !strcmp(argv[2], "text");
    char *memory = mmap(NULL, size, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned *words = (unsigned *)(void *)memory, seed = 1;

    madvise(memory, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size / 4; i++)
        words[i] = text ? (unsigned)i / 256 : (seed = seed * 1664525 + 1013904223);
    for (int i = 0; i < 3; i++) {
        double start = seconds(), took;

        if (taker_take()) {
            printf("restored\n");
            return 0;
        }
        took = seconds() - start;
        printf("%s pages: stall %.2f ms/GB, %.0f MB/s of %.0f MB\n", huge ? "huge" : "4 KiB",
               (double)taker_outcome.stall_ns * 1e-6 / ((double)size / 1e9),
               (double)taker_outcome.bytes / took * 1e-6, (double)taker_outcome.bytes * 1e-6);
    }
    return 0;
}
