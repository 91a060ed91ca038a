#include "relay/region.h"
#include "relay/log/ledger.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HUGE_PAGE (2ull << 20)
#define BLOCK_SLACK(bytes)                                                                         \
    ((bytes) / 32) /* a block is a little larger than what is counted for it */

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

struct relay_region region_open(uint64_t bytes)
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
    return region;
}

static struct ledger_memory *map(int fd, uint64_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

int region_open_outliving(int fd, uint64_t bytes, struct relay_region *region,
                          struct ledger_memory **ledger, struct cw_err *err)
{
    uint64_t size = whole_pages(bytes + BLOCK_SLACK(bytes));
    struct stat now;

    if (fstat(fd, &now) < 0 ||
        (now.st_size == 0 && ftruncate(fd, (off_t)(sizeof(**ledger) + size))))
        return cw_err_set(err, CW_ESYS, "memory that outlives the relay: %s", strerror(errno));
    if (now.st_size > 0 && (uint64_t)now.st_size != sizeof(**ledger) + size)
        return cw_err_set(err, CW_EINVAL,
                          "what a relay has left is %llu bytes, expected %llu: it had another "
                          "--memory-max, or was of another version",
                          (unsigned long long)now.st_size,
                          (unsigned long long)(sizeof(**ledger) + size));
    *ledger = map(fd, sizeof(**ledger) + size);
    if (!*ledger)
        return cw_err_set(err, CW_ESYS, "mapping memory that outlives the relay: %s",
                          strerror(errno));
    *region = (struct relay_region){.start = (uint8_t *)(*ledger + 1), .size = size};
    return CW_OK;
}

void region_close_outliving(const struct relay_region *region, struct ledger_memory *ledger)
{
    munmap(ledger, sizeof(*ledger) + region->size);
}

void region_close(const struct relay_region *region)
{
    if (region->start)
        munmap(region->start, region->size);
}

void region_give_back(const struct relay_pages *pages)
{
    /* of memory that outlives us it has to be said so */
    if (madvise(pages->at, pages->size, MADV_REMOVE) < 0)
        madvise(pages->at, pages->size, MADV_DONTNEED);
}
