#include "rdevice/image/maps.h"

#include "rdevice/image/system.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/sysmacros.h>

#define LINE_MAX_BYTES 20480u /* a path has at most 4096 bytes, each of which may be \ooo */
#define READ_BYTES 65536u

struct reader {
    int (*each)(void *ctx, const struct maps_region *region);
    void *ctx;
    struct maps_region region; /* not yet told of */
    bool any;
    size_t used;
    char text[READ_BYTES + LINE_MAX_BYTES];
};

static int tell(struct reader *r)
{
    bool any = r->any;

    r->any = false;
    return any ? r->each(r->ctx, &r->region) : 0;
}

static int take_line(struct reader *r, const char *line, size_t size, struct cw_err *err)
{
    enum maps_line kind;
    int status = 0;

    if (size > 0 && !(line[0] >= 'A' && line[0] <= 'Z'))
        status = tell(r);
    if (status)
        return status;
    kind = maps_parse(line, size, &r->region);
    if (kind == MAPS_WRONG)
        return cw_err_set(err, CW_ESYS, "/proc/self/maps has a line of another form: %.*s",
                          size > 200 ? 200 : (int)size, line);
    if (kind == MAPS_REGION)
        r->any = true;
    return 0;
}

/* All whole lines of what is there; the rest moves to the front. */
static int take_lines(struct reader *r, struct cw_err *err)
{
    char *at = r->text, *end = r->text + r->used, *stop;
    int status;

    while ((stop = memchr(at, '\n', (size_t)(end - at)))) {
        status = take_line(r, at, (size_t)(stop - at), err);
        if (status)
            return status;
        at = stop + 1;
    }
    r->used = (size_t)(end - at);
    memmove(r->text, at, r->used);
    if (r->used > LINE_MAX_BYTES)
        return cw_err_set(err, CW_ESYS, "/proc/self/maps has a line of more than %u bytes",
                          LINE_MAX_BYTES);
    return 0;
}

static int read_all(struct reader *r, int fd, struct cw_err *err)
{
    int status;
    long n;

    for (;;) {
        n = system_call(SYS_read, fd, r->text + r->used, sizeof(r->text) - r->used);
        if (n < 0)
            return cw_err_set(err, CW_ESYS, "/proc/self/maps cannot be read: %s",
                              strerrordesc_np((int)-n));
        if (n == 0)
            return tell(r);
        r->used += (size_t)n;
        status = take_lines(r, err);
        if (status)
            return status;
    }
}

_Static_assert(sizeof(struct reader) <= MAPS_BUFFER_BYTES, "the reader fits into the buffer");

int maps_each(bool smaps, void *buffer, int (*each)(void *ctx, const struct maps_region *region),
              void *ctx, struct cw_err *err)
{
    const char *path = smaps ? "/proc/self/smaps" : "/proc/self/maps";
    struct reader *r = buffer;
    int fd, status;

    r->used = 0;
    r->any = false;
    r->each = each;
    r->ctx = ctx;
    fd = system_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        status = cw_err_set(err, CW_ESYS, "%s cannot be opened: %s; is /proc mounted?", path,
                            strerrordesc_np(-fd));
    else
        status = read_all(r, fd, err);
    if (fd >= 0)
        system_close(fd);
    return status;
}

#define MAGIC_BCACHEFS 0xca451a4e

bool maps_is_file(const struct maps_region *region, const struct stat *st, uint64_t type)
{
    bool others =
        type == BTRFS_SUPER_MAGIC || type == OVERLAYFS_SUPER_MAGIC || type == MAGIC_BCACHEFS;

    return st->st_ino == region->inode &&
           (others || st->st_dev == makedev(region->major, region->minor));
}
