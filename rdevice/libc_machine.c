/* The functions of libc that report the state of the machine: free space of file systems, memory,
 * load. As in libc.c, the result of the real function is recorded, or the recorded one is returned:
 * NWChem, for example, sends messages according to how much space a file took.
 *
 * A binding to libc, above inputs.c and, through it, above the device. */
#include "rdevice/inputs.h"
#include "rdevice/next.h"
#include "rdevice/real.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>

#define LOADS_MAX 3

_Static_assert(sizeof(struct statfs) == sizeof(struct statfs64), "one function for both");
_Static_assert(sizeof(struct statvfs) == sizeof(struct statvfs64), "one function for both");

/* No need to ask the real one. */
static bool is_known(enum input_answer answer)
{
    return answer == INPUT_GIVEN || answer == INPUT_FAILED;
}

static int known(enum input_answer answer)
{
    return answer == INPUT_GIVEN ? 0 : -1;
}

/* The real one has answered with `result`, 0 or -1. */
static int finish(const struct input *input, enum input_answer answer, int result)
{
    if (answer == INPUT_RECORD && result == 0)
        inputs_record(input);
    else if (answer == INPUT_RECORD)
        inputs_record_failure();
    return result;
}

static int told_statfs(const char *path, struct statfs *to, uintptr_t caller)
{
    struct input input = {.kind = READING_STATFS, .bytes = to, .size = sizeof(*to)};
    enum input_answer answer = inputs_ask(&input, caller);

    return is_known(answer) ? known(answer) : finish(&input, answer, real_libc.statfs(path, to));
}

static int told_fstatfs(int fd, struct statfs *to, uintptr_t caller)
{
    struct input input = {.kind = READING_STATFS, .bytes = to, .size = sizeof(*to)};
    enum input_answer answer = inputs_ask(&input, caller);

    return is_known(answer) ? known(answer) : finish(&input, answer, real_libc.fstatfs(fd, to));
}

static int told_statvfs(const char *path, struct statvfs *to, uintptr_t caller)
{
    struct input input = {.kind = READING_STATVFS, .bytes = to, .size = sizeof(*to)};
    enum input_answer answer = inputs_ask(&input, caller);

    return is_known(answer) ? known(answer) : finish(&input, answer, real_libc.statvfs(path, to));
}

static int told_fstatvfs(int fd, struct statvfs *to, uintptr_t caller)
{
    struct input input = {.kind = READING_STATVFS, .bytes = to, .size = sizeof(*to)};
    enum input_answer answer = inputs_ask(&input, caller);

    return is_known(answer) ? known(answer) : finish(&input, answer, real_libc.fstatvfs(fd, to));
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
    struct input input = {.kind = READING_SYSINFO, .bytes = to, .size = sizeof(*to)};
    enum input_answer answer = inputs_ask(&input, CALLER);

    return is_known(answer) ? known(answer) : finish(&input, answer, real_libc.sysinfo(to));
}

/* How many it gives shows in the size. */
PUBLIC int getloadavg(double *loads, int count)
{
    size_t room = count < 0 ? 0 : count > LOADS_MAX ? LOADS_MAX : (size_t)count;
    struct input input = {.kind = READING_LOADS, .bytes = loads, .size = room * sizeof(*loads)};
    enum input_answer answer = room ? inputs_ask(&input, CALLER) : INPUT_REAL;
    int result;

    if (answer == INPUT_FAILED)
        return -1;
    if (answer == INPUT_GIVEN)
        return (int)(input.size / sizeof(*loads));
    result = real_libc.getloadavg(loads, count);
    input.size = result > 0 ? (size_t)result * sizeof(*loads) : 0;
    finish(&input, answer, result < 0 ? -1 : 0);
    return result;
}
