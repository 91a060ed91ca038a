/* Moments of the program's clocks, in calls that set timers: libc_host.c records their answers. Any
 * thread. */
#ifndef RDEVICE_LIBC_WAITS_H
#define RDEVICE_LIBC_WAITS_H

#include <time.h>

/* What the machine is to be given for `to`: that itself, or `room`, which is filled. */
const struct itimerspec *libc_waits_timer(timer_t timer, int flags, const struct itimerspec *to,
                                          struct itimerspec *room);
const struct itimerspec *libc_waits_timerfd(int fd, int flags, const struct itimerspec *to,
                                            struct itimerspec *room);

#endif
