/* The functions of libc whose results differ from run to run. librdevice.so comes before libc, so
 * the program calls these. Each calls the real function and records its result, or returns the
 * recorded one. clock_gettime and similar functions are called in tight loops: their path is short.
 *
 * A binding to libc, above inputs.c and, through it, above the device. */
#include "rdevice/inputs.h"
#include "rdevice/next.h"
#include "rdevice/real.h"
#include "rdevice/shift.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#define SEED_BYTES 16      /* of AT_RANDOM */
#define RANDOM_PIECE 4096u /* bytes of one input: more than one call may take are several */
#define US_IN_S 1000000

/* A null pointer, where the header says there is none; the kernel's code tells it too. */
static inline bool is_null(const void *p)
{
    __asm__("" : "+r"(p));
    return !p;
}

/* --- clocks: none goes back where a rank goes on on another host ------------------------------ */

/* The thread's own time is shifted for the thread that is recorded alone. */
__attribute__((noinline, cold)) static void shift_time(clockid_t id, struct timespec *t)
{
    enum shift_clock clock = shift_clock_of(id);

    if (clock != SHIFT_NONE && (clock != SHIFT_THREAD || inputs_are_mine()))
        *t = real_of_ns(shift_apply(clock, real_ns_in(t)));
}

PUBLIC int clock_gettime(clockid_t id, struct timespec *t)
{
    uint8_t kind = (unsigned)id < READING_CLOCK_IDS ? (uint8_t)(READING_CLOCK + id)
                                                    : (uint8_t)READING_CLOCK_OTHER;
    struct input input = {.kind = kind};
    enum input_answer answer = inputs_ask(&input, CALLER);

    if (answer == INPUT_FAILED)
        return -1;
    if (answer == INPUT_GIVEN) {
        *t = real_of_ns(input.number);
        shift_told(shift_clock_of(id), input.number);
        return 0;
    }
    if (real_libc.clock_gettime(id, t) < 0)
        return (int)inputs_finish(&input, answer, -1);
    if (__builtin_expect(shift_on, 0))
        shift_time(id, t);
    if (answer == INPUT_RECORD) {
        input.number = inputs_in_steps(kind, real_ns_in(t));
        inputs_record(&input);
        *t = real_of_ns(input.number);
    }
    return 0;
}

static int real_gettimeofday(struct input *input, struct timeval *t, void *zone)
{
    int result = real_libc.gettimeofday(t, zone);

    if (result == 0 && !is_null(t))
        input->number = (int64_t)t->tv_sec * US_IN_S + t->tv_usec;
    return result;
}

static int given_time(int64_t us, struct timeval *t, void *zone)
{
    if (zone)
        real_libc.gettimeofday(t, zone); /* the zone is no input */
    *t = (struct timeval){.tv_sec = us / US_IN_S, .tv_usec = us % US_IN_S};
    return 0;
}

PUBLIC int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct input input = {.kind = READING_GETTIMEOFDAY};

    if (is_null(t))
        return real_libc.gettimeofday(t, zone);
    return INPUT_TOLD(&input, CALLER, given_time(input.number, t, zone),
                      real_gettimeofday(&input, t, zone));
}
ALIAS(__gettimeofday, gettimeofday);

PUBLIC time_t time(time_t *t)
{
    struct input input = {.kind = READING_TIME};
    time_t now = INPUT_TOLD(&input, CALLER, input.number, input.number = real_libc.time(NULL));

    if (t)
        *t = now;
    return now;
}

/* Of nanoseconds: what is rounded before it is shifted may go back by one. */
static clock_t shifted_clock(void)
{
    struct timespec t = {0};

    if (!shift_on)
        return real_libc.clock();
    real_libc.clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    shift_time(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * CLOCKS_PER_SEC + t.tv_nsec / NS_IN_US;
}

PUBLIC clock_t clock(void)
{
    struct input input = {.kind = READING_CPU};

    return INPUT_TOLD(&input, CALLER,
                      (shift_told(SHIFT_PROCESS, input.number * NS_IN_US), input.number),
                      input.number = shifted_clock());
}

PUBLIC int timespec_get(struct timespec *t, int base)
{
    struct input input = {.kind = READING_TIMESPEC_GET};
    enum input_answer answer = base == TIME_UTC ? inputs_ask(&input, CALLER) : INPUT_REAL;

    if (answer == INPUT_FAILED)
        return 0;
    if (answer == INPUT_GIVEN) {
        *t = real_of_ns(input.number);
        return base;
    }
    base = NEXT(timespec_get)(t, base);
    input.number = real_ns_in(t);
    return (int)inputs_finish(&input, answer, base);
}

static int64_t ns_in_tick(void)
{
    return NS_IN_S / sysconf(_SC_CLK_TCK);
}

static void shift_usage(enum shift_clock clock, struct timeval *t)
{
    int64_t ns = shift_apply(clock, real_ns_of(t));

    *t = (struct timeval){.tv_sec = ns / NS_IN_S, .tv_usec = ns % NS_IN_S / NS_IN_US};
}

/* That of a child is its own. */
static int shifted_usage(__rusage_who_t who, struct rusage *usage)
{
    int result = real_libc.getrusage(who, usage);

    if (result == 0 && shift_on && who == RUSAGE_SELF) {
        shift_usage(SHIFT_USER, &usage->ru_utime);
        shift_usage(SHIFT_SYSTEM, &usage->ru_stime);
    }
    return result;
}

static clock_t shifted_times(struct tms *t)
{
    struct rusage usage = {0};
    clock_t result = real_libc.times(t);

    if (!shift_on || result == (clock_t)-1)
        return result;
    shifted_usage(RUSAGE_SELF, &usage); /* of what is finer than ticks */
    t->tms_utime = real_ns_of(&usage.ru_utime) / ns_in_tick();
    t->tms_stime = real_ns_of(&usage.ru_stime) / ns_in_tick();
    return shift_apply(SHIFT_TICKS, result);
}

static clock_t given_times(clock_t result, const struct tms *t)
{
    shift_told(SHIFT_TICKS, result);
    shift_told(SHIFT_USER, t->tms_utime * ns_in_tick());
    shift_told(SHIFT_SYSTEM, t->tms_stime * ns_in_tick());
    return result;
}

PUBLIC clock_t times(struct tms *t)
{
    struct {
        clock_t result;
        struct tms t;
    } told = {0};
    struct input input = {.kind = READING_TIMES, .bytes = &told, .size = sizeof(told)};
    clock_t result = INPUT_TOLD(&input, CALLER, given_times(told.result, &told.t),
                                told.result = shifted_times(&told.t));

    if (result != (clock_t)-1 && !is_null(t))
        *t = told.t;
    return result;
}

static int given_usage(__rusage_who_t who, const struct rusage *usage)
{
    if (who == RUSAGE_SELF) {
        shift_told(SHIFT_USER, real_ns_of(&usage->ru_utime));
        shift_told(SHIFT_SYSTEM, real_ns_of(&usage->ru_stime));
    }
    return 0;
}

PUBLIC int getrusage(__rusage_who_t who, struct rusage *usage)
{
    struct input input = {.kind = READING_RUSAGE, .bytes = usage, .size = sizeof(*usage)};

    return INPUT_TOLD(&input, CALLER, given_usage(who, usage), shifted_usage(who, usage));
}

/* --- randomness ------------------------------------------------------------------------------- */

/* The bytes that the kernel gives each process become those of the first execution. */
__attribute__((constructor)) static void repeat_seed(void)
{
    struct input input = {
        .kind = READING_RANDOM, .bytes = (void *)getauxval(AT_RANDOM), .size = SEED_BYTES};

    if (input.bytes && inputs_ask(&input, 0) == INPUT_RECORD)
        inputs_record(&input);
}

/* The kernel may give less than was asked for: the input has what it gave. */
static ssize_t real_random(struct input *input, unsigned flags)
{
    ssize_t n = NEXT(getrandom)(input->bytes, input->size, flags);

    input->size = n < 0 ? 0 : (size_t)n;
    return n;
}

static ssize_t random_piece(void *to, size_t size, unsigned flags, uintptr_t caller)
{
    struct input input = {.kind = READING_RANDOM, .bytes = to, .size = size};

    return INPUT_TOLD(&input, caller, (ssize_t)input.size, real_random(&input, flags));
}

PUBLIC ssize_t getrandom(void *to, size_t size, unsigned flags)
{
    size_t used = 0;

    do {
        size_t piece = size - used < RANDOM_PIECE ? size - used : RANDOM_PIECE;
        ssize_t n = random_piece((uint8_t *)to + used, piece, flags, CALLER);

        if (n < 0)
            return used ? (ssize_t)used : -1;
        used += (size_t)n;
        if ((size_t)n < piece)
            break;
    } while (used < size);
    return (ssize_t)used;
}

PUBLIC int getentropy(void *to, size_t size)
{
    struct input input = {.kind = READING_RANDOM, .bytes = to, .size = size};

    if (size > 256)
        return NEXT(getentropy)(to, size);
    return INPUT_TOLD(&input, CALLER, 0, NEXT(getentropy)(to, size));
}

static void random_bytes(void *to, size_t size, uintptr_t caller)
{
    for (size_t used = 0; used < size;) {
        size_t piece = size - used < RANDOM_PIECE ? size - used : RANDOM_PIECE;
        struct input input = {.kind = READING_RANDOM, .bytes = (uint8_t *)to + used, .size = piece};
        enum input_answer answer = inputs_ask(&input, caller);

        if (answer != INPUT_GIVEN)
            NEXT(arc4random_buf)(input.bytes, piece);
        if (answer == INPUT_RECORD)
            inputs_record(&input);
        used += piece;
    }
}

PUBLIC void arc4random_buf(void *to, size_t size)
{
    random_bytes(to, size, CALLER);
}

PUBLIC uint32_t arc4random(void)
{
    uint32_t value;

    random_bytes(&value, sizeof(value), CALLER);
    return value;
}

PUBLIC uint32_t arc4random_uniform(uint32_t bound)
{
    uint32_t value;
    struct input input = {.kind = READING_RANDOM, .bytes = &value, .size = sizeof(value)};
    enum input_answer answer = inputs_ask(&input, CALLER);

    if (answer != INPUT_GIVEN)
        value = NEXT(arc4random_uniform)(bound);
    if (answer == INPUT_RECORD)
        inputs_record(&input);
    return value;
}
