#include "rdevice/arena.h"
#include "rdevice/fatal.h"
#include "rdevice/image/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>

#define ARENA_MAX (64ull << 30) /* of addresses */
/* Mapped at a time. What is mapped is what an image looks through: 64 GiB at once, and never
 * touched, took it 60 ms. */
#define ARENA_STEP (64ull << 20)
#define PERSONALITY_ASK 0xffffffffu
#define CLASS_MIN 6 /* 64 bytes */
#define CLASS_MAX 40
/* A free piece this large returns its memory to the system. So does one of GIVE_BACK_CLASS when the
 * free ones of its size have kept as much as KEPT_MAX: what many messages took at once. */
#define GIVE_BACK (1ull << 20)
#define GIVE_BACK_CLASS 14 /* 16 KiB: a page of it stays, which holds `struct piece` */
#define KEPT_MAX (8ull << 20)

struct piece {
    struct piece *next;
    bool kept; /* its memory */
};

struct arena {
    uint8_t *first;
    size_t used;
    size_t mapped;
    struct piece *free_pieces[CLASS_MAX + 1]; /* by log2 of their size */
    size_t kept[CLASS_MAX + 1];               /* bytes of those that have kept their memory */
};

static struct arena device = {.first = (uint8_t *)0x551000000000};
struct arena arena_of_mpi = {.first = (uint8_t *)0x552000000000};

/* `bytes` more. Returns 0 or -1 with errno. */
static int map_more(struct arena *a, size_t bytes)
{
    size_t size = (bytes + ARENA_STEP - 1) / ARENA_STEP * ARENA_STEP;
    void *at = mmap(a->first + a->mapped, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (at == MAP_FAILED)
        return -1;
    a->mapped += size;
    return 0;
}

int arena_init(void)
{
    return map_more(&device, ARENA_STEP);
}

bool arena_addresses_stay(void)
{
    char way = '\0';
    long fd = system_call(SYS_open, "/proc/sys/kernel/randomize_va_space", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        system_call(SYS_read, fd, &way, 1);
        system_call(SYS_close, fd);
    }
    return way == '0' || (personality(PERSONALITY_ASK) & ADDR_NO_RANDOMIZE);
}

static int class_of(size_t size)
{
    int class = CLASS_MIN;

    while (class < CLASS_MAX && (size_t)1 << class < size)
        class ++;
    return class;
}

void *arena_take(struct arena *a, size_t size)
{
    int class = class_of(size);
    struct piece *piece = a->free_pieces[class];
    size_t bytes = (size_t)1 << class;

    if (piece) {
        a->free_pieces[class] = piece->next;
        if (piece->kept)
            a->kept[class] -= bytes;
        return piece;
    }
    errno = ENOMEM;
    if (bytes < size || bytes > ARENA_MAX - a->used ||
        (bytes > a->mapped - a->used && map_more(a, bytes - (a->mapped - a->used)) < 0))
        return NULL;
    a->used += bytes;
    return a->first + a->used - bytes;
}

static bool keeps(const struct arena *a, int class, size_t bytes)
{
    return bytes < GIVE_BACK && (class < GIVE_BACK_CLASS || a->kept[class] + bytes <= KEPT_MAX);
}

void arena_give(struct arena *a, void *at, size_t size)
{
    int class = class_of(size);
    size_t bytes = (size_t)1 << class;
    struct piece *piece = at;
    bool stays = keeps(a, class, bytes);

    if (stays)
        a->kept[class] += bytes;
    else
        madvise(at, bytes, MADV_DONTNEED);
    *piece = (struct piece){.next = a->free_pieces[class], .kept = stays};
    a->free_pieces[class] = piece;
}

bool arena_has(const struct arena *a, const void *at)
{
    return (uintptr_t)at - (uintptr_t)a->first < ARENA_MAX;
}

void *arena_alloc(size_t size)
{
    void *at = arena_take(&device, size);

    if (!at)
        fatal_exit(CW_REPORT_FATAL, "no memory for the device, while %zu bytes were needed: %s",
                   size, strerror(errno));
    return at;
}

void arena_free(void *at, size_t size)
{
    arena_give(&device, at, size);
}
