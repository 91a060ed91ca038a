/* Memory, semaphores and queues that the program shares with other processes, of System V and of
 * POSIX. No replay makes them what they were, and an image makes memory the rank's own: they are
 * told of as files are that a rank writes to (files.c), and count when another rank has them too.
 *
 * A binding to libc, above files.c. */
#include "rdevice/files.h"
#include "rdevice/next.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#define TOLD 1024u    /* identifiers told of; one forgotten is told of again */
#define NAME_BYTES 48 /* in words to a person */

/* Devices of no file system: those have small numbers. */
enum kind { KIND_SHM = 1, KIND_SEM, KIND_MSG };
#define DEVICE_OF(kind) (0x5379735600000000u | (kind))

static void shared(enum kind kind, int id)
{
    static const char *const names[] = {
        [KIND_SHM] = "shared memory", [KIND_SEM] = "semaphores", [KIND_MSG] = "message queue"};
    static uint64_t told[TOLD]; /* 0: none */
    uint64_t mark = (uint64_t)kind << 32 | (uint32_t)id;
    uint64_t *place = &told[(mark ^ mark >> 32) % TOLD];
    char name[NAME_BYTES];
    int error = errno;

    if (__atomic_exchange_n(place, mark, __ATOMIC_RELAXED) != mark) {
        snprintf(name, sizeof(name), "System V %s %d", names[kind], id);
        files_tell_shared(DEVICE_OF(kind), (uint32_t)id, name);
    }
    errno = error;
}

/* --- System V --------------------------------------------------------------------------------- */

PUBLIC void *shmat(int id, const void *at, int flags)
{
    void *memory = NEXT(shmat)(id, at, flags);

    if (memory != (void *)-1)
        shared(KIND_SHM, id);
    return memory;
}

#define SHARED(kind, type, name, parameters, arguments)                                            \
    PUBLIC type name parameters                                                                    \
    {                                                                                              \
        shared(kind, id);                                                                          \
        return NEXT(name) arguments;                                                               \
    }

SHARED(KIND_SEM, int, semop, (int id, struct sembuf *operations, size_t count),
       (id, operations, count))
SHARED(KIND_SEM, int, semtimedop,
       (int id, struct sembuf *operations, size_t count, const struct timespec *timeout),
       (id, operations, count, timeout))
SHARED(KIND_MSG, int, msgsnd, (int id, const void *message, size_t size, int flags),
       (id, message, size, flags))
SHARED(KIND_MSG, ssize_t, msgrcv, (int id, void *message, size_t size, long type, int flags),
       (id, message, size, type, flags))

/* --- POSIX ------------------------------------------------------------------------------------ */

PUBLIC int shm_open(const char *name, int flags, mode_t mode)
{
    return files_told(NEXT(shm_open)(name, flags, mode), name, flags);
}

static mode_t mode_of(int flags, va_list *ap)
{
    return flags & O_CREAT ? va_arg(*ap, mode_t) : 0;
}

/* A process that only has it open waits on it, and posts. */
PUBLIC sem_t *sem_open(const char *name, int flags, ...)
{
    sem_t *sem;
    va_list ap;
    mode_t mode;
    unsigned value;
    int fd, error;

    va_start(ap, flags);
    mode = mode_of(flags, &ap);
    value = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
    va_end(ap);
    sem = NEXT(sem_open)(name, flags, mode, value);
    error = errno;
    if (sem != SEM_FAILED) {
        char file[NAME_BYTES + 256];

        snprintf(file, sizeof(file), "/sem.%s", name + (*name == '/'));
        fd = files_told(NEXT(shm_open)(file, O_RDWR, 0), file, O_RDWR);
        if (fd >= 0)
            close(fd);
    }
    errno = error;
    return sem;
}

PUBLIC mqd_t mq_open(const char *name, int flags, ...)
{
    struct mq_attr *attributes = NULL;
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = mode_of(flags, &ap);
    if (flags & O_CREAT)
        attributes = va_arg(ap, struct mq_attr *);
    va_end(ap);
    return files_told(NEXT(mq_open)(name, flags, mode, attributes), name, O_RDWR);
}

/* Of programs that are compiled to check their arguments. */
PUBLIC mqd_t __mq_open_2(const char *name, int flags)
{
    return files_told(NEXT(mq_open)(name, flags), name, O_RDWR);
}
