#include "relay/memory/supply.h"
#include "relay/memory/block.h"

#define PAGE 4096ull
#define SLOT ((sizeof(struct relay_block) + PAGE - 1) / PAGE * PAGE)

void supply_init(struct supply *supply, const struct relay_region *region)
{
    *supply = (struct supply){.region = *region, .spare_max = SUPPLY_SPARE_MIN};
}

static struct relay_block *pop(struct relay_block **list)
{
    struct relay_block *block = *list;

    if (block)
        *list = block->next;
    return block;
}

static struct relay_block *carve(struct supply *supply)
{
    struct relay_block *block = (struct relay_block *)(supply->region.start + supply->carved);

    if (supply->region.size - supply->carved < SLOT)
        return NULL;
    supply->carved += SLOT;
    if (supply->carved_note)
        *supply->carved_note = supply->carved;
    return block;
}

struct relay_block *supply_take(struct supply *supply)
{
    struct relay_block *block = pop(&supply->spare);

    supply->spare_count -= block != NULL;
    if (!block)
        block = pop(&supply->surplus);
    if (!block)
        block = pop(&supply->bare);
    if (!block)
        block = carve(supply);
    return block;
}

void supply_give(struct supply *supply, struct relay_block *block)
{
    bool spare = supply->spare_count < supply->spare_max;
    struct relay_block **list = spare ? &supply->spare : &supply->surplus;

    block->next = *list;
    *list = block;
    supply->spare_count += spare;
}

void supply_keep(struct supply *supply, uint64_t bytes)
{
    uint64_t blocks = bytes / SLOT;

    supply->spare_max = blocks > SUPPLY_SPARE_MIN ? blocks : SUPPLY_SPARE_MIN;
}

void supply_let_go(struct supply *supply)
{
    supply->spare_max = SUPPLY_SPARE_MIN;
    for (; supply->spare_count > supply->spare_max; supply->spare_count--) {
        struct relay_block *block = pop(&supply->spare);

        block->next = supply->surplus;
        supply->surplus = block;
    }
}

uint64_t supply_return(struct supply *supply, uint64_t carved)
{
    supply->carved = carved;
    return carved / SLOT;
}

struct relay_block *supply_at(const struct supply *supply, uint64_t number)
{
    bool there = number < supply->carved / SLOT;

    return there ? (struct relay_block *)(supply->region.start + number * SLOT) : NULL;
}

/* The first page stays: the list goes through it. */
bool supply_next_surplus(struct supply *supply, struct relay_pages *pages)
{
    struct relay_block *block = pop(&supply->surplus);

    if (!block)
        return false;
    block->next = supply->bare;
    supply->bare = block;
    *pages = (struct relay_pages){.at = (uint8_t *)block + PAGE, .size = SLOT - PAGE};
    return true;
}
