#include "rdevice/until.h"

#include "rdevice/image/image.h"
#include "rdevice/real.h"

#include <stdbool.h>
#include <stddef.h>

#define UNTIL_S_MAX 1000000000 /* seconds: later than that is never */
#define UNTIL_NESTED_MAX                                                                           \
    64u /* waits of a thread, each in a handler that interrupts another one                        \
         */
#define MARK 0x3f84d5b5b5470917u

static _Thread_local struct until *newest __attribute__((tls_model("initial-exec")));
static int64_t noted_ns; /* since 1970 */
static volatile uint32_t moves;

static const struct {
    enum shift_clock clock;
    clockid_t id;
} clocks[] = {
    {SHIFT_MONOTONIC, CLOCK_MONOTONIC},
    {SHIFT_RAW, CLOCK_MONOTONIC_RAW},
    {SHIFT_BOOT, CLOCK_BOOTTIME},
    {SHIFT_PROCESS, CLOCK_PROCESS_CPUTIME_ID},
    {SHIFT_THREAD, CLOCK_THREAD_CPUTIME_ID},
};
#define CLOCKS (sizeof(clocks) / sizeof(*clocks))

static int64_t real_ns(clockid_t id)
{
    struct timespec now = {0};

    real_libc.clock_gettime(id, &now);
    return real_ns_in(&now);
}

/* --- waits ------------------------------------------------------------------------------------ */

const struct timespec *until_on_machine(clockid_t id, const struct timespec *moment,
                                        struct timespec *room)
{
    enum shift_clock clock = shift_clock_of(id);
    int64_t at;

    if (!shift_on || clock == SHIFT_NONE || clock == SHIFT_THREAD || !moment ||
        moment->tv_sec < 0 || moment->tv_sec > UNTIL_S_MAX || moment->tv_nsec < 0 ||
        moment->tv_nsec >= NS_IN_S)
        return moment;
    at = shift_back(clock, real_ns_in(moment), real_ns(id));
    *room = real_of_ns(at);
    return room;
}

/* A copy, in any case: the program may look at its own once more. */
const struct timespec *until_begin(struct until *until, clockid_t id, const struct timespec *moment)
{
    uint32_t seen;

    *until = (struct until){.clock = SHIFT_NONE, .before = newest};
    newest = until;
    if (!moment)
        return NULL;
    if (moment->tv_sec >= 0 && moment->tv_sec <= UNTIL_S_MAX)
        until->clock = shift_clock_of(id);
    do {
        seen = moves;
        if (until_on_machine(id, moment, &until->at) == moment)
            until->at = *moment;
        until->first = until->last = MARK ^ (uintptr_t)until;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } while (seen != moves); /* another machine since we asked the clock of this one */
    return &until->at;
}

void until_end(struct until *until)
{
    until->first = until->last = 0;
    newest = until->before;
}

/* --- images ----------------------------------------------------------------------------------- */

static void for_each(bool first, void (*each)(enum shift_clock clock, int64_t real))
{
    struct rusage usage = {0};
    struct tms spent;

    for (size_t i = 0; i < CLOCKS; i++)
        if (clocks[i].clock != SHIFT_THREAD || first)
            each(clocks[i].clock, real_ns(clocks[i].id));
    real_libc.getrusage(RUSAGE_SELF, &usage);
    each(SHIFT_USER, real_ns_of(&usage.ru_utime));
    each(SHIFT_SYSTEM, real_ns_of(&usage.ru_stime));
    each(SHIFT_TICKS, real_libc.times(&spent));
}

static void note(enum shift_clock clock, int64_t real)
{
    shift_note(clock, shift_apply(clock, real));
}

void until_note(bool first)
{
    noted_ns = real_ns(CLOCK_REALTIME);
    for_each(first, note);
}

static struct {
    bool here;
    int64_t passed_ns;
    int64_t earlier[SHIFT_CLOCKS + 1];
} moving;

static bool counts_on(enum shift_clock clock)
{
    return clock == SHIFT_MONOTONIC || clock == SHIFT_RAW || clock == SHIFT_BOOT;
}

static void move(enum shift_clock clock, int64_t real)
{
    bool goes_on = counts_on(clock) || clock == SHIFT_TICKS;

    moving.earlier[clock] =
        shift_move(clock, real, counts_on(clock) ? moving.passed_ns : 0, moving.here || !goes_on);
}

/* Of a thread that stands still, perhaps in a wait. */
static void move_waits(struct until *until)
{
    for (unsigned i = 0; until && i < UNTIL_NESTED_MAX; i++, until = until->before) {
        uintptr_t mark = MARK ^ (uintptr_t)until;
        int64_t at;

        if (until->first != mark || until->last != mark)
            return;
        at = real_ns_in(&until->at) - moving.earlier[until->clock];
        if (moving.earlier[until->clock] && at >= 0)
            until->at = real_of_ns(at);
    }
}

void until_go_on(bool first)
{
    struct until **its;
    int64_t passed_ns = real_ns(CLOCK_REALTIME) - noted_ns;

    moves++;
    moving.here = image_is_here();
    moving.passed_ns = passed_ns > 0 ? passed_ns : 0;
    for_each(first, move);
    for (uint32_t i = 0; (its = image_thread_local(i, &newest)); i++)
        move_waits(*its);
}
