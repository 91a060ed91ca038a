/* One descriptor of the program, as files.h keeps it. */
#ifndef RDEVICE_IMAGE_FILE_H
#define RDEVICE_IMAGE_FILE_H

#include "common/image.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define FILE_WATCHES_MAX 64u

enum file_kind {
    FILE_GIVEN = 1, /* brought by the new process; `size` is no more than a place among others */
    FILE_REGULAR,   /* opened again, by its path, where it was */
    FILE_UNNAMED,   /* without a path: with its content */
    FILE_MEMORY,    /* of memfd_create(), likewise */
    FILE_DEVICE,
    FILE_DIRECTORY,
    FILE_PIPE_READ, /* with its content; `other` is the end to write */
    FILE_PIPE_WRITE,
    FILE_EVENT,
    FILE_TIMER,
    FILE_EPOLL,
    FILE_LOST, /* inherited, and nothing that could be restored: /dev/null takes its place */
};

struct file_watch {
    int fd;
    uint32_t events;
    uint64_t data;
};

struct file {
    enum file_kind kind;
    int fd;
    int flags;    /* as F_GETFL says */
    int fd_flags; /* as F_GETFD says */
    int same_as;  /* index of the file that it was duplicated from; -1: none */
    int other;    /* of pipes: index; -1: none */
    uint64_t device, inode, size;
    bool kernels; /* of /proc and its like: its inode is another one in the restored process */
    int64_t offset;
    void *content;
    uint64_t content_size; /* that is held; of pipes what is unread */
    uint64_t value;        /* of eventfd: its count; of timerfd: its clock */
    int settime_flags;
    int signal, owner_type, owner; /* of asynchronous input: F_GETSIG, F_GETOWN_EX; 0: as usual */
    struct itimerspec timer;
    uint64_t ticks; /* of timerfd: expirations that were not read */
    uint32_t watches;
    char path[CW_IMAGE_PATH_MAX];
};

#endif
