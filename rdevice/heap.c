/* malloc() and its sisters: what MPI's library asks for comes from an arena of its own, in the
 * order of its calls alone; all else from the next malloc(), of libc or whatever the program has in
 * its place.
 *
 * A binding to libc beside the device. */
#include "rdevice/heap.h"
#include "rdevice/arena.h"
#include "rdevice/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_MAX (1ull << 30) /* more is for user's data: no address of it is sent */

/* Before each piece; 16 bytes, as malloc() aligns. */
struct head {
    size_t size; /* that was asked for */
    size_t reserved;
};

static uintptr_t mpi_start, mpi_size; /* of the library */

/* What stands behind ours. */
static struct {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t each);
    void *(*realloc)(void *at, size_t size);
    void (*free)(void *at);
    size_t (*malloc_usable_size)(void *at);
    bool known;
} next;

/* libc's own, by the names that it has for those who replace malloc(). */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t each);
void *__libc_realloc(void *at, size_t size);
void __libc_free(void *at);

/* Nobody is held up for long: it guards a list. */
static int locked;

/* dlsym() allocates and frees itself, where an earlier one has failed: that is libc's. */
static bool is_known(void)
{
    static bool looking;

    if (next.known || looking)
        return next.known;
    looking = true;
    next_resolve(&next.malloc, "malloc");
    next_resolve(&next.calloc, "calloc");
    next_resolve(&next.realloc, "realloc");
    next_resolve(&next.free, "free");
    next_resolve(&next.malloc_usable_size, "malloc_usable_size");
    next.known = true;
    looking = false;
    return true;
}

static void *next_malloc(size_t size)
{
    return is_known() ? next.malloc(size) : __libc_malloc(size);
}

void heap_begin(uintptr_t address)
{
    struct dl_find_object found;

    if (_dl_find_object((void *)address, &found) < 0)
        return;
    mpi_start = (uintptr_t)found.dlfo_map_start;
    mpi_size = (uintptr_t)found.dlfo_map_end - mpi_start;
}

bool heap_is_of_mpi(uintptr_t address)
{
    return __builtin_expect(address - mpi_start < mpi_size, 0);
}

static inline bool is_for_mpi(size_t size, uintptr_t caller)
{
    return heap_is_of_mpi(caller) && size <= PIECE_MAX;
}

static void lock(void)
{
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void unlock(void)
{
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

static void *take(size_t size)
{
    struct head *head;

    lock();
    head = arena_take(&arena_of_mpi, sizeof(*head) + size);
    unlock();
    if (!head)
        return NULL;
    head->size = size;
    return head + 1;
}

static size_t size_of(const void *at)
{
    return ((const struct head *)at - 1)->size;
}

static void give(void *at)
{
    struct head *head = (struct head *)at - 1;
    int error = errno;

    lock();
    arena_give(&arena_of_mpi, head, sizeof(*head) + head->size);
    unlock();
    errno = error;
}

PUBLIC void *malloc(size_t size)
{
    return is_for_mpi(size, CALLER) ? take(size) : next_malloc(size);
}

PUBLIC void *calloc(size_t count, size_t each)
{
    size_t size;
    void *at;

    if (__builtin_mul_overflow(count, each, &size) || !is_for_mpi(size, CALLER))
        return is_known() ? next.calloc(count, each) : __libc_calloc(count, each);
    at = take(size);
    return at ? memset(at, 0, size) : NULL;
}

PUBLIC void free(void *at)
{
    if (arena_has(&arena_of_mpi, at))
        give(at);
    else if (is_known())
        next.free(at);
    else
        __libc_free(at);
}

/* What is in one heap stays there, unless it grows too large for it. */
PUBLIC void *realloc(void *at, size_t size)
{
    void *to;

    if (!at)
        return is_for_mpi(size, CALLER) ? take(size) : next_malloc(size);
    if (!arena_has(&arena_of_mpi, at))
        return is_known() ? next.realloc(at, size) : __libc_realloc(at, size);
    to = size <= PIECE_MAX ? take(size) : next_malloc(size);
    if (to) {
        memcpy(to, at, size < size_of(at) ? size : size_of(at));
        give(at);
    }
    return to;
}

PUBLIC void *reallocarray(void *at, size_t count, size_t each)
{
    size_t size;

    if (!__builtin_mul_overflow(count, each, &size))
        return realloc(at, size);
    errno = ENOMEM;
    return NULL;
}

PUBLIC size_t malloc_usable_size(void *at)
{
    return arena_has(&arena_of_mpi, at) ? size_of(at)
           : is_known()                 ? next.malloc_usable_size(at)
                                        : 0;
}
