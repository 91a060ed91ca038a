#include "rdevice/shift.h"

static struct {
    int64_t by;    /* the program's clock is the machine's and this */
    int64_t least; /* that the program is to be told */
    int64_t noted;
} shifts[SHIFT_CLOCKS];

bool shift_on;

enum shift_clock shift_clock_of(clockid_t id)
{
    switch (id) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
        return SHIFT_MONOTONIC;
    case CLOCK_MONOTONIC_RAW:
        return SHIFT_RAW;
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
        return SHIFT_BOOT;
    case CLOCK_PROCESS_CPUTIME_ID:
        return SHIFT_PROCESS;
    case CLOCK_THREAD_CPUTIME_ID:
        return SHIFT_THREAD;
    default:
        return SHIFT_NONE;
    }
}

/* Several threads may raise it at once. */
static void raise_to(int64_t *value, int64_t least)
{
    int64_t now = __atomic_load_n(value, __ATOMIC_RELAXED);

    while (now < least && !__atomic_compare_exchange_n(value, &now, least, false, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        ;
}

void shift_told(enum shift_clock clock, int64_t value)
{
    if (clock == SHIFT_NONE)
        return;
    raise_to(&shifts[clock].least, value);
    shift_on = true;
}

int64_t shift_apply(enum shift_clock clock, int64_t real)
{
    if (clock == SHIFT_NONE)
        return real;
    raise_to(&shifts[clock].by, __atomic_load_n(&shifts[clock].least, __ATOMIC_RELAXED) - real);
    return real + __atomic_load_n(&shifts[clock].by, __ATOMIC_RELAXED);
}

int64_t shift_back(enum shift_clock clock, int64_t moment, int64_t real)
{
    int64_t back = moment - (shift_apply(clock, real) - real);

    return back < 0 ? 0 : back;
}

void shift_note(enum shift_clock clock, int64_t told)
{
    shifts[clock].noted = told;
}

int64_t shift_move(enum shift_clock clock, int64_t real, int64_t passed, bool here)
{
    int64_t before = shifts[clock].by, told = shifts[clock].noted;

    shift_on = true;
    if (!here || real + before < told)
        shifts[clock].by = told + passed - real;
    return shifts[clock].by - before;
}
