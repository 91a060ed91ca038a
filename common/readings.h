/* Readings: what clocks, sources of randomness and the state of the machine told a program, as a
 * stream of bytes. Each is a kind, then for a number its difference to the last of that kind, for
 * bytes their count and they themselves. docs/protocol.md, "Readings". Pure: no I/O, no clock. */
#ifndef CW_READINGS_H
#define CW_READINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* They stand in logs: a number is never given to something else. */
enum reading_kind {
    READING_CLOCK = 1,         /* + clock id: clock_gettime, nanoseconds */
    READING_CLOCK_OTHER = 13,  /* clock_gettime of an id outside of READING_CLOCK_IDS */
    READING_GETTIMEOFDAY = 14, /* microseconds */
    READING_TIME = 15,         /* seconds */
    READING_TIMESPEC_GET = 16, /* nanoseconds */
    READING_CPU = 17,          /* clock(), its units */
    READING_FAILED = 18,       /* any of them failed: errno */
    READING_TIMES = 19,        /* bytes: result, then struct tms */
    READING_RUSAGE = 20,       /* bytes: struct rusage */
    READING_RANDOM = 21,       /* bytes: getrandom, getentropy, arc4random and its sisters */
    READING_STATFS = 22,       /* bytes: struct statfs */
    READING_STATVFS = 23,      /* bytes: struct statvfs */
    READING_SYSINFO = 24,      /* bytes: struct sysinfo */
    READING_LOADS = 25,        /* bytes: getloadavg */
    READING_NAMED = 26,        /* a name was made, changed or removed: 0 */
    READING_DRAWN = 27,        /* bytes: of a name, those that libc drew */
    READING_HOST = 28,         /* bytes: struct utsname, or the name that gethostname gives */
    READING_COUNT = 29,     /* processors, pages of memory, the processor at hand, seconds left */
    READING_CORES = 30,     /* bytes: sched_getaffinity */
    READING_TIMER = 31,     /* bytes: what is left of a timer */
    READING_NTP = 32,       /* bytes: result, then struct timex or struct ntptimeval */
    READING_INPUT = 33,     /* read(), poll(), pselect() and FIONREAD of standard input */
    READING_INPUT_SET = 34, /* bytes: what select() and epoll_wait() found of it */
    READING_SAME = 35,      /* the number before comes again, so many times */
    READING_KINDS = 36,
};
#define READING_CLOCK_IDS 12 /* CLOCK_REALTIME, 0, to CLOCK_TAI, 11 */

#define READING_NUMBER_MAX 11u /* bytes that a number takes at most */
#define READINGS_HEAD 8u       /* bytes before the readings of a frame: the poll clock, a u64 */

/* The number that was written last, and how often it came again: READING_SAME behind it says so. */
struct readings_run {
    uint8_t kind;
    size_t end; /* of the number; 0: there is none, or something has come behind it */
    uint64_t same;
};

/* `bytes` is borrowed. All zeros but for it and its size to begin with. */
struct readings_writer {
    uint8_t *bytes;
    size_t used;
    size_t size;
    uint64_t last[READING_KINDS];
    struct readings_run run;
};

/* Append a reading. False when it may not fit (then nothing is written): empty the buffer by
 * used = 0 and go on, the stream does not end there. A number is written only where the longest
 * would fit. */
bool readings_put_number(struct readings_writer *w, uint8_t kind, int64_t value);
bool readings_put_bytes(struct readings_writer *w, uint8_t kind, const void *bytes, size_t size);

/* The last of them was not: `used`, `run` and `last` of that kind as they were before it. */
void readings_take_back(struct readings_writer *w, size_t used, const struct readings_run *run,
                        uint8_t kind, uint64_t last);

/* A stream may come in several pieces, each cut where a reading ends: point `bytes` and `left` to
 * the next one and go on. All zeros to begin with. */
struct readings_reader {
    const uint8_t *bytes;
    size_t left;
    uint64_t last[READING_KINDS];
    uint8_t kind;   /* of the number that was taken last; 0: none, or bytes since */
    uint64_t given; /* of the READING_SAME that is next */
};

enum readings_result {
    READINGS_OK,
    READINGS_END,   /* nothing is left */
    READINGS_OTHER, /* what is next is of another kind, or longer than `size_max` */
    READINGS_BAD,   /* what is next is no reading */
};

/* Take the next reading, only if it is of this kind; else nothing is taken. */
enum readings_result readings_get_number(struct readings_reader *r, uint8_t kind, int64_t *value);
enum readings_result readings_get_bytes(struct readings_reader *r, uint8_t kind, void *to,
                                        size_t size_max, size_t *size);

/* Likewise, of whatever kind, and all that tell the same behind it, `count` in all; the value is
 * not looked at. OK, END or BAD. */
enum readings_result readings_skip(struct readings_reader *r, uint8_t *kind, uint64_t *count);

/* What has a value of bytes; else it is a number. */
bool reading_is_bytes(uint8_t kind);

/* The kind of the next reading; 0: there is none. */
uint8_t readings_next_kind(const struct readings_reader *r);

/* "time", ... or "?", for words to a person. */
const char *readings_kind_name(uint8_t kind);

/* What kinds have in common, for one who counts them; the name of so many. */
enum reading_group {
    READING_OF_CLOCK,
    READING_OF_RANDOM,
    READING_OF_NAME,
    READING_OF_FILE_SYSTEM,
    READING_OF_MACHINE,
    READING_OF_INPUT,
    READING_OF_FAILURE,
    READING_GROUPS
};
enum reading_group reading_group(uint8_t kind);
const char *reading_group_name(enum reading_group group, uint64_t count);

#endif
