#include "tests/sim/slot.h"

#include <stdlib.h>
#include <sys/mman.h>

#define CLASS_MIN 6u /* 64 bytes */
#define CLASSES 32u
#define HEADER 16u

struct piece {
    struct piece *next;
};

/* At the start of a slot's memory, so that a copy of that has it too. */
struct heap {
    size_t used;
    struct piece *free[CLASSES]; /* by log2 of their size */
};

/* Before each piece that was given out. */
struct header {
    struct heap *heap;
    uint32_t class;
};

static uint8_t *region;
static struct slot slots[SLOTS_MAX];

static void begin_heap(struct slot *slot)
{
    *slot->heap = (struct heap){.used = sizeof(struct heap)};
}

static void open_slot(struct slot *slot)
{
    size_t bytes = (size_t)SLOTS_MAX * SLOT_HEAP_BYTES;

    if (!region)
        region = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED)
        abort();
    slot->number = (uint32_t)(slot - slots);
    slot->heap = (struct heap *)(region + (size_t)slot->number * SLOT_HEAP_BYTES);
    slot->stack = malloc(COROUTINE_STACK_BYTES);
    slot->library = library_take();
    if (!slot->stack)
        abort();
}

void slot_take_again(struct slot *slot, struct sim_process *process)
{
    if (slot->process)
        abort();
    slot->process = process;
}

struct slot *slot_take(uint32_t rank, struct sim_process *process)
{
    struct slot *slot = slots;

    while (slot < slots + SLOTS_MAX && slot->used && (slot->rank != rank || slot->process))
        slot++;
    if (slot == slots + SLOTS_MAX)
        abort();
    if (!slot->library)
        open_slot(slot);
    slot->used = true;
    slot->rank = rank;
    library_renew(slot->library);
    begin_heap(slot);
    slot_take_again(slot, process);
    return slot;
}

void slot_release(struct slot *slot)
{
    slot->process = NULL;
}

void slots_end_run(void)
{
    for (uint32_t i = 0; i < SLOTS_MAX; i++)
        slots[i].used = false;
}

void slots_fini(void)
{
    for (struct slot *slot = slots; slot < slots + SLOTS_MAX && slot->library; slot++) {
        library_release(slot->library);
        free(slot->stack);
        *slot = (struct slot){0};
    }
    if (region)
        munmap(region, (size_t)SLOTS_MAX * SLOT_HEAP_BYTES);
    region = NULL;
}

/* --- heaps ---------------------------------------------------------------------------------------
 */

static uint32_t class_of(size_t size)
{
    uint32_t class = CLASS_MIN;

    while ((size_t)1 << class < size + HEADER)
        class ++;
    return class;
}

void *slot_alloc(struct slot *slot, size_t size)
{
    struct heap *heap = slot->heap;
    uint32_t class = class_of(size);
    struct piece *piece = heap->free[class];

    if (piece) {
        heap->free[class] = piece->next;
    } else {
        piece = (struct piece *)((uint8_t *)heap + (heap->used + 63) / 64 * 64);
        heap->used = (size_t)((uint8_t *)piece - (uint8_t *)heap) + ((size_t)1 << class);
        if (heap->used > SLOT_HEAP_BYTES)
            abort();
    }
    *(struct header *)piece = (struct header){.heap = heap, .class = class};
    return (uint8_t *)piece + HEADER;
}

void slot_free(void *at)
{
    struct header header = *(struct header *)((uint8_t *)at - HEADER);
    struct piece *piece = (struct piece *)((uint8_t *)at - HEADER);

    piece->next = header.heap->free[header.class];
    header.heap->free[header.class] = piece;
}

bool slot_has(const void *at)
{
    return region && (const uint8_t *)at >= region &&
           (const uint8_t *)at < region + (size_t)SLOTS_MAX * SLOT_HEAP_BYTES;
}

size_t slot_heap_used(const struct slot *slot)
{
    return slot->heap->used;
}
