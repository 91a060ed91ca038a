#include "relay/disk.h"
#include "common/fd.h"
#include "common/workers.h"
#include "relay/log/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DISK_THREADS_COUNT 2
#define DISK_OUT_MAX (STORE_IO_MAX + 1) /* a part of the journal is one more */
#define DISK_TRIES_MAX 100u             /* of a request, in a row, that were interrupted */
#define TRIED_HOLE (1 << 20)            /* bytes, to see whether the file system stores holes */
#define SIZE_LARGEST (8ull << 40) /* of the file in advance; ext4 has files of 16 TiB at most */

struct request {
    struct work work; /* first: found by its address; also where it is unused */
    struct disk *disk;
    struct relay_log_io io;
    uint32_t done;  /* bytes; a multiple of STORE_ALIGN */
    uint32_t tries; /* in a row that were interrupted */
    int error;      /* an errno */
};

struct disk {
    enum disk_kind kind;
    const char *dir;
    int files[STORE_FILES]; /* -1: there is none */
    int wakes;              /* an eventfd */
    struct request requests[DISK_OUT_MAX];
    STAILQ_HEAD(, work) unused;
    uint32_t out; /* requests whose result has not been given */
    uint64_t end; /* of what was written to the segments */

    struct io_uring ring;    /* DISK_RING */
    struct workers *threads; /* the other kinds */
};

static void carry_out(struct work *work);

/* --- requests --------------------------------------------------------------------------------- */
/* A read of what was never written fails as well where the file is larger than that; it is carried
 * out all the same, so that its result comes as others do. */
static struct request *request_new(struct disk *d, const struct relay_log_io *io)
{
    struct request *r = (struct request *)STAILQ_FIRST(&d->unused);
    uint64_t end = io->offset + io->size;

    assert(r);
    assert(io->size > 0 && (io->offset | io->size | (uintptr_t)io->at) % STORE_ALIGN == 0);
    STAILQ_REMOVE_HEAD(&d->unused, next);
    d->out++;
    *r = (struct request){.work.run = carry_out, .disk = d, .io = *io};
    if (io->file != STORE_SEGMENTS)
        return r;
    if (io->write && end > d->end)
        d->end = end;
    if (!io->write && end > d->end)
        r->error = EIO;
    return r;
}

static void request_give(struct disk *d, struct request *r, struct relay_log_done *done)
{
    *done = (struct relay_log_done){.segment = r->io.segment, .error = r->error};
    STAILQ_INSERT_HEAD(&d->unused, &r->work, next);
    d->out--;
}

/* A system call for the rest of a request has returned a number of bytes, or a negative errno.
 * True: the request has been carried out. What goes past the page cache goes on at a whole page.
 * ECANCELED: the kernel may let go of what a thread asked io_uring for when that thread ends. */
static bool request_advance(struct request *r, int result)
{
    uint32_t pages = result > 0 ? (uint32_t)result / STORE_ALIGN * STORE_ALIGN : 0;
    bool again = result == -EINTR || result == -EAGAIN || result == -ECANCELED;

    r->tries = again ? r->tries + 1 : 0;
    if (again && r->tries < DISK_TRIES_MAX)
        return false;
    if (pages == 0)
        r->error = result < 0 ? -result : EIO;
    r->done += pages;
    assert(r->done <= r->io.size);
    return r->error || r->done == r->io.size;
}

/* Of pwritev2. */
static int sync_flag(const struct request *r)
{
    return r->io.sync ? RWF_DSYNC : 0;
}

/* --- io_uring --------------------------------------------------------------------------------- */
/* No buffers are registered: the core's memory grows on demand, and locked memory is limited. */
static void ring_ask(struct disk *d, struct request *r)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&d->ring);
    uint64_t offset = r->io.offset + r->done;
    uint8_t *at = r->io.at + r->done;
    uint32_t size = r->io.size - r->done;

    assert(sqe); /* there are as many as requests */
    if (r->io.write)
        io_uring_prep_write(sqe, d->files[r->io.file], at, size, offset);
    else
        io_uring_prep_read(sqe, d->files[r->io.file], at, size, offset);
    sqe->rw_flags = sync_flag(r);
    io_uring_sqe_set_data(sqe, r);
}

/* What the kernel does not take, as it is short of memory, is offered again with the next call. */
static void ring_submit(struct disk *d)
{
    if (io_uring_sq_ready(&d->ring) > 0)
        io_uring_submit(&d->ring);
}

static void ring_take(struct disk *d, struct request *r)
{
    ring_ask(d, r);
    ring_submit(d);
}

/* Looking costs no system call. Ends, for every request is over after so many tries. */
static struct request *ring_next(struct disk *d)
{
    struct io_uring_cqe *cqe;

    ring_submit(d);
    while (io_uring_peek_cqe(&d->ring, &cqe) == 0) {
        struct request *r = io_uring_cqe_get_data(cqe);
        int result = cqe->res;

        io_uring_cqe_seen(&d->ring, cqe);
        if (request_advance(r, result))
            return r;
        ring_take(d, r);
    }
    return NULL;
}

static void ring_wait(struct disk *d)
{
    int result = io_uring_submit_and_wait(&d->ring, 1);

    if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY)
        abort(); /* the kernel keeps what nothing gets out of it */
}

static int no_ring(struct cw_err *err, const char *doing, int failure)
{
    return cw_err_set(err, CW_ENOTFOUND, "%s: %s; %d threads write and read instead", doing,
                      strerror(failure), DISK_THREADS_COUNT);
}

/* Reads the first page of the file: a filter may let rings be made and refuse to use them, and old
 * ones do not read. */
static int ring_try(struct disk *d, uint8_t *page, struct cw_err *err)
{
    struct request r = {.io = {.at = page, .size = STORE_ALIGN}};
    struct io_uring_cqe *cqe;
    int result;

    do {
        ring_ask(d, &r);
        result = io_uring_submit(&d->ring);
        if (result < 0)
            return no_ring(err, "io_uring_enter", -result);
        while ((result = io_uring_wait_cqe(&d->ring, &cqe)) == -EINTR)
            ;
        if (result < 0)
            abort(); /* the kernel may still write to the page */
        result = cqe->res;
        io_uring_cqe_seen(&d->ring, cqe);
    } while (!request_advance(&r, result));
    return r.error ? no_ring(err, "reading by io_uring", r.error) : CW_OK;
}

/* Not for a single issuer: the threads of an engine take turns. */
static int ring_start(struct disk *d, uint8_t *page, struct cw_err *err)
{
    int failed = io_uring_queue_init(DISK_OUT_MAX, &d->ring, 0);

    if (failed)
        return no_ring(err, "io_uring_setup", -failed);
    failed = ring_try(d, page, err);
    if (!failed) {
        failed = io_uring_register_eventfd(&d->ring, d->wakes);
        if (failed)
            failed = no_ring(err, "io_uring_register of an eventfd", -failed);
    }
    if (failed)
        io_uring_queue_exit(&d->ring);
    return failed;
}

static void ring_end(struct disk *d)
{
    struct relay_log_done done;
    struct request *r;

    while (d->out > 0) {
        r = ring_next(d);
        if (r)
            request_give(d, r, &done);
        else
            ring_wait(d);
    }
    io_uring_queue_exit(&d->ring);
}

/* --- threads ---------------------------------------------------------------------------------- */
/* The page cache drops what is on disk already. */
static void drop_cached(struct disk *d, struct request *r)
{
    const struct relay_log_io *io = &r->io;
    int file = d->files[io->file];

    if (io->write && !r->error && !io->sync &&
        sync_file_range(file, (off_t)io->offset, io->size,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER) < 0 &&
        fdatasync(file) < 0)
        r->error = errno;
    posix_fadvise(file, (off_t)io->offset, io->size, POSIX_FADV_DONTNEED);
}

/* Returns a number of bytes, or -1. */
static ssize_t move(const struct disk *d, const struct request *r)
{
    struct iovec rest = {r->io.at + r->done, r->io.size - r->done};
    off_t offset = (off_t)(r->io.offset + r->done);
    int file = d->files[r->io.file];

    if (!r->io.write)
        return pread(file, rest.iov_base, rest.iov_len, offset);
    if (r->io.sync)
        return pwritev2(file, &rest, 1, offset, sync_flag(r));
    return pwrite(file, rest.iov_base, rest.iov_len, offset);
}

/* Blocks. */
static void carry_out(struct work *work)
{
    struct request *r = (struct request *)work;
    ssize_t n;

    do
        n = move(r->disk, r);
    while (!request_advance(r, n < 0 ? -errno : (int)n));
    if (r->disk->kind == DISK_CACHED)
        drop_cached(r->disk, r);
}

/* --- the file --------------------------------------------------------------------------------- */
static const char *advice(int failure)
{
    switch (failure) {
    case ENOENT:
    case ENOTDIR:
        return "give a directory that exists";
    case EACCES:
    case EPERM:
    case EROFS:
        return "give a directory that this user can write to";
    case ENOSPC:
    case EDQUOT:
        return "make room there, or give a directory of another disk";
    case EMFILE:
    case ENFILE:
        return "raise 'ulimit -n'";
    default:
        return "give a directory of another disk";
    }
}

/* Where the file system has no files without a name: one that loses it. */
static int open_and_unlink(const char *dir)
{
    char path[PATH_MAX];
    int fd;

    if (snprintf(path, sizeof(path), "%s/causeway-log-XXXXXX", dir) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

int disk_make_file(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
        fd = open_and_unlink(dir);
    return fd;
}

/* A duplicate shares O_DIRECT with `file`: each kind sets it or takes it away. */
static int open_file(const char *dir, int file)
{
    return file < 0 ? disk_make_file(dir) : fcntl(file, F_DUPFD_CLOEXEC, 0);
}

/* btrfs would write a changed page to another place and a checksum of it, all of that through the
 * page cache: an eighth of the rate, and 13 times the processor's time (in a loop device,
 * Linux 6.18). Where there is nothing like that, this fails. */
static void write_in_place(int fd)
{
    int flags;

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
        return;
    flags |= FS_NOCOW_FL;
    ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

static int no_direct(struct cw_err *err)
{
    return cw_err_set(err, CW_ENOTFOUND,
                      "this file system cannot be written past the page cache; what is written is "
                      "dropped from it again");
}

/* Writes the first page of the file: a disk may want requests of more than STORE_ALIGN. What
 * another disk has written is read instead. */
static int try_file(struct disk *d, uint8_t *page, struct cw_err *err)
{
    struct request r = {.disk = d, .io = {.write = d->end == 0, .at = page, .size = STORE_ALIGN}};

    /* not by open(2), which leaves the file behind that it then refuses */
    if (fcntl(d->files[STORE_SEGMENTS], F_SETFL, d->kind == DISK_CACHED ? 0 : O_DIRECT) < 0)
        return no_direct(err);
    carry_out(&r.work);
    if (r.error == EINVAL && d->kind != DISK_CACHED)
        return no_direct(err);
    if (r.error)
        return cw_err_set(err, CW_ESYS, "%s a file there: %s; %s",
                          r.io.write ? "writing" : "reading", strerror(r.error), advice(r.error));
    return CW_OK;
}

/* Some file systems have no holes, and write what a file is to grow by. */
static bool has_holes(const struct disk *d)
{
    struct stat st;

    return ftruncate(d->files[STORE_SEGMENTS], TRIED_HOLE) == 0 &&
           fstat(d->files[STORE_SEGMENTS], &st) == 0 && st.st_blocks * 512 < TRIED_HOLE;
}

/* Makes the file as long as it can become, of one hole, which takes no room: the kernel carries out
 * writes that make a file longer one after the other, in threads of its own. On ext4, for the first
 * 2 GiB with 16 requests of 256 KiB out, three runs each (Linux 6.18, virtual machine of 2 cores):
 * 1.5 to 1.8 GiB/s and 0.1 to 0.16 s of processor time for each GiB; without, 0.6 to 0.7 GiB/s and
 * 0.8 to 1.1 s. False: it is as long as what was written. */
static bool set_size(const struct disk *d, uint64_t bytes)
{
    struct rlimit limit;

    if (bytes > SIZE_LARGEST)
        bytes = SIZE_LARGEST;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
        bytes = limit.rlim_cur; /* beyond it there is a signal */
    return bytes >= TRIED_HOLE && has_holes(d) &&
           ftruncate(d->files[STORE_SEGMENTS], (off_t)bytes) == 0;
}

int disk_settle_file(int file, struct cw_err *err)
{
    struct stat st;

    if (fstat(file, &st) == 0 &&
        (st.st_size == 0 || ftruncate(file, st.st_size + STORE_ALIGN) < 0 ||
         ftruncate(file, st.st_size) == 0))
        return CW_OK;
    return cw_err_set(err, CW_ESYS, "a file of the log: %s", strerror(errno));
}

static int take_over(struct disk *d, struct cw_err *err)
{
    struct stat st;

    if (disk_settle_file(d->files[STORE_SEGMENTS], err) < 0)
        return err->code;
    fstat(d->files[STORE_SEGMENTS], &st);
    d->end = (uint64_t)st.st_size / STORE_ALIGN * STORE_ALIGN;
    return CW_OK;
}

/* --- beginning and end ------------------------------------------------------------------------ */
static int start(struct disk *d, const char *dir, struct cw_err *err)
{
    uint8_t *page = aligned_alloc(STORE_ALIGN, STORE_ALIGN);
    int failed;

    if (!page)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    memset(page, 0, STORE_ALIGN);
    failed = try_file(d, page, err);
    if (!failed && d->kind == DISK_RING)
        failed = ring_start(d, page, err);
    free(page);
    if (!failed && d->kind != DISK_RING &&
        !(d->threads = workers_new(DISK_THREADS_COUNT, d->wakes, err)))
        failed = err->code;
    if (failed)
        return failed;
    if (d->kind == DISK_CACHED)
        posix_fadvise(d->files[STORE_SEGMENTS], 0, 0, POSIX_FADV_RANDOM); /* reads nothing ahead */
    else if (d->end == 0)
        set_size(d, disk_free(dir)); /* an error costs time later, nothing else */
    return CW_OK;
}

static void close_files(struct disk *d)
{
    for (int i = 0; i < STORE_FILES; i++)
        cw_close(&d->files[i]);
}

static int open_as(struct disk *d, const char *dir, int file, struct cw_err *err)
{
    int failed;

    d->files[STORE_SEGMENTS] = open_file(dir, file);
    if (d->files[STORE_SEGMENTS] < 0)
        return cw_err_set(err, CW_ESYS, "making a file there: %s; %s", strerror(errno),
                          advice(errno));
    write_in_place(d->files[STORE_SEGMENTS]); /* as long as it is empty */
    d->wakes = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (d->wakes < 0) {
        cw_err_set(err, CW_ESYS, "eventfd: %s; %s", strerror(errno), advice(errno));
        close_files(d);
        return err->code;
    }
    failed = take_over(d, err);
    if (!failed)
        failed = start(d, dir, err);
    if (failed) {
        close_files(d);
        close(d->wakes);
    }
    return failed;
}

int disk_keep_journals(struct disk *d, const int journals[2], struct cw_err *err)
{
    for (int i = 0; i < 2; i++) {
        int fd = fcntl(journals[i], F_DUPFD_CLOEXEC, 0);

        if (fd < 0 || fcntl(fd, F_SETFL, d->kind == DISK_CACHED ? 0 : O_DIRECT) < 0) {
            cw_err_set(err, CW_ESYS, "--log-dir %s: a file of the journal: %s; %s", d->dir,
                       strerror(errno), advice(errno));
            cw_close(&fd);
            return err->code;
        }
        d->files[STORE_JOURNAL_0 + i] = fd;
        write_in_place(fd);
    }
    return CW_OK;
}

struct disk *disk_open_as(const char *dir, int file, enum disk_kind kind, struct cw_err *err)
{
    struct disk *d = calloc(1, sizeof(*d));
    int failed;

    if (!d) {
        cw_err_set(err, CW_ENOMEM, "--log-dir %s: no memory", dir);
        return NULL;
    }
    d->kind = kind;
    d->dir = dir;
    for (int i = 0; i < STORE_FILES; i++)
        d->files[i] = -1;
    STAILQ_INIT(&d->unused);
    for (uint32_t i = 0; i < DISK_OUT_MAX; i++)
        STAILQ_INSERT_TAIL(&d->unused, &d->requests[i].work, next);
    failed = open_as(d, dir, file, err);
    if (!failed)
        return d;
    cw_err_wrap(err, "--log-dir %s", dir);
    free(d);
    return NULL;
}

struct disk *disk_open(const char *dir, int file, struct cw_err *err)
{
    struct cw_err why;
    struct disk *d = disk_open_as(dir, file, DISK_RING, err);

    for (int kind = DISK_THREADS; !d && err->code == CW_ENOTFOUND && kind <= DISK_CACHED; kind++) {
        why = *err;
        d = disk_open_as(dir, file, kind, err);
        if (d)
            dprintf(STDERR_FILENO, "causeway relay: %s\n", why.text);
    }
    return d;
}

void disk_close(struct disk *d)
{
    if (!d)
        return;
    if (d->kind == DISK_RING)
        ring_end(d);
    else
        workers_free(d->threads);
    close_files(d);
    close(d->wakes);
    free(d);
}

/* --- for the engine --------------------------------------------------------------------------- */
static void disk_take(void *ctx, const struct relay_log_io *io)
{
    struct disk *d = ctx;
    struct request *r = request_new(d, io);

    if (d->kind == DISK_RING)
        ring_take(d, r);
    else
        workers_add(d->threads, &r->work);
}

/* What was last written there does not count any more: the relay is about to tell the world what
 * follows it. */
static void end_journal(struct disk *d, int error)
{
    for (int i = STORE_JOURNAL_0; i <= STORE_JOURNAL_1; i++)
        if (ftruncate(d->files[i], 0) < 0 || fsync(d->files[i]) < 0)
            dprintf(STDERR_FILENO, "causeway relay: --log-dir %s: emptying the journal: %s\n",
                    d->dir, strerror(errno));
    dprintf(STDERR_FILENO,
            "causeway relay: --log-dir %s: writing the journal: %s; %s. The relay goes on as with "
            "--log-safety file: its log does not survive the loss of power any more\n",
            d->dir, strerror(error), advice(error));
}

static bool disk_next_done(void *ctx, struct relay_log_done *done)
{
    struct disk *d = ctx;
    struct request *r;

    if (d->out == 0)
        return false;
    r = d->kind == DISK_RING ? ring_next(d) : (struct request *)workers_next(d->threads);
    if (!r)
        return false;
    if (r->error && r->io.file != STORE_SEGMENTS)
        end_journal(d, r->error);
    request_give(d, r, done);
    return true;
}

struct relay_listener disk_listener(const struct disk *d)
{
    return (struct relay_listener){.fd = d->wakes, .wakes = true};
}

struct relay_disk disk_ops(struct disk *d)
{
    return d ? (struct relay_disk){.ctx = d, .take = disk_take, .next_done = disk_next_done}
             : (struct relay_disk){0};
}

/* --- what a directory is ---------------------------------------------------------------------- */
bool disk_in_memory(const char *dir)
{
    struct statfs fs;

    return statfs(dir, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

uint64_t disk_held(const struct disk *d)
{
    struct stat st;

    return fstat(d->files[STORE_SEGMENTS], &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

uint64_t disk_free(const char *dir)
{
    struct statvfs fs;

    return statvfs(dir, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
}
