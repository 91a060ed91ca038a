/* The functions of libc that report the state of the machine: free space of file systems, memory,
 * load. As in libc.c, the result of the real function is recorded, or the recorded one is returned:
 * NWChem, for example, sends messages according to how much space a file took.
 *
 * A binding to libc, above libc_ask.c and, through it, above the device. */
#include "rdevice/libc_ask.h"
#include "rdevice/real.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>

#define LOADS_MAX 3

#define PUBLIC __attribute__((visibility("default")))
#define CALLER ((uintptr_t)__builtin_return_address(0))

_Static_assert(sizeof(struct statfs) == sizeof(struct statfs64), "one function for both");
_Static_assert(sizeof(struct statvfs) == sizeof(struct statvfs64), "one function for both");

/* No need to ask the real one. */
static bool is_known(enum clock_answer answer)
{
    return answer == CLOCK_GIVEN || answer == CLOCK_FAILED;
}

static int known(enum clock_answer answer)
{
    return answer == CLOCK_GIVEN ? 0 : -1;
}

/* The real one has answered with `result`, 0 or -1. */
static int finish(const struct clock_reading *reading, enum clock_answer answer, int result)
{
    if (answer == CLOCK_RECORD && result == 0)
        libc_record(reading);
    else if (answer == CLOCK_RECORD)
        libc_record_failure();
    return result;
}

static int told_statfs(const char *path, struct statfs *to, uintptr_t caller)
{
    struct clock_reading reading = {.kind = READING_STATFS, .bytes = to, .size = sizeof(*to)};
    enum clock_answer answer = libc_ask(&reading, caller);

    return is_known(answer) ? known(answer) : finish(&reading, answer, real_libc.statfs(path, to));
}

static int told_fstatfs(int fd, struct statfs *to, uintptr_t caller)
{
    struct clock_reading reading = {.kind = READING_STATFS, .bytes = to, .size = sizeof(*to)};
    enum clock_answer answer = libc_ask(&reading, caller);

    return is_known(answer) ? known(answer) : finish(&reading, answer, real_libc.fstatfs(fd, to));
}

static int told_statvfs(const char *path, struct statvfs *to, uintptr_t caller)
{
    struct clock_reading reading = {.kind = READING_STATVFS, .bytes = to, .size = sizeof(*to)};
    enum clock_answer answer = libc_ask(&reading, caller);

    return is_known(answer) ? known(answer) : finish(&reading, answer, real_libc.statvfs(path, to));
}

static int told_fstatvfs(int fd, struct statvfs *to, uintptr_t caller)
{
    struct clock_reading reading = {.kind = READING_STATVFS, .bytes = to, .size = sizeof(*to)};
    enum clock_answer answer = libc_ask(&reading, caller);

    return is_known(answer) ? known(answer) : finish(&reading, answer, real_libc.fstatvfs(fd, to));
}

PUBLIC int statfs(const char *path, struct statfs *to)
{
    return told_statfs(path, to, CALLER);
}

PUBLIC int statfs64(const char *path, struct statfs64 *to)
{
    return told_statfs(path, (struct statfs *)to, CALLER);
}

PUBLIC int fstatfs(int fd, struct statfs *to)
{
    return told_fstatfs(fd, to, CALLER);
}

PUBLIC int fstatfs64(int fd, struct statfs64 *to)
{
    return told_fstatfs(fd, (struct statfs *)to, CALLER);
}

PUBLIC int statvfs(const char *restrict path, struct statvfs *restrict to)
{
    return told_statvfs(path, to, CALLER);
}

PUBLIC int statvfs64(const char *restrict path, struct statvfs64 *restrict to)
{
    return told_statvfs(path, (struct statvfs *)to, CALLER);
}

PUBLIC int fstatvfs(int fd, struct statvfs *to)
{
    return told_fstatvfs(fd, to, CALLER);
}

PUBLIC int fstatvfs64(int fd, struct statvfs64 *to)
{
    return told_fstatvfs(fd, (struct statvfs *)to, CALLER);
}

PUBLIC int sysinfo(struct sysinfo *to)
{
    struct clock_reading reading = {.kind = READING_SYSINFO, .bytes = to, .size = sizeof(*to)};
    enum clock_answer answer = libc_ask(&reading, CALLER);

    return is_known(answer) ? known(answer) : finish(&reading, answer, real_libc.sysinfo(to));
}

/* How many it gives shows in the size. */
PUBLIC int getloadavg(double *loads, int count)
{
    size_t room = count < 0 ? 0 : count > LOADS_MAX ? LOADS_MAX : (size_t)count;
    struct clock_reading reading = {
        .kind = READING_LOADS, .bytes = loads, .size = room * sizeof(*loads)};
    enum clock_answer answer = room ? libc_ask(&reading, CALLER) : CLOCK_REAL;
    int result;

    if (answer == CLOCK_FAILED)
        return -1;
    if (answer == CLOCK_GIVEN)
        return (int)(reading.size / sizeof(*loads));
    result = real_libc.getloadavg(loads, count);
    reading.size = result > 0 ? (size_t)result * sizeof(*loads) : 0;
    finish(&reading, answer, result < 0 ? -1 : 0);
    return result;
}
