#include "rdevice/image/opening.h"

#include "rdevice/image/remark.h"
#include "rdevice/image/system.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define FILE_LOCKS_MAX 256u
#define INFO_BYTES 8192u
#define INFO_NAME_MAX 48u
#define WORD_MAX 24

enum lock_kind { LOCK_WHOLE, LOCK_OF_PROCESS, LOCK_OF_OPENING };

static struct lock {
    int fd;
    enum lock_kind kind;
    bool writes;
    uint64_t start, end; /* the last byte; UINT64_MAX: to the end of the file */
} locks[FILE_LOCKS_MAX];
static uint32_t count;

void opening_forget(void)
{
    count = 0;
}

/* --- locks ----------------------------------------------------------------------------------- */

/* "1: POSIX  ADVISORY  WRITE 4711 00:1f:1234 10 EOF" */
static int take_lock(const struct file *file, const char *line, struct cw_err *err)
{
    char kind[WORD_MAX], access[WORD_MAX], end[WORD_MAX];
    struct lock *lock = &locks[count];
    unsigned long long start, last;

    if (sscanf(line, "%*s %23s %*s %23s %*s %*s %llu %23s", kind, access, &start, end) != 4)
        return cw_err_set(err, CW_EINVAL, "the lock of descriptor %d is of a new form: %.60s",
                          file->fd, line);
    if (strcmp(kind, "FLOCK") != 0 && strcmp(kind, "POSIX") != 0 && strcmp(kind, "OFDLCK") != 0)
        return cw_err_set(err, CW_EINVAL,
                          "descriptor %d of the program (%.200s) has a %s, which an image cannot "
                          "hold",
                          file->fd, file->path, kind);
    if (count == FILE_LOCKS_MAX)
        return cw_err_set(err, CW_ELIMIT, "the program has more than %u locks of files",
                          FILE_LOCKS_MAX);
    *lock = (struct lock){.fd = file->fd,
                          .kind = kind[0] == 'F'   ? LOCK_WHOLE
                                  : kind[0] == 'P' ? LOCK_OF_PROCESS
                                                   : LOCK_OF_OPENING,
                          .writes = strcmp(access, "WRITE") == 0,
                          .start = start,
                          .end = sscanf(end, "%llu", &last) == 1 ? last : UINT64_MAX};
    count++;
    return 0;
}

static int read_locks(const struct file *file, struct cw_err *err)
{
    char name[INFO_NAME_MAX], text[INFO_BYTES];

    snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", file->fd);
    if (system_read_file(name, text, sizeof(text)) <= 0)
        return 0;
    for (const char *at = text; (at = strstr(at, "lock:\t"));)
        if (take_lock(file, at += 6, err))
            return err->code;
    return 0;
}

static void restore_lock(const struct file *file, const struct lock *lock)
{
    struct flock wanted = {.l_type = lock->writes ? F_WRLCK : F_RDLCK,
                           .l_whence = SEEK_SET,
                           .l_start = (off_t)lock->start,
                           .l_len =
                               lock->end == UINT64_MAX ? 0 : (off_t)(lock->end - lock->start + 1)};
    long status;

    if (lock->kind == LOCK_WHOLE)
        status = system_call(SYS_flock, lock->fd, (lock->writes ? LOCK_EX : LOCK_SH) | LOCK_NB);
    else
        status = system_call(SYS_fcntl, lock->fd,
                             lock->kind == LOCK_OF_PROCESS ? F_SETLK : F_OFD_SETLK, &wanted);
    if (status < 0)
        remark_add("a lock of %.150s, descriptor %d, could not be had again: %s", file->path,
                   lock->fd, strerrordesc_np((int)-status));
}

/* --- signals of input ------------------------------------------------------------------------ */

static bool is_own(const struct f_owner_ex *owner)
{
    switch (owner->type) {
    case F_OWNER_TID:
        return owner->pid == (pid_t)system_call(SYS_gettid);
    case F_OWNER_PID:
        return owner->pid == (pid_t)system_call(SYS_getpid);
    default:
        return owner->pid == (pid_t)system_call(SYS_getpgid, 0);
    }
}

static int read_signal(struct file *file, struct cw_err *err)
{
    struct f_owner_ex owner = {0};
    long number = system_call(SYS_fcntl, file->fd, F_GETSIG);

    file->signal = number > 0 ? (int)number : 0;
    if (system_call(SYS_fcntl, file->fd, F_GETOWN_EX, &owner) < 0 || owner.pid == 0)
        return 0;
    if (!is_own(&owner))
        return cw_err_set(
            err, CW_EINVAL,
            "descriptor %d of the program (%.200s) signals input to process or thread "
            "%d (F_SETOWN), which an image cannot hold",
            file->fd, file->path, owner.pid);
    file->owner_type = owner.type;
    file->owner = owner.pid;
    return 0;
}

static void restore_signal(const struct file *file)
{
    struct f_owner_ex owner = {.type = file->owner_type};

    if (file->signal)
        system_call(SYS_fcntl, file->fd, F_SETSIG, file->signal);
    if (file->owner) {
        owner.pid = (pid_t)(file->owner_type == F_OWNER_TID   ? system_call(SYS_gettid)
                            : file->owner_type == F_OWNER_PID ? system_call(SYS_getpid)
                                                              : system_call(SYS_getpgid, 0));
        system_call(SYS_fcntl, file->fd, F_SETOWN_EX, &owner);
    }
    if (file->flags & O_ASYNC) /* open() leaves it out */
        system_call(SYS_fcntl, file->fd, F_SETFL, file->flags);
}

/* --- both ------------------------------------------------------------------------------------ */

int opening_read(struct file *file, struct cw_err *err)
{
    if (file->flags & O_PATH)
        return 0;
    if (read_signal(file, err))
        return err->code;
    return file->kind == FILE_REGULAR ? read_locks(file, err) : 0;
}

void opening_restore(const struct file *file)
{
    if (file->flags & O_PATH)
        return;
    restore_signal(file);
    for (uint32_t i = 0; i < count; i++)
        if (locks[i].fd == file->fd)
            restore_lock(file, &locks[i]);
}
