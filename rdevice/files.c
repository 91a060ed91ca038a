/* Which files the program opens. A re-execution does not restore files: a rank that writes to a
 * file which other ranks open too would write again what they have read or changed since. So the
 * dispatcher is told of every regular file before open() returns to the program; the report arrives
 * even if the process dies at once. Children of the rank's process report their files too.
 * dispatcher/job/files.h decides.
 *
 * A binding to libc beside the device: it uses nothing of the device, and nothing there uses it.
 *
 * These functions may be called by any thread and by signal handlers: no locks. */
#include "rdevice/files.h"
#include "common/setup.h"
#include "rdevice/libc_names.h"
#include "rdevice/next.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define READ_KNOWN 4096u /* files told of as read; one forgotten is told of again */

/* File systems that other machines have too, where each may give them another number of a device:
 * their files are known by the kind of file system. Those of FUSE are not here, for their inodes
 * are numbers of one machine. */
#define MAGIC_LUSTRE 0x0bd00bd0
#define MAGIC_GPFS 0x47504653
#define MAGIC_BEEGFS 0x19830326
static const uint32_t of_all_machines[] = {NFS_SUPER_MAGIC,   SMB_SUPER_MAGIC,  SMB2_SUPER_MAGIC,
                                           CIFS_SUPER_MAGIC,  CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC,
                                           OCFS2_SUPER_MAGIC, V9FS_MAGIC,       MAGIC_LUSTRE,
                                           MAGIC_GPFS,        MAGIC_BEEGFS};
#define NO_DEVICE (1ull << 63)

/* libc's own. */
static struct {
    int (*openat)(int dir, const char *path, int flags, ...);
    int (*openat_2)(int dir, const char *path, int flags);
    FILE *(*fopen)(const char *path, const char *mode);
    FILE *(*freopen)(const char *path, const char *mode, FILE *file);
    int (*clock_gettime)(clockid_t id, struct timespec *t);
    int (*fstatfs)(int fd, struct statfs *to);
} real;

static bool begun;
static int control_fd = -1; /* to the dispatcher; -1: nobody is told */
static uint64_t read_known[READ_KNOWN];

/* --- the beginning ---------------------------------------------------------------------------- */

/* A child may have closed it, and its program something else under that number. */
static bool is_control(int fd)
{
    int type = 0;
    socklen_t size = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* As a constructor, or by the first call: constructors of other libraries open files too. */
__attribute__((constructor)) static void begin(void)
{
    int error = errno;
    const char *text;

    if (begun)
        return;
    next_resolve(&real.openat, "openat");
    next_resolve(&real.openat_2, "__openat_2");
    next_resolve(&real.fopen, "fopen");
    next_resolve(&real.freopen, "freopen");
    next_resolve(&real.clock_gettime, "clock_gettime");
    next_resolve(&real.fstatfs, "fstatfs");
    text = getenv(CW_SETUP_ENV);
    if (text && is_control(atoi(text)))
        control_fd = atoi(text);
    begun = true;
    errno = error;
}

/* --- telling ---------------------------------------------------------------------------------- */

static uint64_t to_ns(int64_t seconds, uint32_t ns)
{
    return (uint64_t)seconds * 1000000000u + ns;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    real.clock_gettime(CLOCK_MONOTONIC, &t);
    return to_ns(t.tv_sec, (uint32_t)t.tv_nsec);
}

static uint64_t device_of(int fd, const struct statx *s)
{
    struct statfs fs;
    bool without_disk = s->stx_dev_major == 0 && real.fstatfs(fd, &fs) == 0;

    for (size_t i = 0; without_disk && i < sizeof(of_all_machines) / sizeof(uint32_t); i++)
        if ((uint32_t)fs.f_type == of_all_machines[i])
            return NO_DEVICE | of_all_machines[i];
    return makedev(s->stx_dev_major, s->stx_dev_minor);
}

/* Tells files apart that are made within one tick of the file system's clock and get the same
 * inode, as temporary files do; 0 where the file system does not say. */
static uint64_t generation_of(int fd)
{
    unsigned long generation = 0; /* file systems write 4 bytes of it */

    return ioctl(fd, FS_IOC_GETVERSION, &generation) == 0 ? (uint32_t)generation : 0;
}

static bool is_regular(int fd, struct cw_opening *opening)
{
    struct statx s;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_BTIME, &s) < 0 ||
        !S_ISREG(s.stx_mode))
        return false;
    opening->device = device_of(fd, &s);
    opening->inode = s.stx_ino;
    if (s.stx_mask & STATX_BTIME)
        opening->born_ns = to_ns(s.stx_btime.tv_sec, s.stx_btime.tv_nsec) ^ generation_of(fd) << 32;
    opening->opened_ns = now_ns();
    return true;
}

/* Never 0, which is an empty place. */
static uint64_t mark_of(const struct cw_opening *opening)
{
    uint64_t mark = opening->inode;

    mark = (mark ^ opening->device) * 0x9e3779b97f4a7c15u;
    mark = (mark ^ mark >> 32 ^ opening->born_ns) * 0x9e3779b97f4a7c15u;
    return (mark ^ mark >> 32) | 1;
}

static bool tell(const struct cw_opening *opening, const char *path)
{
    uint8_t report[CW_REPORT_FILE_MAX];
    size_t size = cw_report_put_file(report, opening, path);
    ssize_t n;

    do
        n = send(control_fd, report, size, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size;
}

/* Of the last part of a path; never 0. */
static uint64_t hash_of_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (const char *p = slash ? slash + 1 : path; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
    return hash | 1;
}

/* A file that is read is told of once: only its first opening counts. One that is written, each
 * time: others may have read it since. */
static void opened(int fd, const char *path, bool writes, bool made)
{
    struct cw_opening opening = {.writes = writes, .made = made, .name = hash_of_name(path)};
    int error = errno;
    uint64_t *known;
    uint64_t mark;

    if (is_regular(fd, &opening)) {
        mark = mark_of(&opening);
        known = &read_known[mark >> 1 & (READ_KNOWN - 1)];
        if (writes)
            tell(&opening, path);
        else if (__atomic_load_n(known, __ATOMIC_RELAXED) != mark && tell(&opening, path))
            __atomic_store_n(known, mark, __ATOMIC_RELAXED);
    }
    errno = error;
}

void files_tell_shared(uint64_t device, uint64_t number, const char *name)
{
    struct cw_opening opening = {.device = device, .inode = number, .writes = true};

    if (!begun)
        begin();
    if (control_fd < 0)
        return;
    opening.opened_ns = now_ns();
    tell(&opening, name);
}

/* --- in place of libc's ----------------------------------------------------------------------- */

/* Who creates a file, and would fail if it were there, writes it again too: a re-execution gets the
 * same file (libc_names.h). */
static bool flags_write(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

static bool mode_writes(const char *mode)
{
    return mode[0] != 'r' || strchr(mode, '+');
}

int files_told(int fd, const char *path, int flags)
{
    if (!begun)
        begin();
    if (fd >= 0 && control_fd >= 0 && !(flags & O_PATH))
        opened(fd, path, flags_write(flags), (flags & O_CREAT) && (flags & O_EXCL));
    return fd;
}

static FILE *told_file(FILE *file, const char *path, const char *mode)
{
    if (file && control_fd >= 0 && path)
        opened(fileno(file), path, mode_writes(mode), strchr(mode, 'x') != NULL);
    return file;
}

static int open_at(int dir, const char *path, int flags, mode_t mode, uintptr_t caller)
{
    if (!begun)
        begin();
    if ((flags & O_CREAT) && (flags & O_EXCL))
        return files_told(libc_names_create(dir, path, flags, mode, caller), path, flags);
    return files_told(real.openat(dir, path, flags, mode), path, flags);
}

/* Those that check their arguments: no mode, and libc ends the process when there should be one. */
static int open_checked(int dir, const char *path, int flags)
{
    if (!begun)
        begin();
    return files_told(real.openat_2(dir, path, flags), path, flags);
}

static mode_t mode_of(int flags, va_list ap)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

/* On 64-bit systems the names with 64 are the same functions. */

#define OPEN(name, parameters, dir)                                                                \
    PUBLIC int name parameters                                                                     \
    {                                                                                              \
        va_list ap;                                                                                \
        mode_t mode;                                                                               \
                                                                                                   \
        va_start(ap, flags);                                                                       \
        mode = mode_of(flags, ap);                                                                 \
        va_end(ap);                                                                                \
        return open_at(dir, path, flags, mode, CALLER);                                            \
    }

OPEN(openat, (int dir, const char *path, int flags, ...), dir)
ALIAS(openat64, openat);
OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
ALIAS(open64, open);
ALIAS(__open, open);
ALIAS(__open64, open);

PUBLIC int creat(const char *path, mode_t mode)
{
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode, CALLER);
}
ALIAS(creat64, creat);

PUBLIC int __openat_2(int dir, const char *path, int flags)
{
    return open_checked(dir, path, flags);
}
ALIAS(__openat64_2, __openat_2);

PUBLIC int __open_2(const char *path, int flags)
{
    return open_checked(AT_FDCWD, path, flags);
}
ALIAS(__open64_2, __open_2);

/* "x": the file is made new, and then is one that is there. */
static FILE *open_new(const char *path, const char *mode, uintptr_t caller)
{
    bool reads = strchr(mode, '+');
    int flags = (reads ? O_RDWR : O_WRONLY) | (mode[0] == 'a' ? O_APPEND : 0) |
                (strchr(mode, 'e') ? O_CLOEXEC : 0);
    int fd = libc_names_create(AT_FDCWD, path, flags | O_CREAT | O_EXCL, 0666, caller);
    FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;

    if (fd >= 0 && !file)
        close(fd);
    return file;
}

PUBLIC FILE *fopen(const char *restrict path, const char *restrict mode)
{
    bool new = strchr(mode, 'x') && mode[0] != 'r';

    if (!begun)
        begin();
    return told_file(new ? open_new(path, mode, CALLER) : real.fopen(path, mode), path, mode);
}
ALIAS(fopen64, fopen);

PUBLIC FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict file)
{
    if (!begun)
        begin();
    return told_file(real.freopen(path, mode, file), path, mode);
}
ALIAS(freopen64, freopen);

/* --- names that libc draws --- */

static int temporary(char *template, int suffix, int flags, uintptr_t caller)
{
    if (!begun)
        begin();
    return files_told(libc_names_temporary(template, suffix, flags, caller), template,
                      O_RDWR | O_CREAT | O_EXCL);
}

#define TEMPORARY(name, parameters, suffix, flags)                                                 \
    PUBLIC int name parameters                                                                     \
    {                                                                                              \
        return temporary(template, suffix, flags, CALLER);                                         \
    }                                                                                              \
    ALIAS(name##64, name);

TEMPORARY(mkstemp, (char *template), 0, 0)
TEMPORARY(mkostemp, (char *template, int flags), 0, flags)
TEMPORARY(mkstemps, (char *template, int suffix), suffix, 0)
TEMPORARY(mkostemps, (char *template, int suffix, int flags), suffix, flags)
