/* Clocks that must not go backwards in a rank's life: where an incarnation is on another host, or
 * after a reboot, each is shifted. What the program is told is the machine's clock and the shift;
 * a moment until which it waits is shifted back. Pure: nothing here asks a clock. Any thread. */
#ifndef RDEVICE_SHIFT_H
#define RDEVICE_SHIFT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* In ns, but for SHIFT_TICKS. */
enum shift_clock {
    SHIFT_MONOTONIC, /* also COARSE */
    SHIFT_RAW,
    SHIFT_BOOT,
    SHIFT_PROCESS, /* the processor's time of the process */
    SHIFT_THREAD,  /* ... of the thread in which the program began */
    SHIFT_USER,    /* ... as getrusage() and times() say it */
    SHIFT_SYSTEM,
    SHIFT_TICKS, /* what times() returns */
    SHIFT_CLOCKS,
    SHIFT_NONE = SHIFT_CLOCKS,
};

/* False: no clock is shifted, and none was told of an earlier incarnation. */
extern bool shift_on;

enum shift_clock shift_clock_of(clockid_t id);

/* The program was told so by what an earlier incarnation recorded. From now on no one is told less.
 */
void shift_told(enum shift_clock clock, int64_t value);

/* What the program is to be told when the machine says `real`. */
int64_t shift_apply(enum shift_clock clock, int64_t real);

/* What the machine's clock, which says `real` now, will say when the program's says `moment`. Never
 * negative. */
int64_t shift_back(enum shift_clock clock, int64_t moment, int64_t real);

/* What the program is told at the moment of an image. */
void shift_note(enum shift_clock clock, int64_t told);

/* The process goes on from that image, when the machine's clock says `real`. `here`: on the machine
 * of the image, whose clock goes on, if it was not set back; else the program's goes on where it
 * was, `passed` later. Returns by how much its moments come earlier on the machine's clock now. */
int64_t shift_move(enum shift_clock clock, int64_t real, int64_t passed, bool here);

#endif
