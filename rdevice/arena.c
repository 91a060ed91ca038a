#include "rdevice/arena.h"
#include "rdevice/fatal.h"

#include <stdint.h>
#include <sys/mman.h>

#define ARENA_ADDRESS ((void *)0x500000000000)
#define ARENA_MAX (64ull << 30) /* address space, not memory */
#define ARENA_MIN (1ull << 28)
#define CLASS_MIN 6 /* 64 bytes */
#define CLASS_MAX 40
#define GIVE_BACK (1ull << 20) /* a free piece this large returns its memory to the system */

struct piece {
    struct piece *next;
};

static uint8_t *start;
static size_t used;
static size_t size_max;
static struct piece *free_pieces[CLASS_MAX + 1]; /* by log2 of their size */

int arena_init(void)
{
    for (size_max = ARENA_MAX; size_max >= ARENA_MIN; size_max /= 4) {
        start = mmap(ARENA_ADDRESS, size_max, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (start != MAP_FAILED)
            return 0;
    }
    return -1;
}

static int class_of(size_t size)
{
    int class = CLASS_MIN;

    while (class < CLASS_MAX && (size_t)1 << class < size)
        class ++;
    return class;
}

void *arena_alloc(size_t size)
{
    int class = class_of(size);
    struct piece *piece = free_pieces[class];
    size_t bytes = (size_t)1 << class;

    if (piece) {
        free_pieces[class] = piece->next;
        return piece;
    }
    if (bytes < size || bytes > size_max - used)
        fatal_exit(CW_REPORT_FATAL, "the device's memory is spent, while %zu bytes were needed",
                   size);
    used += bytes;
    return start + used - bytes;
}

void arena_free(void *at, size_t size)
{
    int class = class_of(size);
    struct piece *piece = at;

    if ((size_t)1 << class >= GIVE_BACK)
        madvise(at, (size_t)1 << class, MADV_DONTNEED);
    piece->next = free_pieces[class];
    free_pieces[class] = piece;
}
