#include "rdevice/image/reopen.h"

#include "rdevice/image/content.h"
#include "rdevice/image/image.h"
#include "rdevice/image/remark.h"
#include "rdevice/image/special.h"
#include "rdevice/image/system.h"
#include "rdevice/image/traits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FD_NAME_MAX 40u
#define RENAMED_LOOKS_MAX 1048576u /* names in its directory */

/* Flags that open() takes back; the others are those of creating. */
static int open_flags(const struct file *file)
{
    return (file->flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_NOCTTY;
}

static int failed(const struct file *file, const char *what, long status, struct cw_err *err)
{
    return cw_err_set(err, CW_ESYS, "%.300s, which the program has open as descriptor %d, %s: %s",
                      file->path, file->fd, what, strerrordesc_np((int)-status));
}

/* The new descriptor gets the file's number. */
static int place(const struct file *file, int fd, struct cw_err *err)
{
    long status = fd;

    if (fd != file->fd) {
        status = system_call(SYS_dup3, fd, file->fd, file->fd_flags & FD_CLOEXEC ? O_CLOEXEC : 0);
        system_close(fd);
    } else {
        system_call(SYS_fcntl, fd, F_SETFD, file->fd_flags);
    }
    return status < 0 ? failed(file, "cannot get its number", status, err) : 0;
}

/* --- files with a path -------------------------------------------------------------------------
 */

/* Those of the kernel's own file systems are not told apart: their numbers change. */
static bool is_then(const struct file *file, const struct stat *st)
{
    return file->kind != FILE_REGULAR || file->kernels ||
           (st->st_ino == file->inode && st->st_dev == file->device);
}

/* Returns a descriptor, or a negative errno; -ESTALE: another file has its name. */
static int open_by_name(const struct file *file, int flags)
{
    int fd = system_open(file->path, flags, 0);
    struct stat st;
    long status;

    if (fd < 0 || (file->flags & O_PATH))
        return fd;
    status = system_call(SYS_fstat, fd, &st);
    if (status == 0 && is_then(file, &st))
        return fd;
    system_close(fd);
    return status < 0 ? (int)status : -ESTALE;
}

static bool is_file(const struct file *file, int directory, const char *name)
{
    struct stat st;

    return system_call(SYS_newfstatat, directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_ino == file->inode && st.st_dev == file->device;
}

/* Returns 0, or -ENOENT. */
static int find(const struct file *file, int directory, char *found, size_t size)
{
    static struct system_names names;
    const struct system_name *e;

    names.at = names.end = 0;
    for (uint32_t looks = 0; looks < RENAMED_LOOKS_MAX; looks++) {
        e = system_next_name(directory, &names);
        if (!e)
            break;
        if (e->inode == file->inode && strlen(e->name) < size &&
            is_file(file, directory, e->name)) {
            strcpy(found, e->name);
            return 0;
        }
    }
    return -ENOENT;
}

/* Nothing is overwritten: the two change names, if its former name is taken. */
static long give_back(int directory, const char *now, const char *former)
{
    long status = system_call(SYS_renameat2, directory, now, directory, former, RENAME_NOREPLACE);

    if (status == -EEXIST)
        return system_call(SYS_renameat2, directory, now, directory, former, RENAME_EXCHANGE);
    return status;
}

static int open_found(const struct file *file, int directory, int flags)
{
    const char *former = strrchr(file->path, '/') + 1;
    char now[CW_IMAGE_PATH_MAX];
    long status = find(file, directory, now, sizeof(now));

    if (status < 0)
        return (int)status;
    if ((file->flags & O_ACCMODE) == O_RDONLY)
        return (int)system_call(SYS_openat, directory, now, flags, 0);
    status = give_back(directory, now, former);
    if (status < 0)
        return (int)status;
    remark_add("%.150s was renamed to %.60s since, and has its name again", file->path, now);
    return (int)system_call(SYS_openat, directory, former, flags, 0);
}

/* Opens the file by the name that it has now in its directory: programs write results under one
 * name and rename them when they are whole. What the program writes has its name of then again, and
 * what has this name by now gets the other's: the program renames it once more. Returns the
 * descriptor, or a negative errno: it is not there. */
static int open_renamed(const struct file *file, int flags)
{
    char path[CW_IMAGE_PATH_MAX];
    char *slash;
    int directory, fd;

    strcpy(path, file->path);
    slash = strrchr(path, '/');
    if (!slash)
        return -ENOENT;
    slash[slash == path] = '\0';
    directory = system_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory < 0)
        return directory;
    fd = open_found(file, directory, flags);
    system_close(directory);
    return fd;
}

static int fit_length(const struct file *file, int fd, bool cut_appended, struct cw_err *err)
{
    bool appends = (file->flags & O_APPEND) && (file->flags & O_ACCMODE) != O_RDONLY;
    struct stat st;
    long status = system_call(SYS_fstat, fd, &st);

    if (status < 0)
        return failed(file, "cannot be looked at", status, err);
    if ((uint64_t)st.st_size < file->size && !file->kernels)
        remark_add("%.150s is shorter than it was: %llu bytes, not %llu", file->path,
                   (unsigned long long)st.st_size, (unsigned long long)file->size);
    if (!cut_appended || !appends || (uint64_t)st.st_size <= file->size)
        return 0;
    status = system_call(SYS_ftruncate, fd, file->size);
    return status < 0 ? failed(file, "cannot be cut to its length of then", status, err) : 0;
}

/* A descriptor that can be closed, and nothing else: what it is used for fails, and the program
 * hears of it. The machine of the image is the only one that may have its file: elsewhere the
 * program does not go on. */
static int open_unusable(const struct file *file, int why, struct cw_err *err)
{
    int fd = system_open("/", O_PATH | O_CLOEXEC, 0);

    if (fd < 0 || !image_is_here()) {
        system_close(fd);
        if (why != -ESTALE)
            return failed(file, "cannot be opened again", why, err);
        return cw_err_set(err, CW_EINVAL,
                          "%.300s is another file than the program has open as descriptor %d: it "
                          "was replaced since, or this is another machine's",
                          file->path, file->fd);
    }
    remark_add("%.140s, descriptor %d of the program, cannot be had again: %s; using it fails",
               file->path, file->fd,
               why == -ESTALE ? "another file has its name" : strerrordesc_np(-why));
    return place(file, fd, err);
}

static int open_path(const struct file *file, bool cut_appended, struct cw_err *err)
{
    int fd = open_by_name(file, open_flags(file));

    if ((fd == -ENOENT || fd == -ESTALE) && file->kind == FILE_REGULAR) {
        int found = open_renamed(file, open_flags(file));

        fd = found == -ENOENT ? fd : found;
    }
    if (fd < 0)
        return open_unusable(file, fd, err);
    if (file->kind == FILE_REGULAR && !(file->flags & O_PATH) &&
        fit_length(file, fd, cut_appended, err)) {
        system_close(fd);
        return err->code;
    }
    if (file->offset > 0)
        system_call(SYS_lseek, fd, file->offset, SEEK_SET);
    return place(file, fd, err);
}

int reopen_try(const struct file *file, struct cw_err *err)
{
    int fd;

    if (file->kind != FILE_REGULAR && file->kind != FILE_DIRECTORY)
        return 0;
    fd = open_by_name(file, open_flags(file) | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        system_close(fd);
    return fd >= 0 ? 0
                   : cw_err_set(err, CW_EINVAL,
                                "%.200s, which the program has open as descriptor %d, could not be "
                                "opened again: %s",
                                file->path, file->fd,
                                fd == -ESTALE ? "another file has its name, or it was renamed"
                                              : strerrordesc_np(-fd));
}

/* --- files without --------------------------------------------------------------------------- */

/* In the directory where it was, or, if that cannot be, in memory. */
static int make_unnamed(const struct file *file)
{
    char directory[CW_IMAGE_PATH_MAX];
    char *slash;
    int fd = -1;

    strcpy(directory, file->path);
    slash = strrchr(directory, '/');
    if (file->kind == FILE_UNNAMED && slash) {
        slash[slash == directory] = '\0';
        fd = system_open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    return fd < 0 ? (int)system_call(SYS_memfd_create, "restored", MFD_CLOEXEC | MFD_ALLOW_SEALING)
                  : fd;
}

/* Opened a second time, with the flags that the program's descriptor has. */
static int open_unnamed(const struct file *file, struct cw_err *err)
{
    char name[FD_NAME_MAX];
    int made = make_unnamed(file), fd;
    long status;

    if (made < 0)
        return failed(file, "cannot be made anew", made, err);
    status = content_put(file, made);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", made);
    fd = status < 0 ? (int)status : system_open(name, open_flags(file) & ~O_TMPFILE, 0);
    system_close(made);
    if (fd < 0)
        return failed(file, "cannot be made anew", fd, err);
    system_call(SYS_lseek, fd, file->offset, SEEK_SET);
    return place(file, fd, err);
}

static int open_nothing(const struct file *file, struct cw_err *err)
{
    int fd = system_open("/dev/null", O_RDWR | O_CLOEXEC, 0);

    if (fd < 0)
        return failed(file, "cannot be replaced by /dev/null", fd, err);
    remark_add("descriptor %d, which the program was started with (%.100s), is /dev/null now",
               file->fd, file->path);
    return place(file, fd, err);
}

static int open_special(const struct file *file, struct cw_err *err)
{
    int fd = (int)special_make(file);

    if (fd < 0)
        return failed(file, "cannot be made anew", fd, err);
    system_call(SYS_fcntl, fd, F_SETFL, file->flags);
    return place(file, fd, err);
}

int reopen_file(const struct file *file, bool cut_appended, struct cw_err *err)
{
    switch (file->kind) {
    case FILE_REGULAR:
    case FILE_DEVICE:
    case FILE_DIRECTORY:
        return open_path(file, cut_appended, err);
    case FILE_UNNAMED:
    case FILE_MEMORY:
        return open_unnamed(file, err);
    case FILE_LOST:
        return open_nothing(file, err);
    default:
        return open_special(file, err);
    }
}

/* --- pipes ----------------------------------------------------------------------------------- */

int reopen_pipe(const struct file *reader, const struct file *writer, int free, struct cw_err *err)
{
    int made[2], ends[2];
    long status = system_call(SYS_pipe2, made, 0);

    if (status < 0)
        return failed(reader, "cannot be made anew", status, err);
    for (int i = 0; i < 2; i++) { /* their numbers may be those of other files */
        ends[i] = (int)system_call(SYS_fcntl, made[i], F_DUPFD, free);
        system_close(made[i]);
    }
    if (ends[0] < 0 || ends[1] < 0)
        return failed(reader, "cannot be moved", ends[0] < 0 ? ends[0] : ends[1], err);
    system_call(SYS_fcntl, ends[1], F_SETPIPE_SZ, reader->size);
    status = content_put(reader, ends[1]);
    system_call(SYS_fcntl, ends[0], F_SETFL, reader->flags);
    system_call(SYS_fcntl, ends[1], F_SETFL, writer->flags);
    if (status < 0)
        return failed(reader, "cannot get its bytes again", status, err);
    if (place(reader, ends[0], err))
        return err->code;
    return place(writer, ends[1], err);
}
