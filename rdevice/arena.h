/* The device's own memory: it grows from a fixed far address, so that the program's heap and
 * mappings lie where they would lie without the device, in every incarnation alike. */
#ifndef RDEVICE_ARENA_H
#define RDEVICE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* The rings that the relay shares with us lie beside it. */
#define ARENA_RINGS ((void *)0x550000000000)
/* The channel memory of the ranks of this host, with 31 TiB of room; or, where ThreadSanitizer has
 * that, with 512 GiB. */
#define ARENA_CHANNEL ((void *)0x300000000000)
#define ARENA_CHANNEL_SANITIZED ((void *)0x560000000000)

/* Returns 0, or -1 with errno: there is no memory at that address. */
int arena_init(void);

/* Whether libraries, heap and stack lie where they lay before: the launcher has asked the kernel
 * for that, and may not have been allowed to. */
bool arena_addresses_stay(void);

/* Another one, of what MPI allocates: heap.c. At least `size` bytes, aligned to 64, not cleared;
 * NULL with errno: there is no room. `size` as it was given to arena_take. One thread at a time. */
struct arena;
extern struct arena arena_of_mpi;
void *arena_take(struct arena *a, size_t size);
void arena_give(struct arena *a, void *at, size_t size);
bool arena_has(const struct arena *a, const void *at);

/* At least `size` bytes, aligned to 64, not cleared. Ends the process when the arena is spent. */
void *arena_alloc(size_t size);

/* `size` as it was given to arena_alloc. */
void arena_free(void *at, size_t size);

#endif
