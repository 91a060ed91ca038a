/* Moments until which the program waits: on the machine's clock while a function of libc waits,
 * also where the thread goes on from an image on another machine meanwhile. Any thread. */
#ifndef RDEVICE_UNTIL_H
#define RDEVICE_UNTIL_H

#include "rdevice/shift.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* On the stack of who waits. */
struct until {
    uintptr_t first; /* this and `last`: who was left by a jump is not there any more */
    enum shift_clock clock;
    struct timespec at;
    struct until *before;
    uintptr_t last;
};

/* Returns the moment for libc: `moment` itself where it is of a clock that is not shifted, or is
 * none. until_end() follows, also then. */
const struct timespec *until_begin(struct until *until, clockid_t clock,
                                   const struct timespec *moment);
void until_end(struct until *until);

/* The same for a function that does not wait. Returns `room` or `moment`. */
const struct timespec *until_on_machine(clockid_t clock, const struct timespec *moment,
                                        struct timespec *room);

/* The moment of an image: notes what clocks say, for until_go_on() in the process that goes on from
 * it, where the other threads stand still. `first`: the calling thread is that in which the program
 * began, whose own time is shifted. */
void until_note(bool first);
void until_go_on(bool first);

#endif
