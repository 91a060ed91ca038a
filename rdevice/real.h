/* libc's own functions, in front of which the library stands. */
#ifndef RDEVICE_REAL_H
#define RDEVICE_REAL_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <time.h>

/* Valid after the first real_resolve(). */
struct real_libc {
    int (*clock_gettime)(clockid_t id, struct timespec *t);
    int (*gettimeofday)(struct timeval *t, void *zone);
    time_t (*time)(time_t *t);
    clock_t (*clock)(void);
    clock_t (*times)(struct tms *t);
    int (*timespec_get)(struct timespec *t, int base);
    int (*getrusage)(int who, struct rusage *usage);
    ssize_t (*getrandom)(void *to, size_t size, unsigned flags);
    int (*getentropy)(void *to, size_t size);
    void (*arc4random_buf)(void *to, size_t size);
    uint32_t (*arc4random_uniform)(uint32_t bound);
    int (*statfs)(const char *path, struct statfs *to);
    int (*fstatfs)(int fd, struct statfs *to);
    int (*statvfs)(const char *path, struct statvfs *to);
    int (*fstatvfs)(int fd, struct statvfs *to);
    int (*sysinfo)(struct sysinfo *to);
    int (*getloadavg)(double *loads, int count);
    int (*getaffinity)(pid_t pid, size_t size, cpu_set_t *cores);
    int (*getcpu)(void);
};
extern struct real_libc real_libc;

void real_resolve(void);

/* Where this thread may run: 0, or -1 with errno. */
int real_affinity(cpu_set_t *cores);

/* The number of the process. */
pid_t real_pid(void);

/* Context switches of the process so far. */
uint64_t real_switches(void);

#endif
