#include "rdevice/image/special.h"

#include "rdevice/image/remark.h"
#include "rdevice/image/system.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

/* TFD_IOC_SET_TICKS: linux/timerfd.h cannot be had beside libc's. */
#define SET_TICKS _IOW('T', 0, uint64_t)
#define INFO_BYTES 8192u
#define INFO_NAME_MAX 48u

/* The number after `name`; 0: it is not there. */
static uint64_t number_after(const char *text, const char *name, int base)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

static void read_timer(struct file *file, const char *text)
{
    file->kind = FILE_TIMER;
    file->value = number_after(text, "clockid:", 10);
    file->ticks = number_after(text, "ticks:", 10);
}

static void read_epoll(struct file *file, const char *text, struct file_watch *watches,
                       struct cw_err *err)
{
    file->kind = FILE_EPOLL;
    for (const char *at = text; (at = strstr(at, "tfd:")); at++) {
        struct file_watch *w = &watches[file->watches];

        if (file->watches == FILE_WATCHES_MAX) {
            cw_err_set(err, CW_ELIMIT, "descriptor %d (epoll) watches more than %u descriptors",
                       file->fd, FILE_WATCHES_MAX);
            return;
        }
        w->fd = (int)strtoul(at + 4, NULL, 10);
        w->events = (uint32_t)number_after(at, "events:", 16);
        w->data = number_after(at, "data:", 16);
        file->watches++;
    }
}

bool special_read(struct file *file, struct file_watch *watches, struct cw_err *err)
{
    char name[INFO_NAME_MAX], text[INFO_BYTES];
    long n;

    if (strncmp(file->path, "anon_inode:[", 12) != 0)
        return false;
    /* first: it sets a timer that expires again to its next time, and counts */
    system_call(SYS_timerfd_gettime, file->fd, &file->timer);
    snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", file->fd);
    n = system_read_file(name, text, sizeof(text));
    if (n < 0)
        return false;
    if (strcmp(file->path, "anon_inode:[eventfd]") == 0) {
        file->kind = FILE_EVENT;
        file->value = number_after(text, "eventfd-count:", 16);
        file->settime_flags = number_after(text, "eventfd-semaphore:", 10) ? 1 : 0;
    } else if (strcmp(file->path, "anon_inode:[timerfd]") == 0) {
        read_timer(file, text);
    } else if (strcmp(file->path, "anon_inode:[eventpoll]") == 0) {
        read_epoll(file, text, watches, err);
    } else {
        return false;
    }
    return true;
}

/* --- making them anew ------------------------------------------------------------------------ */

static long make_event(const struct file *file)
{
    long fd = system_call(SYS_eventfd2, 0, file->settime_flags);

    if (fd >= 0 && file->value > 0)
        system_call(SYS_write, fd, &file->value, sizeof(file->value));
    return fd;
}

static bool is_zero(struct timespec time)
{
    return time.tv_sec == 0 && time.tv_nsec == 0;
}

/* Where the kernel does not take how often it has expired, it expires at once; so does one with an
 * interval of which no time was left, for a time of 0 would stop it. */
static long make_timer(const struct file *file)
{
    long fd = system_call(SYS_timerfd_create, file->value, 0);
    const struct timespec at_once = {.tv_nsec = 1};
    struct itimerspec timer = file->timer;

    if (fd < 0)
        return fd;
    if (is_zero(timer.it_value) && !is_zero(timer.it_interval))
        timer.it_value = at_once;
    system_call(SYS_timerfd_settime, fd, 0, &timer, NULL);
    if (file->ticks == 0 || system_call(SYS_ioctl, fd, SET_TICKS, &file->ticks) == 0)
        return fd;
    timer.it_value = at_once;
    system_call(SYS_timerfd_settime, fd, 0, &timer, NULL);
    return fd;
}

long special_make(const struct file *file)
{
    if (file->kind == FILE_EVENT)
        return make_event(file);
    if (file->kind == FILE_TIMER)
        return make_timer(file);
    return system_call(SYS_epoll_create1, 0);
}

void special_watch(const struct file *file, const struct file_watch *watches)
{
    for (uint32_t i = 0; i < file->watches; i++) {
        struct epoll_event event = {.events = watches[i].events, .data.u64 = watches[i].data};
        long status = system_call(SYS_epoll_ctl, file->fd, EPOLL_CTL_ADD, watches[i].fd, &event);

        if (status < 0)
            remark_add("descriptor %d (epoll) does not watch descriptor %d any more: %s", file->fd,
                       watches[i].fd, strerrordesc_np((int)-status));
    }
}
