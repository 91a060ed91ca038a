#include "rdevice/image/seen.h"

#include "rdevice/image/system.h"

#include <sys/mman.h>

/* Neighbours lie together, so that a program of little memory touches few pages of the table. */
#define SEEN_ENTRIES 4194304u
#define SEEN_GROUP 64u
#define SEEN_TRIES 8u

struct entry {
    uint64_t address;
    struct cw_image_hash hash;
    uint32_t number;
    uint32_t size;
};

static struct entry *table;

void seen_range(uint64_t *start, uint64_t *size)
{
    uint64_t bytes = SEEN_ENTRIES * sizeof(struct entry);

    if (!table) {
        void *at = system_map(0, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        table = system_failed(at) ? NULL : at;
    }
    *start = (uint64_t)(uintptr_t)table;
    *size = table ? bytes : 0;
}

void seen_forget(void)
{
    table = NULL;
}

static struct entry *place(const struct cw_image_block *block, uint32_t try)
{
    uint64_t window = block->address / CW_IMAGE_BLOCK;
    uint64_t group = (window / SEEN_GROUP) * 0x9e3779b97f4a7c15ull >> 20;

    return &table[(group * SEEN_GROUP + window % SEEN_GROUP + try) % SEEN_ENTRIES];
}

bool seen_has(uint32_t base, const struct cw_image_block *block)
{
    if (!table || base == 0)
        return false;
    for (uint32_t i = 0; i < SEEN_TRIES; i++) {
        const struct entry *e = place(block, i);

        if (e->address == block->address && e->number == base && e->size == block->size)
            return e->hash.low == block->hash.low && e->hash.high == block->hash.high;
    }
    return false;
}

/* Takes the place of the same block, or of one that this image has not; if there is none, the block
 * is not remembered. */
void seen_put(uint32_t number, const struct cw_image_block *block)
{
    struct entry *free = NULL;

    for (uint32_t i = 0; table && i < SEEN_TRIES; i++) {
        struct entry *e = place(block, i);

        if (e->address == block->address && e->size == block->size) {
            free = e;
            break;
        }
        if (!free && (e->size == 0 || e->number + 1 < number))
            free = e;
    }
    if (free)
        *free = (struct entry){block->address, block->hash, number, (uint32_t)block->size};
}
