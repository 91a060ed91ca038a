#include "relay/region.h"

#include <sys/mman.h>

#define HUGE_PAGE (2ull << 20)
#define BLOCK_SLACK(bytes)                                                                         \
    ((bytes) / 32) /* a block is a little larger than what is counted for it */

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

/* An error costs time later, nothing else. */
static void touch_reserve(struct relay_region *region, uint64_t reserve)
{
    region->touched = reserve < region->size ? whole_pages(reserve) : region->size;
    if (region->touched)
        madvise(region->start, region->touched, MADV_POPULATE_WRITE);
}

struct relay_region region_open(uint64_t bytes, uint64_t reserve)
{
    struct relay_region region = {.size = whole_pages(bytes + BLOCK_SLACK(bytes))};
    uint64_t mapped_size = region.size + HUGE_PAGE;
    uint8_t *mapped = mmap(NULL, mapped_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t before;

    if (mapped == MAP_FAILED)
        return (struct relay_region){0};
    region.start = (uint8_t *)whole_pages((uintptr_t)mapped);
    before = (uint64_t)(region.start - mapped);
    if (before)
        munmap(mapped, before);
    munmap(region.start + region.size, HUGE_PAGE - before);
    madvise(region.start, region.size, MADV_HUGEPAGE);
    touch_reserve(&region, reserve);
    return region;
}

void region_close(const struct relay_region *region)
{
    if (region->start)
        munmap(region->start, region->size);
}

void region_give_back(const struct relay_pages *pages)
{
    madvise(pages->at, pages->size, MADV_DONTNEED);
}
