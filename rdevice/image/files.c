#include "rdevice/image/files.h"

#include "rdevice/image/content.h"
#include "rdevice/image/file.h"
#include "rdevice/image/opening.h"
#include "rdevice/image/reopen.h"
#include "rdevice/image/special.h"
#include "rdevice/image/system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#define OPEN_FILES_MAX 4096u
#define EPOLLS_MAX 32u
#define FD_NAME_MAX 40u
#define NUMBERS_MORE 4u /* descriptors above the program's, needed for a while */
#define KCMP_FILE 0
#define INHERITED_MAX 256 /* numbers below this are looked at */
#define STANDARD_COUNT 3  /* stdin, stdout, stderr */

static struct file files[OPEN_FILES_MAX];
static uint32_t count;
static struct file_watch watches[EPOLLS_MAX][FILE_WATCHES_MAX];
static uint32_t epolls;
static uint64_t held; /* bytes of contents */

/* Descriptors that the process was started with: a shell, make and others leave theirs open in all
 * that they start. The program does not know of them. */
static struct {
    uint64_t device, inode; /* 0: it was not open */
} inherited[INHERITED_MAX];

/* When the library is loaded, before the program opens anything. */
__attribute__((constructor)) static void look(void)
{
    struct stat st;

    for (int fd = 3; fd < INHERITED_MAX; fd++)
        if (system_call(SYS_fstat, fd, &st) == 0) {
            inherited[fd].device = st.st_dev;
            inherited[fd].inode = st.st_ino;
        }
}

/* Whether it is one of them, and still the same file. */
static bool is_inherited(const struct file *file)
{
    return file->fd < INHERITED_MAX && inherited[file->fd].inode != 0 &&
           inherited[file->fd].inode == file->inode && inherited[file->fd].device == file->device;
}

void files_release(void)
{
    for (uint32_t i = 0; i < count; i++)
        content_release(&files[i]);
    count = epolls = 0;
    held = 0;
}

static bool is_without_name(const struct file *file)
{
    return file->kind == FILE_UNNAMED || file->kind == FILE_MEMORY;
}

bool files_have(uint64_t device, uint64_t inode)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_without_name(&files[i]) && files[i].inode == inode && files[i].device == device)
            return true;
    return false;
}

int files_try(struct cw_err *err)
{
    for (uint32_t i = 0; i < count; i++)
        if (files[i].same_as < 0 && reopen_try(&files[i], err))
            return err->code;
    return 0;
}

/* --- what a descriptor is -------------------------------------------------------------------- */

static bool is_among(const int *fds, uint32_t n, int fd)
{
    for (uint32_t i = 0; i < n; i++)
        if (fds[i] == fd)
            return true;
    return false;
}

static int refuse(struct file *file, const char *what, struct cw_err *err)
{
    if (is_inherited(file)) {
        file->kind = FILE_LOST;
        return 0;
    }
    return cw_err_set(err, CW_EINVAL,
                      "descriptor %d of the program is %s (%.200s), which an image "
                      "cannot hold",
                      file->fd, what, file->path);
}

/* By another opening: with its content twice it would be two files. */
static bool is_held(const struct file *file)
{
    for (const struct file *f = files; f < file; f++)
        if (is_without_name(f) && f->same_as < 0 && f->inode == file->inode &&
            f->device == file->device)
            return true;
    return false;
}

static int read_regular(struct file *file, const struct stat *st, struct cw_err *err)
{
    struct stat named;
    bool there = system_call(SYS_newfstatat, AT_FDCWD, file->path, &named, 0) == 0 &&
                 named.st_ino == st->st_ino && named.st_dev == st->st_dev;

    file->kind = FILE_REGULAR;
    file->offset = system_call(SYS_lseek, file->fd, 0, SEEK_CUR);
    if (there)
        return 0;
    if (is_held(file))
        return refuse(file, "a file without a name that is open a second time", err);
    if (strncmp(file->path, "/memfd:", 7) == 0)
        file->kind = FILE_MEMORY;
    else if (st->st_nlink == 0)
        file->kind = FILE_UNNAMED;
    else
        return refuse(file, "a file that has another name now", err);
    return content_take_file(file, &held, err);
}

/* Devices without a state of their own, and terminals. */
static int read_device(struct file *file, const struct stat *st, struct cw_err *err)
{
    unsigned major = major(st->st_rdev);

    file->kind = FILE_DEVICE;
    if (major == 1 || major == 4 || major == 5 || (major >= 136 && major <= 143))
        return 0;
    return refuse(file, "a device", err);
}

static int read_pipe(struct file *file, struct cw_err *err)
{
    if (strncmp(file->path, "pipe:", 5) != 0)
        return refuse(file, "a named pipe", err);
    file->kind = (file->flags & O_ACCMODE) == O_WRONLY ? FILE_PIPE_WRITE : FILE_PIPE_READ;
    return 0;
}

static int read_special(struct file *file, struct cw_err *err)
{
    static struct file_watch found[FILE_WATCHES_MAX];

    if (!special_read(file, found, err))
        return refuse(file, "nothing that can be made anew", err);
    if (err->code || file->kind != FILE_EPOLL)
        return err->code;
    if (epolls == EPOLLS_MAX)
        return cw_err_set(err, CW_ELIMIT, "the program has more than %u epoll descriptors",
                          EPOLLS_MAX);
    memcpy(watches[epolls], found, sizeof(found));
    file->value = epolls++;
    return 0;
}

static int read_kind(struct file *file, const struct stat *st, struct cw_err *err)
{
    switch (st->st_mode & S_IFMT) {
    case S_IFREG:
        return read_regular(file, st, err);
    case S_IFDIR:
        file->kind = FILE_DIRECTORY;
        file->offset = system_call(SYS_lseek, file->fd, 0, SEEK_CUR);
        return strstr(file->path, " (deleted)") ? refuse(file, "a removed directory", err) : 0;
    case S_IFCHR:
        return read_device(file, st, err);
    case S_IFIFO:
        return read_pipe(file, err);
    case S_IFSOCK:
        return refuse(file, "a socket", err);
    case S_IFBLK:
        return refuse(file, "a disk", err);
    }
    return read_special(file, err);
}

/* --- descriptors of one opening ----------------------------------------------------------------
 */

/* Where kcmp() is refused, as in many containers. An opening has one signal of asynchronous input,
 * which nothing but O_ASYNC uses: whether what one descriptor is set to, the other has as well.
 * Nobody minds SIGURG, should there be input just now. Descriptors of O_PATH have none, and nothing
 * else that two of them could share. */
static bool has_signal_of(const struct file *a, const struct file *b)
{
    long before = system_call(SYS_fcntl, a->fd, F_GETSIG);
    long other = before == SIGURG ? SIGCHLD : SIGURG;
    bool same;

    if (before < 0 || system_call(SYS_fcntl, a->fd, F_SETSIG, other) < 0)
        return false;
    same = system_call(SYS_fcntl, b->fd, F_GETSIG) == other;
    system_call(SYS_fcntl, a->fd, F_SETSIG, before);
    return same && system_call(SYS_fcntl, b->fd, F_GETSIG) == before;
}

static bool is_same(const struct file *a, const struct file *b)
{
    long pid = system_call(SYS_getpid), order;

    if (a->inode != b->inode || a->device != b->device || a->flags != b->flags)
        return false;
    if (a->kind == FILE_PIPE_READ || a->kind == FILE_PIPE_WRITE)
        return true;
    order = system_call(SYS_kcmp, pid, pid, KCMP_FILE, a->fd, b->fd);
    return order < 0 ? has_signal_of(a, b) : order == 0;
}

static void find_same(struct file *file)
{
    for (const struct file *f = files; f < file; f++)
        if (f->same_as < 0 && is_same(f, file)) {
            file->same_as = (int)(f - files);
            return;
        }
}

/* --- reading all ----------------------------------------------------------------------------- */

/* A descriptor of /proc/self has the number of this process in its path; that of the first thread
 * is the same. */
static void name_self(char *path)
{
    static const char thread[] = "/proc/thread-self", self[] = "/proc/self";
    char own[FD_NAME_MAX];
    int pid = (int)system_call(SYS_getpid);
    size_t n = (size_t)snprintf(own, sizeof(own), "/proc/%d/task/%d", pid, pid);
    const char *now = thread;

    if (strncmp(path, own, n) != 0 || (path[n] != '\0' && path[n] != '/')) {
        n = (size_t)snprintf(own, sizeof(own), "/proc/%d", pid);
        now = self;
    }
    if (strncmp(path, own, n) != 0 || (path[n] != '\0' && path[n] != '/') ||
        strlen(path) + sizeof(thread) > CW_IMAGE_PATH_MAX)
        return;
    memmove(path + strlen(now), path + n, strlen(path + n) + 1);
    memcpy(path, now, strlen(now));
}

static uint32_t file_system_of(int fd)
{
    struct statfs fs;

    return system_call(SYS_fstatfs, fd, &fs) == 0 ? (uint32_t)fs.f_type : 0;
}

static bool is_kernels(int fd)
{
    uint32_t type = file_system_of(fd);

    return type == PROC_SUPER_MAGIC || type == SYSFS_MAGIC || type == CGROUP2_SUPER_MAGIC ||
           type == CGROUP_SUPER_MAGIC || type == DEBUGFS_MAGIC || type == TRACEFS_MAGIC;
}

static int stat_file(struct file *file, struct stat *st, struct cw_err *err)
{
    char name[FD_NAME_MAX];
    long n;

    file->same_as = file->other = -1;
    file->flags = (int)system_call(SYS_fcntl, file->fd, F_GETFL);
    file->fd_flags = (int)system_call(SYS_fcntl, file->fd, F_GETFD);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", file->fd);
    n = system_call(SYS_readlinkat, AT_FDCWD, name, file->path, sizeof(file->path));
    if (n < 0 || system_call(SYS_fstat, file->fd, st) < 0)
        return cw_err_set(err, CW_ESYS, "descriptor %d cannot be looked at", file->fd);
    if (n == (long)sizeof(file->path))
        return cw_err_set(err, CW_ELIMIT, "the path of descriptor %d has more than %zu bytes",
                          file->fd, sizeof(file->path) - 1);
    file->path[n] = '\0';
    name_self(file->path);
    file->kernels = (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) && is_kernels(file->fd);
    file->device = st->st_dev;
    file->inode = st->st_ino;
    file->size = (uint64_t)st->st_size;
    return 0;
}

/* A program can put something of its own in the place of the launcher's pipes. */
static bool is_given(const struct image_setting *setting, const struct file *file,
                     const struct stat *st)
{
    if (file->fd < STANDARD_COUNT)
        return file_system_of(file->fd) == PIPEFS_MAGIC &&
               st->st_ino == setting->standard[file->fd];
    return is_among(setting->given, setting->given_count, file->fd);
}

static int add_file(const struct image_setting *setting, int fd, struct cw_err *err)
{
    struct file *file = &files[count];
    struct stat st;

    if (is_among(setting->closed, setting->closed_count, fd))
        return 0;
    if (count == OPEN_FILES_MAX)
        return cw_err_set(err, CW_ELIMIT, "the program has more than %u descriptors open",
                          OPEN_FILES_MAX);
    memset(file, 0, sizeof(*file));
    file->fd = fd;
    if (stat_file(file, &st, err))
        return err->code;
    count++;
    if (is_given(setting, file, &st)) {
        file->kind = FILE_GIVEN;
        return 0;
    }
    find_same(file);
    if (file->same_as >= 0 || read_kind(file, &st, err))
        return err->code;
    return file->kind == FILE_LOST ? 0 : opening_read(file, err);
}

static int read_directory(const struct image_setting *setting, int directory, struct cw_err *err)
{
    static struct system_names names;
    const struct system_name *e;

    names.at = names.end = 0;
    while ((e = system_next_name(directory, &names))) {
        int fd = system_number(e->name);

        if (fd >= 0 && fd != directory && add_file(setting, fd, err))
            return err->code;
    }
    return names.end < 0 ? cw_err_set(err, CW_ESYS, "/proc/self/fd cannot be read: %s",
                                      strerrordesc_np((int)-names.end))
                         : 0;
}

/* Both ends of each pipe must be here: the other process would not come along. */
static int join_pipes(struct cw_err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct file *f = &files[i];
        enum file_kind wanted = f->kind == FILE_PIPE_READ ? FILE_PIPE_WRITE : FILE_PIPE_READ;

        if (f->kind != FILE_PIPE_READ && f->kind != FILE_PIPE_WRITE)
            continue;
        for (uint32_t k = 0; k < count; k++)
            if (files[k].kind == wanted && files[k].inode == f->inode)
                f->other = (int)k;
        if (f->other < 0 && refuse(f, "a pipe to another process", err))
            return err->code;
        if (f->kind == FILE_PIPE_READ && content_take_pipe(f, &held, err))
            return err->code;
    }
    return 0;
}

/* --- numbers --------------------------------------------------------------------------------- */

/* The first number that is in use among those from `from` on that are needed for a while; -1: none.
 */
static int used_from(const struct image_setting *setting, const int *given, int from)
{
    int end = from + (int)NUMBERS_MORE;

    for (uint32_t i = 0; i < count; i++)
        if (files[i].fd >= from && files[i].fd < end)
            return files[i].fd;
    for (uint32_t i = 0; i < setting->given_count; i++) {
        if (setting->given[i] >= from && setting->given[i] < end)
            return setting->given[i];
        if (given && given[i] >= from && given[i] < end)
            return given[i];
    }
    return -1;
}

static int highest_number(const struct image_setting *setting)
{
    int highest = STANDARD_COUNT - 1;

    for (uint32_t i = 0; i < count; i++)
        if (files[i].fd > highest)
            highest = files[i].fd;
    for (uint32_t i = 0; i < setting->given_count; i++)
        if (setting->given[i] > highest)
            highest = setting->given[i];
    return highest;
}

/* Numbers that are needed for a while, that the program does not have: above all of its own, or
 * else between them. Returns the first of them, or -1: it has all that it may have. `given`: those
 * that the new process has brought; NULL: in the program. */
static int find_numbers(const struct image_setting *setting, const int *given)
{
    int above = highest_number(setting) + 1, used;
    struct rlimit limit = {0};

    system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
    if (limit.rlim_max >= (uint64_t)above + NUMBERS_MORE)
        return above;
    for (int from = STANDARD_COUNT; from < above; from = used + 1) {
        used = used_from(setting, given, from);
        if (used < 0 && limit.rlim_max >= (uint64_t)from + NUMBERS_MORE)
            return from;
        if (used < 0)
            break;
    }
    return -1;
}

int files_read(const struct image_setting *setting, struct cw_err *err)
{
    int directory = system_open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    files_release();
    opening_forget();
    if (directory < 0)
        return cw_err_set(err, CW_ESYS, "/proc/self/fd cannot be opened: %s",
                          strerrordesc_np(-directory));
    err->code = CW_OK;
    if (read_directory(setting, directory, err) == 0)
        join_pipes(err);
    system_close(directory);
    if (!err->code && find_numbers(setting, NULL) < 0)
        cw_err_set(err, CW_ELIMIT,
                   "the program has all descriptors that it may have: %u numbers must be free "
                   "below 'ulimit -Hn' to go on from an image",
                   NUMBERS_MORE);
    if (err->code)
        files_release();
    return err->code;
}

/* --- in the restored process ----------------------------------------------------------------- */

static const struct file *find(int fd)
{
    for (uint32_t i = 0; i < count; i++)
        if (files[i].fd == fd)
            return &files[i];
    return NULL;
}

static int fd_flags_of(int fd)
{
    const struct file *file = find(fd);

    return file ? file->fd_flags : 0;
}

/* The program may have lowered its limit since it opened them; it gets its own limit afterwards. */
static int raise_limit(const struct image_setting *setting, int free, struct cw_err *err)
{
    uint64_t needed = (uint64_t)highest_number(setting) + 1;
    struct rlimit limit = {0};

    system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
    if (free < 0 || limit.rlim_max < needed)
        return cw_err_set(err, CW_ELIMIT,
                          "the program has descriptors up to number %llu, for which this process "
                          "may not have enough: 'ulimit -Hn' is %llu here, and has to be %llu",
                          (unsigned long long)needed - 1, (unsigned long long)limit.rlim_max,
                          (unsigned long long)needed + NUMBERS_MORE);
    limit.rlim_cur = limit.rlim_max;
    system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL);
    return 0;
}

static int copy_to(int from, int fd, int fd_flags, struct cw_err *err)
{
    long status = system_call(SYS_dup3, from, fd, fd_flags & FD_CLOEXEC ? O_CLOEXEC : 0);

    return status < 0 ? cw_err_set(err, CW_ESYS, "descriptor %d cannot be made again: %s", fd,
                                   strerrordesc_np((int)-status))
                      : 0;
}

/* What the process has beside the given ones is closed. */
static int place_given(const struct image_setting *setting, const int *given, int free,
                       struct cw_err *err)
{
    int moved[IMAGE_GIVEN_MAX];

    for (uint32_t i = 0; i < setting->given_count; i++) {
        moved[i] = given[i] < 0 ? -1 : (int)system_call(SYS_fcntl, given[i], F_DUPFD, free);
        if (given[i] >= 0 && (moved[i] < 0 || moved[i] >= free + (int)NUMBERS_MORE))
            return cw_err_set(err, CW_ESYS, "descriptor %d cannot be moved: %s", given[i],
                              moved[i] < 0 ? strerrordesc_np(-moved[i]) : "others are in the way");
    }
    if (free > STANDARD_COUNT)
        system_call(SYS_close_range, STANDARD_COUNT, free - 1, 0);
    system_call(SYS_close_range, free + (int)NUMBERS_MORE, ~0u, 0);
    for (uint32_t i = 0; i < setting->given_count; i++)
        if (moved[i] >= 0 &&
            copy_to(moved[i], setting->given[i], fd_flags_of(setting->given[i]), err))
            return err->code;
    system_call(SYS_close_range, free, free + (int)NUMBERS_MORE - 1, 0);
    return 0;
}

static int restore_file(uint32_t i, int free, bool cut, struct cw_err *err)
{
    struct file *f = &files[i];

    if (f->kind == FILE_GIVEN)
        return 0;
    if (f->same_as >= 0)
        return copy_to(files[f->same_as].fd, f->fd, f->fd_flags, err);
    if (f->kind == FILE_PIPE_WRITE && f->other < (int)i)
        return 0; /* made with its other end */
    if (f->kind == FILE_PIPE_READ || f->kind == FILE_PIPE_WRITE)
        return f->kind == FILE_PIPE_READ ? reopen_pipe(f, &files[f->other], free, err)
                                         : reopen_pipe(&files[f->other], f, free, err);
    return reopen_file(f, cut, err);
}

int files_restore(const struct image_setting *setting, const int *given, bool cut,
                  struct cw_err *err)
{
    int free = find_numbers(setting, given);

    if (raise_limit(setting, free, err) || place_given(setting, given, free, err))
        return err->code;
    for (uint32_t i = 0; i < count; i++)
        if (restore_file(i, free, cut, err))
            return err->code;
    for (uint32_t i = 0; i < count; i++)
        if (files[i].kind == FILE_EPOLL && files[i].same_as < 0)
            special_watch(&files[i], watches[files[i].value]);
    for (uint32_t i = 0; i < count; i++)
        if (files[i].kind != FILE_GIVEN && files[i].same_as < 0)
            opening_restore(&files[i]);
    for (int fd = 0; fd < STANDARD_COUNT; fd++)
        if (!find(fd))
            system_close(fd);
    return 0;
}
