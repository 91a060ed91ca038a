#include "common/readings.h"

#include <assert.h>
#include <string.h>

#define VARINT_MAX 10u /* bytes of 7 bits for 64 */

_Static_assert(READING_NUMBER_MAX == 1 + VARINT_MAX, "a kind and its number");
_Static_assert(READING_CLOCK + READING_CLOCK_IDS == READING_CLOCK_OTHER, "kinds do not overlap");

static inline uint8_t *put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

/* Returns the bytes taken; 0 when they are no number, or not the shortest form of one. */
static size_t get_varint(const uint8_t *from, size_t left, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < left && i < VARINT_MAX; i++) {
        uint64_t bits = from[i] & 0x7f;

        if (i == VARINT_MAX - 1 && bits > 1)
            return 0;
        *value |= bits << (7 * i);
        if (!(from[i] & 0x80))
            return i > 0 && bits == 0 ? 0 : i + 1;
    }
    return 0;
}

/* Clocks go on by little and rarely back: the sign is moved to the lowest bit, so that small
 * differences of both signs are short. Unsigned, for a difference may wrap. */
static inline uint64_t zigzag(uint64_t delta)
{
    return delta << 1 ^ -(delta >> 63);
}

static inline uint64_t unzigzag(uint64_t value)
{
    return value >> 1 ^ -(value & 1);
}

bool reading_is_bytes(uint8_t kind)
{
    return kind >= READING_TIMES && kind < READING_SAME && kind != READING_NAMED &&
           kind != READING_COUNT && kind != READING_INPUT;
}

static void put(struct readings_writer *w, size_t at, uint8_t kind, uint64_t value)
{
    w->bytes[at] = kind;
    w->used = (size_t)(put_varint(w->bytes + at + 1, value) - w->bytes);
}

/* Whoever emptied the buffer has ended the run. */
static bool is_open(const struct readings_writer *w)
{
    return w->run.end && w->run.end <= w->used;
}

bool readings_put_number(struct readings_writer *w, uint8_t kind, int64_t value)
{
    assert(kind > 0 && kind < READING_SAME && !reading_is_bytes(kind));
    if (w->size - w->used < READING_NUMBER_MAX)
        return false;
    if (is_open(w) && kind == w->run.kind && (uint64_t)value == w->last[kind]) {
        put(w, w->run.end, READING_SAME, ++w->run.same);
        return true;
    }
    put(w, w->used, kind, zigzag((uint64_t)value - w->last[kind]));
    w->last[kind] = (uint64_t)value;
    w->run = (struct readings_run){.kind = kind, .end = w->used};
    return true;
}

void readings_take_back(struct readings_writer *w, size_t used, const struct readings_run *run,
                        uint8_t kind, uint64_t last)
{
    w->used = used;
    w->run = *run;
    w->last[kind] = last;
    if (is_open(w) && run->same)
        put(w, run->end, READING_SAME, run->same);
}

bool readings_put_bytes(struct readings_writer *w, uint8_t kind, const void *bytes, size_t size)
{
    uint8_t *to = w->bytes + w->used;

    assert(reading_is_bytes(kind));
    if (w->size - w->used < READING_NUMBER_MAX || w->size - w->used - READING_NUMBER_MAX < size)
        return false;
    *to++ = kind;
    to = put_varint(to, size);
    if (size)
        memcpy(to, bytes, size);
    w->used = (size_t)(to - w->bytes) + size;
    w->run.end = 0;
    return true;
}

uint8_t readings_next_kind(const struct readings_reader *r)
{
    if (r->left == 0)
        return 0;
    return r->bytes[0] == READING_SAME ? r->kind : r->bytes[0];
}

static enum readings_result check_kind(const struct readings_reader *r, uint8_t kind)
{
    uint8_t next = readings_next_kind(r);

    if (r->left == 0)
        return READINGS_END;
    if (next == 0 || next >= READING_KINDS)
        return READINGS_BAD;
    return next == kind ? READINGS_OK : READINGS_OTHER;
}

static void take(struct readings_reader *r, size_t size)
{
    r->bytes += size;
    r->left -= size;
}

enum readings_result readings_get_number(struct readings_reader *r, uint8_t kind, int64_t *value)
{
    enum readings_result result = check_kind(r, kind);
    uint64_t number;
    size_t size;
    bool same;

    if (result != READINGS_OK)
        return result;
    size = get_varint(r->bytes + 1, r->left - 1, &number);
    same = r->bytes[0] == READING_SAME;
    if (size == 0 || (same && number == 0))
        return READINGS_BAD;
    if (!same)
        r->last[kind] += unzigzag(number);
    *value = (int64_t)r->last[kind];
    r->kind = kind;
    if (same && ++r->given < number)
        return READINGS_OK;
    r->given = 0;
    take(r, 1 + size);
    return READINGS_OK;
}

/* The count of the bytes that come next, and how many bytes the kind and it take; 0: there are not
 * as many. */
static size_t get_head(const struct readings_reader *r, uint64_t *count)
{
    size_t head = get_varint(r->bytes + 1, r->left - 1, count);

    return head > 0 && *count <= r->left - 1 - head ? 1 + head : 0;
}

enum readings_result readings_get_bytes(struct readings_reader *r, uint8_t kind, void *to,
                                        size_t size_max, size_t *size)
{
    enum readings_result result = check_kind(r, kind);
    uint64_t number;
    size_t head;

    if (result != READINGS_OK)
        return result;
    head = get_head(r, &number);
    if (head == 0)
        return READINGS_BAD;
    if (number > size_max)
        return READINGS_OTHER;
    *size = (size_t)number;
    if (number)
        memcpy(to, r->bytes + head, *size);
    r->kind = 0;
    take(r, head + *size);
    return READINGS_OK;
}

enum readings_result readings_skip(struct readings_reader *r, uint8_t *kind, uint64_t *count)
{
    uint64_t number;
    int64_t value;
    size_t head;

    *kind = readings_next_kind(r);
    *count = 1;
    if (r->left == 0)
        return READINGS_END;
    if (*kind && r->bytes[0] == READING_SAME && get_varint(r->bytes + 1, r->left - 1, &number) &&
        number) {
        *count = number - r->given;
        r->given = number - 1;
    }
    if (!reading_is_bytes(*kind))
        return readings_get_number(r, *kind, &value);
    head = get_head(r, &number);
    if (head == 0)
        return READINGS_BAD;
    r->kind = 0;
    take(r, head + (size_t)number);
    return READINGS_OK;
}

const char *readings_kind_name(uint8_t kind)
{
    static const char *const names[READING_KINDS] = {
        [READING_CLOCK + 0] = "clock_gettime(CLOCK_REALTIME)",
        [READING_CLOCK + 1] = "clock_gettime(CLOCK_MONOTONIC)",
        [READING_CLOCK + 2] = "clock_gettime(CLOCK_PROCESS_CPUTIME_ID)",
        [READING_CLOCK + 3] = "clock_gettime(CLOCK_THREAD_CPUTIME_ID)",
        [READING_CLOCK + 4] = "clock_gettime(CLOCK_MONOTONIC_RAW)",
        [READING_CLOCK + 5] = "clock_gettime(CLOCK_REALTIME_COARSE)",
        [READING_CLOCK + 6] = "clock_gettime(CLOCK_MONOTONIC_COARSE)",
        [READING_CLOCK + 7] = "clock_gettime(CLOCK_BOOTTIME)",
        [READING_CLOCK + 8] = "clock_gettime(CLOCK_REALTIME_ALARM)",
        [READING_CLOCK + 9] = "clock_gettime(CLOCK_BOOTTIME_ALARM)",
        [READING_CLOCK + 11] = "clock_gettime(CLOCK_TAI)",
        [READING_CLOCK_OTHER] = "clock_gettime of another clock",
        [READING_GETTIMEOFDAY] = "gettimeofday",
        [READING_TIME] = "time",
        [READING_TIMESPEC_GET] = "timespec_get",
        [READING_CPU] = "clock",
        [READING_FAILED] = "a call that failed",
        [READING_TIMES] = "times",
        [READING_RUSAGE] = "getrusage",
        [READING_RANDOM] = "getrandom or one of its kind",
        [READING_STATFS] = "statfs",
        [READING_STATVFS] = "statvfs",
        [READING_SYSINFO] = "sysinfo",
        [READING_LOADS] = "getloadavg",
        [READING_NAMED] = "an operation on the name of a file",
        [READING_DRAWN] = "mkstemp or one of its kind",
        [READING_HOST] = "uname or gethostname",
        [READING_COUNT] = "sysconf, alarm or one of their kind",
        [READING_CORES] = "sched_getaffinity",
        [READING_TIMER] = "getitimer or one of its kind",
        [READING_INPUT] = "read, poll or FIONREAD of standard input",
        [READING_INPUT_SET] = "select or epoll_wait of standard input",
        [READING_NTP] = "adjtimex or one of its kind",
    };

    return kind < READING_KINDS && names[kind] ? names[kind] : "?";
}

enum reading_group reading_group(uint8_t kind)
{
    static const uint8_t groups[READING_KINDS] = {
        [READING_FAILED] = READING_OF_FAILURE,     [READING_RANDOM] = READING_OF_RANDOM,
        [READING_STATFS] = READING_OF_FILE_SYSTEM, [READING_STATVFS] = READING_OF_FILE_SYSTEM,
        [READING_SYSINFO] = READING_OF_MACHINE,    [READING_LOADS] = READING_OF_MACHINE,
        [READING_NAMED] = READING_OF_NAME,         [READING_DRAWN] = READING_OF_NAME,
        [READING_HOST] = READING_OF_MACHINE,       [READING_COUNT] = READING_OF_MACHINE,
        [READING_CORES] = READING_OF_MACHINE,      [READING_INPUT] = READING_OF_INPUT,
        [READING_INPUT_SET] = READING_OF_INPUT,
    };

    return kind < READING_KINDS ? groups[kind] : READING_OF_CLOCK;
}

const char *reading_group_name(enum reading_group group, uint64_t count)
{
    static const char *const names[READING_GROUPS][2] = {
        [READING_OF_CLOCK] = {"clock reading", "clock readings"},
        [READING_OF_RANDOM] = {"random number", "random numbers"},
        [READING_OF_NAME] = {"file name", "file names"},
        [READING_OF_FILE_SYSTEM] = {"state of a file system", "states of file systems"},
        [READING_OF_MACHINE] = {"fact of the machine", "facts of the machine"},
        [READING_OF_INPUT] = {"look at standard input", "looks at standard input"},
        [READING_OF_FAILURE] = {"call that failed", "calls that failed"},
    };

    return names[group][count != 1];
}
