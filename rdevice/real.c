#include "rdevice/real.h"
#include "common/clock.h"
#include "rdevice/next.h"

#include <sys/syscall.h>
#include <unistd.h>

struct real_libc real_libc;

void real_resolve(void)
{
    next_resolve(&real_libc.clock_gettime, "clock_gettime");
    next_resolve(&real_libc.gettimeofday, "gettimeofday");
    next_resolve(&real_libc.time, "time");
    next_resolve(&real_libc.clock, "clock");
    next_resolve(&real_libc.times, "times");
    next_resolve(&real_libc.timespec_get, "timespec_get");
    next_resolve(&real_libc.getrusage, "getrusage");
    next_resolve(&real_libc.getrandom, "getrandom");
    next_resolve(&real_libc.getentropy, "getentropy");
    next_resolve(&real_libc.arc4random_buf, "arc4random_buf");
    next_resolve(&real_libc.arc4random_uniform, "arc4random_uniform");
    next_resolve(&real_libc.statfs, "statfs");
    next_resolve(&real_libc.fstatfs, "fstatfs");
    next_resolve(&real_libc.statvfs, "statvfs");
    next_resolve(&real_libc.fstatvfs, "fstatvfs");
    next_resolve(&real_libc.sysinfo, "sysinfo");
    next_resolve(&real_libc.getloadavg, "getloadavg");
    next_resolve(&real_libc.getaffinity, "sched_getaffinity");
    next_resolve(&real_libc.getcpu, "sched_getcpu");
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
    return real_libc.getaffinity(0, sizeof(*cores), cores);
}

int cw_cpu(void)
{
    return real_libc.getcpu();
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
