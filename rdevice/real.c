#include "rdevice/real.h"
#include "common/clock.h"
#include "rdevice/next.h"

#include <sys/syscall.h>
#include <unistd.h>

struct real_libc real_libc;

void real_resolve(void)
{
#define RESOLVE(name) next_resolve(&real_libc.name, #name);
    REAL_FUNCTIONS(RESOLVE)
}

/* The device's own looks at the clock and the processor are no readings. */
uint64_t cw_clock_ns(void)
{
    struct timespec t;

    real_libc.clock_gettime(CLOCK_MONOTONIC, &t);
    return cw_timespec_ns(&t);
}

int real_affinity(cpu_set_t *cores)
{
    return real_libc.sched_getaffinity(0, sizeof(*cores), cores);
}

int cw_cpu(void)
{
    return real_libc.sched_getcpu();
}

pid_t real_pid(void)
{
    return (pid_t)syscall(SYS_getpid);
}

uint64_t real_switches(void)
{
    struct rusage usage;

    real_libc.getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}
