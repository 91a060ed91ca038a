#include "rdevice/image/memory.h"

#include "rdevice/image/header.h"
#include "rdevice/image/maps.h"
#include "rdevice/image/shared.h"
#include "rdevice/image/system.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define LEFT_OUT_MAX (IMAGE_LEFT_OUT_MAX + SHARED_MAX + 8u)
#define PAGES_AT_ONCE 16384u /* of which pagemap tells */
#define PAGE CW_IMAGE_PAGE

/* What /proc/self/pagemap says of a page. */
#define PAGE_PRESENT (1ull << 63)
#define PAGE_SWAPPED (1ull << 62)
#define PAGE_OF_FILE (1ull << 61)

struct range {
    uint64_t start, end;
};

/* The ioctl PAGEMAP_SCAN, of Linux 6.7, which headers of Debian 12 do not have. */
struct scan {
    uint64_t size, flags;
    uint64_t start, end, stopped;
    uint64_t found, found_max, pages_max;
    uint64_t inverted, all_of, any_of, told;
};

struct scan_region {
    uint64_t start, end, what;
};

#define SCAN _IOWR('f', 16, struct scan)
#define SCAN_PRESENT (1u << 3)
#define SCAN_SWAPPED (1u << 4)

struct memory {
    struct cw_image_header *header;
    uint64_t bytes;
    uint32_t regions, left_out;
    int pagemap, mem;
    struct range out[LEFT_OUT_MAX];
    char maps_buffer[MAPS_BUFFER_BYTES];
    uint64_t page[PAGES_AT_ONCE];
    char block[CW_IMAGE_BLOCK];
    struct maps_region region[CW_IMAGE_REGIONS_MAX];
};

/* One region as it goes into the image, and where its bytes come from. */
struct piece {
    struct cw_image_region head;
    uint64_t run;     /* pages that wait to be written begin here; 0: none */
    int64_t bias;     /* from the address to where the bytes are */
    bool whole;       /* all that can be read is for the image, through /proc/self/mem */
    bool over_a_file; /* zeros count, and pages of the file do not */
    bool empty;       /* it was never touched. Holes are walked page by page, as slow as pages */
};

uint64_t memory_size(void)
{
    return sizeof(struct memory);
}

uint64_t memory_bytes(const struct memory *memory)
{
    return memory->bytes;
}

/* --- looking --------------------------------------------------------------------------------- */

struct look {
    struct memory *memory;
    struct cw_err *err;
};

/* Where the restorer has its own, or puts the kernel's; but what it has put there before stays: a
 * vdso of another kernel. */
static bool is_in_the_way(const struct maps_region *region)
{
    if (region->start >= SYSTEM_PARKED_END || region->end <= SYSTEM_RESTORER_START)
        return false;
    return region->start < SYSTEM_PARKED_START || region->inode != 0 ||
           region->prot != (PROT_READ | PROT_EXEC) ||
           region->end - region->start > CW_IMAGE_VDSO_MAX;
}

static int add_region(void *ctx, const struct maps_region *region)
{
    struct look *look = ctx;
    struct memory *m = look->memory;

    if (region->kernel)
        return header_add_system(m->header, region, look->err);
    if (is_in_the_way(region))
        return cw_err_set(
            look->err, CW_EINVAL,
            "the program has memory at %llx, where the restorer of images has its own",
            (unsigned long long)region->start);
    if (m->regions == CW_IMAGE_REGIONS_MAX)
        return cw_err_set(look->err, CW_ELIMIT, "the program has more than %u regions of memory",
                          CW_IMAGE_REGIONS_MAX);
    m->region[m->regions++] = *region;
    m->bytes += region->anonymous;
    return 0;
}

int memory_look(struct memory *m, struct cw_image_header *header, struct cw_err *err)
{
    struct look look = {m, err};

    m->header = header;
    m->pagemap = system_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
    m->mem = system_open("/proc/self/mem", O_RDONLY | O_CLOEXEC, 0);
    if (m->pagemap < 0 || m->mem < 0)
        return cw_err_set(err, CW_ESYS, "%s cannot be opened: %s",
                          m->pagemap < 0 ? "/proc/self/pagemap" : "/proc/self/mem",
                          strerrordesc_np(m->pagemap < 0 ? -m->pagemap : -m->mem));
    for (uint32_t i = 0; shared_get(i); i++)
        memory_leave_out(m, (uint64_t)(uintptr_t)shared_get(i)->copy,
                         shared_get(i)->end - shared_get(i)->start);
    return maps_each(true, m->maps_buffer, add_region, &look, err);
}

void memory_leave_out(struct memory *m, uint64_t start, uint64_t size)
{
    if (size > 0 && m->left_out < LEFT_OUT_MAX)
        m->out[m->left_out++] = (struct range){start, start + size};
}

/* --- blocks ---------------------------------------------------------------------------------- */

static const void *at_address(uint64_t address)
{
    return (const void *)(uintptr_t)address;
}

static int write_run(struct stream *stream, struct piece *piece, uint64_t end, struct cw_err *err)
{
    uint64_t run = piece->run;

    piece->run = 0;
    if (run == 0)
        return 0;
    return stream_block(stream, run, end - run, at_address(run + (uint64_t)piece->bias), err);
}

/* Blocks are as long as pages follow each other, within one window. */
static int write_page(struct stream *stream, struct piece *piece, uint64_t address, bool wanted,
                      struct cw_err *err)
{
    bool zero = wanted && system_is_zero(at_address(address + (uint64_t)piece->bias), PAGE);

    if (!wanted || zero) {
        if (write_run(stream, piece, address, err))
            return err->code;
        if (zero && piece->over_a_file)
            return stream_block(stream, address, PAGE, NULL, err);
        return 0;
    }
    if (piece->run == 0)
        piece->run = address;
    if ((address + PAGE) % CW_IMAGE_BLOCK == 0)
        return write_run(stream, piece, address + PAGE, err);
    return 0;
}

static bool is_wanted(const struct piece *piece, uint64_t page)
{
    if (!(page & (PAGE_PRESENT | PAGE_SWAPPED)))
        return false;
    return !piece->over_a_file || !(page & PAGE_OF_FILE) || (page & PAGE_SWAPPED);
}

static int read_pagemap(struct memory *m, uint64_t address, uint64_t pages, struct cw_err *err)
{
    long n = system_call(SYS_pread64, m->pagemap, m->page, pages * 8, address / PAGE * 8);

    if (n != (long)(pages * 8))
        return cw_err_set(err, CW_ESYS, "/proc/self/pagemap cannot be read at %llx: %s",
                          (unsigned long long)address,
                          n < 0 ? strerrordesc_np((int)-n) : "it ends");
    return 0;
}

/* The first page from `at` on that has something in it, or `end`. Of 16 TB that a program reserves,
 * pagemap tells for a minute that nothing is there. Returns `at` where the kernel does not know. */
static uint64_t first_touched(const struct memory *m, uint64_t at, uint64_t end)
{
    struct scan_region first = {0};
    struct scan scan = {.size = sizeof(scan),
                        .start = at,
                        .end = end,
                        .found = (uint64_t)(uintptr_t)&first,
                        .found_max = 1,
                        .pages_max = 1,
                        .any_of = SCAN_PRESENT | SCAN_SWAPPED,
                        .told = SCAN_PRESENT};
    long found = system_call(SYS_ioctl, m->pagemap, SCAN, &scan);

    if (found == 0)
        return end;
    return found == 1 && first.start > at && first.start < end ? first.start : at;
}

/* Where the next page may be that goes into the image; short pieces are looked through at once. */
static uint64_t skip_untouched(const struct memory *m, const struct piece *piece, uint64_t at)
{
    uint64_t bias = (uint64_t)piece->bias;

    if ((piece->head.end - at) / PAGE <= PAGES_AT_ONCE)
        return at;
    return first_touched(m, at + bias, piece->head.end + bias) - bias;
}

/* Memory without read permission is readable in the copy, if it has pages at all. */
static int write_touched(struct memory *m, struct stream *stream, struct piece *piece,
                         struct cw_err *err)
{
    bool readable = piece->bias != 0 || (piece->head.prot & PROT_READ);

    for (uint64_t at = piece->head.start, next; at < piece->head.end;) {
        uint64_t pages;

        next = skip_untouched(m, piece, at);
        if (next > at && write_run(stream, piece, at, err))
            return err->code;
        at = next;
        pages = (piece->head.end - at) / PAGE;
        if (pages > PAGES_AT_ONCE)
            pages = PAGES_AT_ONCE;
        if (read_pagemap(m, at + (uint64_t)piece->bias, pages, err))
            return err->code;
        for (uint64_t i = 0; i < pages; i++, at += PAGE) {
            bool wanted = is_wanted(piece, m->page[i]);

            if (wanted && !readable) {
                system_call(SYS_mprotect, piece->head.start, piece->head.end - piece->head.start,
                            PROT_READ);
                readable = true;
            }
            if (write_page(stream, piece, at, wanted, err))
                return err->code;
        }
    }
    return write_run(stream, piece, piece->head.end, err);
}

/* What cannot be read lies beyond the end of its file: EIO, as where the file's disk fails. */
static int write_readable(struct memory *m, struct stream *stream, const struct piece *piece,
                          struct cw_err *err)
{
    for (uint64_t at = piece->head.start, size; at < piece->head.end; at += size) {
        long n;

        size = CW_IMAGE_BLOCK - at % CW_IMAGE_BLOCK;
        if (size > piece->head.end - at)
            size = piece->head.end - at;
        n = system_call(SYS_pread64, m->mem, m->block, size, at);
        if (n < 0 && n != -EIO)
            return cw_err_set(err, CW_ESYS, "memory at %llx cannot be read: %s",
                              (unsigned long long)at, strerrordesc_np((int)-n));
        n = n < 0 ? 0 : n - n % PAGE;
        if (n > 0 && !system_is_zero(m->block, (uint64_t)n) &&
            stream_block(stream, at, (uint64_t)n, m->block, err))
            return err->code;
        if ((uint64_t)n < size)
            break;
    }
    return 0;
}

static int write_piece(struct memory *m, struct stream *stream, struct piece *piece,
                       struct cw_err *err)
{
    if (stream_region(stream, &piece->head, err))
        return err->code;
    if (piece->head.kind == CW_IMAGE_FILE_SHARED || piece->empty)
        return 0;
    if (piece->whole)
        return write_readable(m, stream, piece, err);
    return write_touched(m, stream, piece, err);
}

/* --- regions --------------------------------------------------------------------------------- */

/* Whether the path still names the file that is mapped; then with what it begins with. An inode's
 * number is not used again while the file is mapped. */
static bool is_file(struct memory *m, const struct maps_region *region,
                    struct cw_image_region *head)
{
    XXH128_hash_t hash;
    struct statfs fs;
    struct stat st;
    bool same;
    long n = 0;
    int fd;

    if (region->deleted || region->cut || region->path[0] != '/')
        return false;
    fd = system_open(region->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return false;
    same = system_call(SYS_fstat, fd, &st) == 0 && system_call(SYS_fstatfs, fd, &fs) == 0 &&
           S_ISREG(st.st_mode) && maps_is_file(region, &st, (uint64_t)fs.f_type);
    if (same)
        n = system_call(SYS_pread64, fd, m->block, PAGE, 0);
    system_close(fd);
    if (!same || n < 0)
        return false;
    hash = XXH3_128bits(m->block, (size_t)n);
    head->file_size = (uint64_t)st.st_size;
    head->file_start = (struct cw_image_hash){hash.low64, hash.high64};
    head->file_changed_ns =
        (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    return true;
}

static const struct shared_copy *copy_of(uint64_t start)
{
    const struct shared_copy *copy;

    for (uint32_t i = 0; (copy = shared_get(i)); i++)
        if (start >= copy->start && start < copy->end)
            return copy;
    return NULL;
}

static void decide(struct memory *m, const struct maps_region *region, struct piece *piece)
{
    const struct shared_copy *copy = region->shared ? copy_of(region->start) : NULL;

    piece->head.kind = CW_IMAGE_ANONYMOUS;
    piece->head.prot = region->prot;
    piece->head.flags = region->flags;
    strcpy(piece->head.path, region->path);
    piece->empty = region->inode == 0 && !region->shared && region->anonymous == 0;
    if (copy) {
        piece->head.kind = CW_IMAGE_SHARED;
        piece->bias = (int64_t)((uint64_t)(uintptr_t)copy->copy - copy->start);
    } else if (region->shared) {
        piece->head.kind = CW_IMAGE_FILE_SHARED;
        is_file(m, region, &piece->head);
    } else if (region->inode != 0 && is_file(m, region, &piece->head)) {
        piece->head.kind = CW_IMAGE_FILE_PRIVATE;
        piece->over_a_file = true;
    } else if (region->inode != 0 && strncmp(region->path, "/anon_hugepage", 14) != 0) {
        piece->whole = true;
    }
}

/* The first range that begins before `end` and ends after `start`. */
static const struct range *first_left_out(const struct memory *m, uint64_t start, uint64_t end)
{
    const struct range *first = NULL;

    for (uint32_t i = 0; i < m->left_out; i++)
        if (m->out[i].start < end && m->out[i].end > start &&
            (!first || m->out[i].start < first->start))
            first = &m->out[i];
    return first;
}

static int write_part(struct memory *m, struct stream *stream, const struct maps_region *region,
                      const struct range *part, struct cw_err *err)
{
    struct piece piece = {.head = {.start = part->start, .end = part->end}};

    if (region->keyed)
        return cw_err_set(err, CW_EINVAL,
                          "the program protects memory by keys (pkey_mprotect), which an image "
                          "cannot hold");
    if (region->device)
        return cw_err_set(err, CW_EINVAL, "the program has memory of a device: %.200s",
                          region->path);
    decide(m, region, &piece);
    if (region->inode != 0)
        piece.head.file_offset = region->offset + (part->start - region->start);
    return write_piece(m, stream, &piece, err);
}

static int write_region(struct memory *m, struct stream *stream, const struct maps_region *region,
                        struct cw_err *err)
{
    struct range part = {region->start, region->end};

    while (part.start < region->end) {
        const struct range *out = first_left_out(m, part.start, region->end);

        part.end = out ? out->start : region->end;
        if (part.start < part.end && write_part(m, stream, region, &part, err))
            return err->code;
        part.start = out ? out->end : region->end;
    }
    return 0;
}

int memory_write(struct memory *m, struct stream *stream, struct cw_err *err)
{
    for (uint32_t i = 0; i < m->regions; i++)
        if (write_region(m, stream, &m->region[i], err))
            return err->code;
    return 0;
}
