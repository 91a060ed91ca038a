/* The functions of libc that tell of the host: its processors, memory, load and file systems, and
 * what is left of timers. As in libc.c, the result of the real function is recorded, or the
 * recorded one is returned: a rank may be restarted on another host.
 *
 * A binding to libc, above inputs.c and, through it, above the device. */
#include "rdevice/heap.h"
#include "rdevice/inputs.h"
#include "rdevice/next.h"
#include "rdevice/real.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOADS_MAX 3

/* --- what fills a structure --------------------------------------------------------------------
 */

#define FILLED(name, kind_of, parameters, arguments, to)                                           \
    PUBLIC int name parameters                                                                     \
    {                                                                                              \
        struct input input = {.kind = kind_of, .bytes = to, .size = sizeof(*to)};                  \
                                                                                                   \
        return INPUT_TOLD(&input, CALLER, 0, NEXT(name) arguments);                                \
    }

/* NWChem, for example, sends messages according to how much space a file took. */
FILLED(statfs, READING_STATFS, (const char *path, struct statfs *to), (path, to), to)
FILLED(statfs64, READING_STATFS, (const char *path, struct statfs64 *to), (path, to), to)
FILLED(fstatfs, READING_STATFS, (int fd, struct statfs *to), (fd, to), to)
FILLED(fstatfs64, READING_STATFS, (int fd, struct statfs64 *to), (fd, to), to)
FILLED(statvfs, READING_STATVFS, (const char *restrict path, struct statvfs *restrict to),
       (path, to), to)
FILLED(statvfs64, READING_STATVFS, (const char *restrict path, struct statvfs64 *restrict to),
       (path, to), to)
FILLED(fstatvfs, READING_STATVFS, (int fd, struct statvfs *to), (fd, to), to)
FILLED(fstatvfs64, READING_STATVFS, (int fd, struct statvfs64 *to), (fd, to), to)
FILLED(sysinfo, READING_SYSINFO, (struct sysinfo * to), (to), to)
FILLED(uname, READING_HOST, (struct utsname * to), (to), to)
FILLED(getitimer, READING_TIMER, (__itimer_which_t which, struct itimerval *to), (which, to), to)
FILLED(timer_gettime, READING_TIMER, (timer_t timer, struct itimerspec *to), (timer, to), to)
FILLED(timerfd_gettime, READING_TIMER, (int fd, struct itimerspec *to), (fd, to), to)

static int given_name(const struct input *input, char *to, size_t size)
{
    if (input->size < size)
        to[input->size] = '\0';
    return 0;
}

static int real_gethostname(struct input *input, char *to, size_t size)
{
    int result = NEXT(gethostname)(to, size);

    input->size = strnlen(to, size);
    return result;
}

PUBLIC int gethostname(char *to, size_t size)
{
    struct input input = {.kind = READING_HOST, .bytes = to, .size = size};

    if (size == 0)
        return NEXT(gethostname)(to, size);
    return INPUT_TOLD(&input, CALLER, given_name(&input, to, size),
                      real_gethostname(&input, to, size));
}

/* Of programs that are compiled to check their arguments. */
PUBLIC int __gethostname_chk(char *to, size_t size, size_t room)
{
    if (size > room)
        abort();
    return gethostname(to, size);
}

/* adjtimex() and its sisters return a state of the clock. */
#define CLOCK_STATE(name, structure)                                                               \
    PUBLIC int name(structure *to)                                                                 \
    {                                                                                              \
        struct {                                                                                   \
            int64_t result;                                                                        \
            structure to;                                                                          \
        } told = {0};                                                                              \
        struct input input = {.kind = READING_NTP, .bytes = &told, .size = sizeof(told)};          \
                                                                                                   \
        return INPUT_TOLD(&input, CALLER, (*to = told.to, told.result),                            \
                          (told.result = NEXT(name)(to), told.to = *to, told.result));             \
    }

CLOCK_STATE(adjtimex, struct timex)
CLOCK_STATE(ntp_adjtime, struct timex)
CLOCK_STATE(ntp_gettimex, struct ntptimeval)

/* How many it gives shows in the size. */
static int real_loads(struct input *input, double *loads, int count)
{
    int result = NEXT(getloadavg)(loads, count);

    input->size = result > 0 ? (size_t)result * sizeof(*loads) : 0;
    return result;
}

PUBLIC int getloadavg(double *loads, int count)
{
    size_t room = count < 0 ? 0 : count > LOADS_MAX ? LOADS_MAX : (size_t)count;
    struct input input = {.kind = READING_LOADS, .bytes = loads, .size = room * sizeof(*loads)};

    if (room == 0)
        return NEXT(getloadavg)(loads, count);
    return INPUT_TOLD(&input, CALLER, (int)(input.size / sizeof(*loads)),
                      real_loads(&input, loads, count));
}

/* --- numbers -----------------------------------------------------------------------------------
 */

/* A number for which libc was asked. `real`: what the real one says now. */
static long told_number(long real, uintptr_t caller)
{
    struct input input = {.kind = READING_COUNT};
    enum input_answer answer = inputs_ask(&input, caller);

    if (answer == INPUT_GIVEN)
        return (long)input.number;
    input.number = real;
    if (answer == INPUT_RECORD)
        inputs_record(&input);
    return real;
}

#define NUMBER(type, name, parameters, arguments)                                                  \
    PUBLIC type name parameters                                                                    \
    {                                                                                              \
        return (type)told_number(NEXT(name) arguments, CALLER);                                    \
    }

/* --- the number of the process ------------------------------------------------------------------
 */

/* MPICH makes names of it that it tells other ranks, as those of MPI-IO's shared pointers. The
 * program gets the number of the process that it is. */
PUBLIC pid_t getpid(void)
{
    pid_t pid = real_pid();

    return heap_is_of_mpi(CALLER) ? (pid_t)told_number(pid, CALLER) : pid;
}
ALIAS(__getpid, getpid);

/* --- more numbers -------------------------------------------------------------------------------
 */

NUMBER(int, get_nprocs, (void), ())
NUMBER(int, get_nprocs_conf, (void), ())
NUMBER(long, get_phys_pages, (void), ())
NUMBER(long, get_avphys_pages, (void), ())
NUMBER(long, gethostid, (void), ())

PUBLIC int sched_getcpu(void)
{
    return (int)told_number(real_libc.sched_getcpu(), CALLER);
}

PUBLIC int getcpu(unsigned *cpu, unsigned *node)
{
    int result = NEXT(getcpu)(cpu, node);

    if (result == 0 && cpu)
        *cpu = (unsigned)told_number((long)*cpu, CALLER);
    if (result == 0 && node)
        *node = (unsigned)told_number((long)*node, CALLER);
    return result;
}

/* The others are the same everywhere, or limits, which a restart gives anew. */
PUBLIC long sysconf(int name)
{
    long value = NEXT(sysconf)(name);

    if (name != _SC_NPROCESSORS_ONLN && name != _SC_NPROCESSORS_CONF && name != _SC_PHYS_PAGES &&
        name != _SC_AVPHYS_PAGES)
        return value;
    return told_number(value, CALLER);
}
ALIAS(__sysconf, sysconf);

NUMBER(unsigned, ualarm, (unsigned us, unsigned interval_us), (us, interval_us))
NUMBER(unsigned, alarm, (unsigned seconds), (seconds))
NUMBER(int, timer_getoverrun, (timer_t timer), (timer))

/* --- processors ----------------------------------------------------------------------------------
 */

PUBLIC int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *cores)
{
    struct input input = {.kind = READING_CORES, .bytes = cores, .size = size};

    return INPUT_TOLD(&input, CALLER, 0, real_libc.sched_getaffinity(pid, size, cores));
}

/* Of another thread of the process, perhaps; it returns an error number. */
PUBLIC int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *cores)
{
    struct input input = {.kind = READING_CORES, .bytes = cores, .size = size};
    enum input_answer answer = inputs_ask(&input, CALLER);
    int error;

    if (answer == INPUT_GIVEN)
        return 0;
    if (answer == INPUT_FAILED)
        return errno;
    error = NEXT(pthread_getaffinity_np)(thread, size, cores);
    if (error)
        errno = error;
    inputs_finish(&input, answer, error ? -1 : 0);
    return error;
}

/* --- children ----------------------------------------------------------------------------------
 */

/* What a child used. Which child ended, and how, is not recorded: an incarnation has its own. */
static pid_t told_usage(pid_t child, struct rusage *usage, uintptr_t caller)
{
    struct input input = {.kind = READING_RUSAGE, .bytes = usage, .size = sizeof(*usage)};

    if (usage && child > 0 && inputs_ask(&input, caller) == INPUT_RECORD)
        inputs_record(&input);
    return child;
}

PUBLIC pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    return told_usage(NEXT(wait4)(pid, status, options, usage), usage, CALLER);
}

PUBLIC pid_t wait3(int *status, int options, struct rusage *usage)
{
    return told_usage(NEXT(wait3)(status, options, usage), usage, CALLER);
}
