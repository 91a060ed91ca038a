/* The functions of libc that wait until a moment of a clock, but for those of locks (lock.c), and
 * timers that are set to one: what clocks told the program may be another time on this machine
 * (shift.h). What was left of a timer is recorded.
 *
 * A binding to libc, above until.c and inputs.c. */
#include "rdevice/image/system.h"
#include "rdevice/inputs.h"
#include "rdevice/next.h"
#include "rdevice/until.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#define TIMERS_MAX 64u /* whose clocks are known */
#define INFO_BYTES 8192u
#define NAME_BYTES 48u

/* --- waits ------------------------------------------------------------------------------------ */

PUBLIC int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *left)
{
    struct until until;
    int error;

    if (!(flags & TIMER_ABSTIME))
        return NEXT(clock_nanosleep)(clock, flags, time, left);
    time = until_begin(&until, clock, time);
    error = NEXT(clock_nanosleep)(clock, flags, time, left);
    until_end(&until);
    return error;
}

#define WAIT(name, parameters, arguments)                                                          \
    PUBLIC int name parameters                                                                     \
    {                                                                                              \
        struct until until;                                                                        \
        int result;                                                                                \
                                                                                                   \
        moment = until_begin(&until, clock, moment);                                               \
        result = NEXT(name) arguments;                                                             \
        until_end(&until);                                                                         \
        return result;                                                                             \
    }

WAIT(sem_clockwait,
     (sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict moment),
     (semaphore, clock, moment))
WAIT(pthread_clockjoin_np,
     (pthread_t thread, void **result_of, clockid_t clock, const struct timespec *moment),
     (thread, result_of, clock, moment))

/* --- timers ----------------------------------------------------------------------------------- */

static struct {
    timer_t timer;
    clockid_t clock;
    bool known;
} timers[TIMERS_MAX];
static pthread_mutex_t timers_use = PTHREAD_MUTEX_INITIALIZER;

static void keep(timer_t timer, clockid_t clock)
{
    pthread_mutex_lock(&timers_use);
    for (unsigned i = 0; i < TIMERS_MAX; i++)
        if (!timers[i].known) {
            timers[i].timer = timer;
            timers[i].clock = clock;
            timers[i].known = true;
            break;
        }
    pthread_mutex_unlock(&timers_use);
}

/* CLOCK_REALTIME, which is never shifted, of one that is not known. */
static clockid_t clock_of(timer_t timer, bool forget)
{
    clockid_t clock = CLOCK_REALTIME;

    pthread_mutex_lock(&timers_use);
    for (unsigned i = 0; i < TIMERS_MAX; i++)
        if (timers[i].known && timers[i].timer == timer) {
            clock = timers[i].clock;
            timers[i].known = !forget;
            break;
        }
    pthread_mutex_unlock(&timers_use);
    return clock;
}

PUBLIC int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer)
{
    int result = NEXT(timer_create)(clock, event, timer);

    if (result == 0 && shift_clock_of(clock) != SHIFT_NONE)
        keep(*timer, clock);
    return result;
}

PUBLIC int timer_delete(timer_t timer)
{
    clock_of(timer, true);
    return NEXT(timer_delete)(timer);
}

static const struct itimerspec *on_machine(clockid_t clock, const struct itimerspec *to,
                                           struct itimerspec *room)
{
    if (until_on_machine(clock, &to->it_value, &room->it_value) == &to->it_value)
        return to;
    room->it_interval = to->it_interval;
    if (room->it_value.tv_sec == 0 && room->it_value.tv_nsec == 0)
        room->it_value.tv_nsec = 1; /* 0 would be no time at all */
    return room;
}

static bool is_moment(int flags, const struct itimerspec *to)
{
    return shift_on && (flags & TIMER_ABSTIME) && to &&
           (to->it_value.tv_sec != 0 || to->it_value.tv_nsec != 0);
}

/* What the machine is to be given for `to`: that itself, or `room`, which is filled. */
static const struct itimerspec *of_timer(timer_t timer, int flags, const struct itimerspec *to,
                                         struct itimerspec *room)
{
    return is_moment(flags, to) ? on_machine(clock_of(timer, false), to, room) : to;
}

static const struct itimerspec *of_timerfd(int fd, int flags, const struct itimerspec *to,
                                           struct itimerspec *room)
{
    char name[NAME_BYTES], text[INFO_BYTES];
    const char *clock;

    if (!is_moment(flags, to))
        return to;
    snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
    clock = system_read_file(name, text, sizeof(text)) > 0 ? strstr(text, "clockid:") : NULL;
    return clock ? on_machine(atoi(clock + 8), to, room) : to;
}

/* What was left of a timer that is set anew, in any incarnation. */
#define SET_ANEW(name, parameters, arguments, old)                                                 \
    PUBLIC int name parameters                                                                     \
    {                                                                                              \
        int result = NEXT(name) arguments;                                                         \
        struct input input = {.kind = READING_TIMER, .bytes = old, .size = sizeof(*old)};          \
                                                                                                   \
        if (old && result == 0 && inputs_ask(&input, CALLER) == INPUT_RECORD)                      \
            inputs_record(&input);                                                                 \
        return result;                                                                             \
    }

SET_ANEW(setitimer,
         (__itimer_which_t which, const struct itimerval *restrict to,
          struct itimerval *restrict old),
         (which, to, old), old)
SET_ANEW(timer_settime,
         (timer_t timer, int flags, const struct itimerspec *restrict to,
          struct itimerspec *restrict old),
         (timer, flags, of_timer(timer, flags, to, &(struct itimerspec){0}), old), old)
SET_ANEW(timerfd_settime, (int fd, int flags, const struct itimerspec *to, struct itimerspec *old),
         (fd, flags, of_timerfd(fd, flags, to, &(struct itimerspec){0}), old), old)
