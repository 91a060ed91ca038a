#include "rdevice/image/content.h"

#include "rdevice/image/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define PIPE_TRIES_MAX 64u
#define FD_NAME_MAX 40u

static int hold(struct file *file, uint64_t size, uint64_t *total, struct cw_err *err)
{
    if (size > CONTENT_BYTES_MAX || *total + size > CONTENT_BYTES_MAX)
        return cw_err_set(err, CW_ELIMIT,
                          "the files without a name that the program has open hold more than %u "
                          "MiB (descriptor %d: %llu MiB)",
                          CONTENT_BYTES_MAX >> 20, file->fd, (unsigned long long)size >> 20);
    file->content = size ? system_memory(size) : NULL;
    if (size && !file->content)
        return cw_err_set(err, CW_ENOMEM, "no memory for the content of descriptor %d", file->fd);
    file->content_size = size;
    *total += size;
    return 0;
}

static int failed(const struct file *file, long status, struct cw_err *err)
{
    return cw_err_set(err, CW_ESYS, "the content of descriptor %d (%.200s) cannot be read: %s",
                      file->fd, file->path, status < 0 ? strerrordesc_np((int)-status) : "it ends");
}

/* The program's descriptor may be there to write alone, and its offset is not to be changed. */
int content_take_file(struct file *file, uint64_t *total, struct cw_err *err)
{
    char name[FD_NAME_MAX];
    uint64_t done = 0;
    long n = 1;
    int fd;

    if (hold(file, file->size, total, err))
        return err->code;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", file->fd);
    fd = system_open(name, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return failed(file, fd, err);
    while (done < file->size && n > 0) {
        n = system_call(SYS_pread64, fd, (char *)file->content + done, file->size - done, done);
        done += n > 0 ? (uint64_t)n : 0;
    }
    system_close(fd);
    return done < file->size ? failed(file, n, err) : 0;
}

/* tee() leaves the bytes where they are. */
static long copy_pipe(const struct file *file, const int *pipe)
{
    uint64_t done = 0;
    long n;

    n = system_call(SYS_tee, file->fd, pipe[1], file->content_size, 2 /* SPLICE_F_NONBLOCK */);
    if (n != (long)file->content_size)
        return n < 0 ? n : -EIO;
    for (uint32_t i = 0; done < file->content_size && i < PIPE_TRIES_MAX; i++) {
        n = system_call(SYS_read, pipe[0], (char *)file->content + done, file->content_size - done);
        if (n <= 0)
            break;
        done += (uint64_t)n;
    }
    return done < file->content_size ? -EIO : 0;
}

int content_take_pipe(struct file *file, uint64_t *total, struct cw_err *err)
{
    int unread = 0, pipe[2];
    long status = system_call(SYS_ioctl, file->fd, FIONREAD, &unread);

    file->size = (uint64_t)system_call(SYS_fcntl, file->fd, F_GETPIPE_SZ);
    if (status < 0 || (int64_t)file->size < 0)
        return failed(file, status, err);
    if (hold(file, (uint64_t)unread, total, err))
        return err->code;
    if (unread == 0)
        return 0;
    status = system_call(SYS_pipe2, pipe, O_CLOEXEC);
    if (status < 0)
        return failed(file, status, err);
    status = system_call(SYS_fcntl, pipe[1], F_SETPIPE_SZ, file->size);
    if (status >= 0)
        status = copy_pipe(file, pipe);
    system_close(pipe[0]);
    system_close(pipe[1]);
    return status < 0 ? failed(file, status, err) : 0;
}

long content_put(const struct file *file, int fd)
{
    uint64_t done = 0;

    while (done < file->content_size) {
        long n = system_call(SYS_write, fd, (const char *)file->content + done,
                             file->content_size - done);

        if (n <= 0)
            return n < 0 ? n : -EIO;
        done += (uint64_t)n;
    }
    return 0;
}

void content_release(struct file *file)
{
    if (file->content)
        system_unmap((uint64_t)(uintptr_t)file->content, file->content_size);
    file->content = NULL;
}
