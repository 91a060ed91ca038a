#include "relay/memory/supply.h"
#include "relay/memory/block.h"

#define PAGE 4096ull
#define SLOT ((sizeof(struct relay_block) + PAGE - 1) / PAGE * PAGE)

void supply_init(struct supply *supply, const struct relay_region *region)
{
    *supply = (struct supply){.region = *region, .spare_max = region->touched / SLOT};
    if (supply->spare_max < WARM_SPARE_MIN)
        supply->spare_max = WARM_SPARE_MIN;
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
    if (block)
        supply->in_use += SLOT;
    return block;
}

void supply_give(struct supply *supply, struct relay_block *block)
{
    bool spare = supply->spare_count < supply->spare_max;
    struct relay_block **list = spare ? &supply->spare : &supply->surplus;

    block->next = *list;
    *list = block;
    supply->spare_count += spare;
    supply->in_use -= SLOT;
}

static uint64_t ahead(const struct supply *supply)
{
    uint64_t bytes = supply->in_use / WARM_AHEAD_SHARE;

    if (supply->in_use < WARM_BEGIN)
        return 0;
    return bytes < WARM_AHEAD_MAX ? bytes : WARM_AHEAD_MAX;
}

/* The first page stays: the list goes through it. */
static void give_back(struct supply *supply, struct relay_warm *warm)
{
    struct relay_block *block = pop(&supply->surplus);

    block->next = supply->bare;
    supply->bare = block;
    *warm =
        (struct relay_warm){.at = (uint8_t *)block + PAGE, .size = SLOT - PAGE, .give_back = true};
}

bool supply_next_warm(struct supply *supply, struct relay_warm *warm)
{
    struct relay_region *region = &supply->region;

    if (supply->surplus) {
        give_back(supply, warm);
        return true;
    }
    if (region->touched >= supply->carved + ahead(supply) ||
        region->touched + WARM_STEP > region->size)
        return false;
    if (region->touched < supply->carved)
        region->touched = supply->carved / WARM_STEP * WARM_STEP;
    *warm = (struct relay_warm){.at = region->start + region->touched, .size = WARM_STEP};
    region->touched += WARM_STEP;
    return true;
}
