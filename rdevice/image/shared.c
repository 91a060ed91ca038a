#include "rdevice/image/shared.h"

#include "rdevice/image/files.h"
#include "rdevice/image/maps.h"
#include "rdevice/image/system.h"

#include <fcntl.h>
#include <linux/sysinfo.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#define PAGES_AT_ONCE 65536u /* of which mincore() tells */
#define PAGE CW_IMAGE_PAGE

static struct shared_copy copies[SHARED_MAX];
static uint32_t count;

struct take {
    const struct image_range *left_out;
    uint32_t left_out_count;
    struct cw_err *err;
    bool swaps; /* something on this machine is swapped out: perhaps these pages */
};

const struct shared_copy *shared_get(uint32_t index)
{
    return index < count ? &copies[index] : NULL;
}

void shared_release(void)
{
    for (uint32_t i = 0; i < count; i++)
        system_unmap((uint64_t)(uintptr_t)copies[i].copy, copies[i].end - copies[i].start);
    count = 0;
}

static bool swap_is_used(void)
{
    struct sysinfo info = {0};

    return system_call(SYS_sysinfo, &info) < 0 || info.totalswap != info.freeswap;
}

/* --- copying --------------------------------------------------------------------------------- */

/* What nobody has touched has no pages, and is zero. */
static void copy_pages(uint64_t from, uint64_t to, uint64_t size, bool all)
{
    static unsigned char resident[PAGES_AT_ONCE];

    for (uint64_t done = 0, part; done < size; done += part) {
        part = size - done;
        if (part > (uint64_t)PAGES_AT_ONCE * PAGE)
            part = (uint64_t)PAGES_AT_ONCE * PAGE;
        if (all || system_call(SYS_mincore, from + done, part, resident) < 0)
            memset(resident, 1, part / PAGE);
        for (uint64_t i = 0; i < part / PAGE; i++) {
            const void *page = (const void *)(uintptr_t)(from + done + i * PAGE);

            if ((resident[i] & 1) && !system_is_zero(page, PAGE))
                memcpy((void *)(uintptr_t)(to + done + i * PAGE), page, PAGE);
        }
    }
}

static int copy_mapping(const struct take *take, const struct maps_region *region,
                        struct cw_err *err)
{
    uint64_t size = region->end - region->start;
    char *copy = system_memory(size);

    if (count == SHARED_MAX || !copy) {
        if (copy)
            system_unmap((uint64_t)(uintptr_t)copy, size);
        return cw_err_set(err, copy ? CW_ELIMIT : CW_ENOMEM,
                          copy ? "the program shares more than %u pieces of memory"
                               : "no memory to copy piece %u of shared memory",
                          copy ? SHARED_MAX : count);
    }
    copies[count++] = (struct shared_copy){.start = region->start,
                                           .end = region->end,
                                           .inode = region->inode,
                                           .major = region->major,
                                           .minor = region->minor,
                                           .offset = region->offset,
                                           .copy = copy};
    if (!(region->prot & PROT_READ))
        system_call(SYS_mprotect, region->start, size, PROT_READ);
    copy_pages(region->start, (uint64_t)(uintptr_t)copy, size, take->swaps);
    if (!(region->prot & PROT_READ))
        system_call(SYS_mprotect, region->start, size, region->prot);
    return 0;
}

/* --- deciding -------------------------------------------------------------------------------- */

static bool is_left_out(const struct take *take, const struct maps_region *region)
{
    for (uint32_t i = 0; i < take->left_out_count; i++)
        if (region->start >= take->left_out[i].start &&
            region->end <= take->left_out[i].start + take->left_out[i].size)
            return true;
    return false;
}

/* 1: a regular file that can be mapped again; 0: it is gone; else refused. */
static int can_map_again(const struct maps_region *region, struct cw_err *err)
{
    struct statfs fs;
    struct stat st;

    if (strncmp(region->path, "anon_inode:", 11) == 0 || strncmp(region->path, "/[aio]", 6) == 0)
        return cw_err_set(err, CW_EINVAL,
                          "the program has memory of %s, which an image cannot hold", region->path);
    if (region->deleted || region->cut || region->path[0] != '/')
        return 0;
    if (system_call(SYS_newfstatat, AT_FDCWD, region->path, &st, 0) < 0 ||
        system_call(SYS_statfs, region->path, &fs) < 0 ||
        !maps_is_file(region, &st, (uint64_t)fs.f_type))
        return 0;
    if (!S_ISREG(st.st_mode))
        return cw_err_set(err, CW_EINVAL,
                          "the program has memory of the device %s, which an image "
                          "cannot hold",
                          region->path);
    return 1;
}

/* A file that is in the image twice would be two files afterwards. */
static int check_alone(const struct maps_region *region, struct cw_err *err)
{
    uint64_t size = region->end - region->start;

    for (uint32_t i = 0; i < count; i++)
        if (copies[i].inode == region->inode && copies[i].major == region->major &&
            copies[i].minor == region->minor && copies[i].offset < region->offset + size &&
            region->offset < copies[i].offset + (copies[i].end - copies[i].start))
            return cw_err_set(err, CW_EINVAL,
                              "the program has mapped the same shared memory twice (%.100s)",
                              region->path);
    if (files_have(makedev(region->major, region->minor), region->inode))
        return cw_err_set(err, CW_EINVAL,
                          "the program has mapped %.100s to share it, and keeps a descriptor of it "
                          "open: an image cannot hold both",
                          region->path);
    return 0;
}

static int look(void *ctx, const struct maps_region *region)
{
    struct take *take = ctx;
    int again;

    if (!region->shared || region->kernel || is_left_out(take, region))
        return 0;
    again = can_map_again(region, take->err);
    if (again != 0)
        return again < 0 ? again : 0;
    if (check_alone(region, take->err))
        return take->err->code;
    return copy_mapping(take, region, take->err);
}

int shared_take(const struct image_range *left_out, uint32_t left_out_count, struct cw_err *err)
{
    struct take take = {left_out, left_out_count, err, swap_is_used()};
    void *buffer = system_memory(MAPS_BUFFER_BYTES);
    int status;

    if (!buffer)
        return cw_err_set(err, CW_ENOMEM, "no memory to look for shared memory");
    status = maps_each(false, buffer, look, &take, err);
    system_unmap((uint64_t)(uintptr_t)buffer, MAPS_BUFFER_BYTES);
    if (status)
        shared_release();
    return status;
}
