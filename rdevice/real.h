/* libc's own functions, in front of which the library stands. */
#ifndef RDEVICE_REAL_H
#define RDEVICE_REAL_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/types.h>
#include <time.h>

#define NS_IN_S 1000000000
#define NS_IN_US 1000

static inline struct timespec real_of_ns(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_IN_S, .tv_nsec = ns % NS_IN_S};
}

static inline int64_t real_ns_in(const struct timespec *t)
{
    return (int64_t)t->tv_sec * NS_IN_S + t->tv_nsec;
}

static inline int64_t real_ns_of(const struct timeval *t)
{
    return (int64_t)t->tv_sec * NS_IN_S + t->tv_usec * NS_IN_US;
}

#define REAL_FUNCTIONS(DO)                                                                         \
    DO(clock_gettime)                                                                              \
    DO(gettimeofday)                                                                               \
    DO(time)                                                                                       \
    DO(clock)                                                                                      \
    DO(times)                                                                                      \
    DO(getrusage)                                                                                  \
    DO(sched_getaffinity)                                                                          \
    DO(sched_getcpu)

/* Those that the device itself, or a loop, calls; valid after the first real_resolve(). */
#define REAL_POINTER(name) __typeof__(&name) name;
struct real_libc {
    REAL_FUNCTIONS(REAL_POINTER)
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
