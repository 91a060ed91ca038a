#include "rdevice/restorer/regions.h"

#include "rdevice/image/system.h"

#include "rdevice/restorer/input.h"
#include "rdevice/restorer/report.h"
#include <errno.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#include <xxhash.h>

#define PROT_BOTH (PROT_READ | PROT_WRITE)

static struct region {
    uint64_t start, end;
    uint32_t prot;   /* as it was */
    uint32_t mapped; /* as it is while it is filled */
} regions[CW_IMAGE_REGIONS_MAX];
static uint32_t count;
static uint64_t fill_end; /* where the last region can be written up to */

static void *at_address(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* --- files ----------------------------------------------------------------------------------- */

static void check_file(const struct cw_image_region *head, int fd)
{
    static char page[CW_IMAGE_PAGE];
    XXH128_hash_t sum;
    struct stat st;
    long n;

    if (system_call(SYS_fstat, fd, &st) < 0 || !S_ISREG(st.st_mode))
        report_end("%s is no file any more", head->path);
    if (head->kind == CW_IMAGE_FILE_SHARED) {
        if ((uint64_t)st.st_size < head->file_size)
            report_end("%s, which the program has mapped, has become shorter", head->path);
        return;
    }
    n = system_call(SYS_pread64, fd, page, sizeof(page), 0);
    if (n < 0)
        report_end("%s cannot be read: %e", head->path, n);
    sum = XXH3_128bits(page, (size_t)n);
    if ((uint64_t)st.st_size != head->file_size || sum.low64 != head->file_start.low ||
        sum.high64 != head->file_start.high)
        report_end("%s is not the file that it was; the same program and libraries must be on each "
                   "machine where the rank may run",
                   head->path);
    if ((uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec !=
        head->file_changed_ns)
        report_end("%s was changed or installed anew since; the same program and libraries must be "
                   "on each machine where the rank may run, with the same time of change",
                   head->path);
}

static int open_file(const struct cw_image_region *head)
{
    bool writes = head->kind == CW_IMAGE_FILE_SHARED && (head->prot & PROT_WRITE);
    int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = system_open(head->path, flags | (writes ? O_RDWR : O_RDONLY), 0);

    if (fd < 0)
        report_end("%s, which the program has mapped, cannot be opened: %e; it must be on each "
                   "machine where the rank may run",
                   head->path, (long)fd);
    check_file(head, fd);
    return fd;
}

/* --- mapping --------------------------------------------------------------------------------- */

/* Memory of no permission stays so until a block comes: it may be huge. */
static uint32_t filling_prot(const struct cw_image_region *head)
{
    if (head->kind == CW_IMAGE_FILE_SHARED || head->prot == PROT_NONE)
        return head->prot;
    return PROT_BOTH;
}

static int map_flags(const struct cw_image_region *head)
{
    bool private = head->kind == CW_IMAGE_ANONYMOUS || head->kind == CW_IMAGE_FILE_PRIVATE;
    int flags = MAP_FIXED_NOREPLACE | (private ? MAP_PRIVATE : MAP_SHARED);

    if (head->kind == CW_IMAGE_ANONYMOUS || head->kind == CW_IMAGE_SHARED)
        flags |= MAP_ANONYMOUS;
    if (head->flags & CW_IMAGE_GROWS_DOWN)
        flags |= MAP_GROWSDOWN;
    if ((head->flags & CW_IMAGE_NO_RESERVE) || !(head->prot & PROT_WRITE))
        flags |= MAP_NORESERVE;
    return flags;
}

static uint64_t writable_end(const struct cw_image_region *head)
{
    uint64_t size = (head->file_size + CW_IMAGE_PAGE - 1) / CW_IMAGE_PAGE * CW_IMAGE_PAGE;

    if (head->kind != CW_IMAGE_FILE_PRIVATE)
        return head->end;
    size = size > head->file_offset ? size - head->file_offset : 0;
    return size < head->end - head->start ? head->start + size : head->end;
}

static void map_region(const struct cw_image_region *head)
{
    uint64_t size = head->end - head->start;
    struct region *r = &regions[count++];
    int fd = -1;
    void *at;

    if (head->start < SYSTEM_PARKED_START && head->end > SYSTEM_RESTORER_START)
        report_end("the program has memory at %x, where causeway-restore is", head->start);
    if (head->kind == CW_IMAGE_FILE_PRIVATE || head->kind == CW_IMAGE_FILE_SHARED)
        fd = open_file(head);
    *r = (struct region){head->start, head->end, head->prot, filling_prot(head)};
    at = system_map(head->start, size, (int)r->mapped, map_flags(head), fd,
                    fd < 0 ? 0 : head->file_offset);
    if (at != at_address(head->start))
        report_end("%d MiB of memory at %x%s%s cannot be mapped: %e%s", (int64_t)(size >> 20),
                   head->start, head->path[0] ? ", of " : "", head->path,
                   system_failed(at) ? (long)at : -17L,
                   (long)at == -ENOMEM ? " (is 'ulimit -v' or 'ulimit -d' set?)" : "");
    if (fd >= 0)
        system_close(fd);
    if (head->flags & CW_IMAGE_HUGE_PAGES)
        system_call(SYS_madvise, at, size, MADV_HUGEPAGE);
    if (head->flags & CW_IMAGE_NO_HUGE_PAGES)
        system_call(SYS_madvise, at, size, MADV_NOHUGEPAGE);
    fill_end = writable_end(head);
}

/* --- filling --------------------------------------------------------------------------------- */

static void fill_block(const struct input_record *record)
{
    struct region *r = &regions[count - 1];
    void *to = at_address(record->block.address);

    if (record->block.address + record->block.size > fill_end)
        report_end("the image is damaged: a block beyond the end of its file");
    if (r->mapped == PROT_NONE) {
        long status = system_call(SYS_mprotect, r->start, r->end - r->start, PROT_BOTH);

        if (status < 0)
            report_end("memory at %x cannot be written: %e", r->start, status);
        r->mapped = PROT_BOTH;
    }
    if (record->type == CW_IMAGE_BLOCK_ZERO)
        memset(to, 0, record->block.size);
    else
        input_payload(record, to);
}

static void protect_all(void)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct region *r = &regions[i];
        long status = 0;

        if (r->mapped != r->prot)
            status = system_call(SYS_mprotect, r->start, r->end - r->start, r->prot);
        if (status < 0)
            report_end("memory at %x cannot get its permissions: %e", r->start, status);
    }
}

void regions_restore(void)
{
    struct input_record record;

    for (input_next(&record); record.type != CW_IMAGE_END; input_next(&record))
        if (record.type == CW_IMAGE_REGION)
            map_region(&record.region);
        else
            fill_block(&record);
    protect_all();
}

bool regions_writable(uint64_t start, uint64_t size)
{
    for (uint32_t i = 0; i < count; i++)
        if (start >= regions[i].start && start < regions[i].end)
            return (regions[i].prot & PROT_BOTH) == PROT_BOTH && regions[i].end - start >= size;
    return false;
}
