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
