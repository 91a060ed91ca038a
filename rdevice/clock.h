/* Readings of clocks, of randomness and of the machine as determinants: what libc told the
 * program's main thread is recorded, and told again to a later incarnation (docs/protocol.md,
 * "Readings"). This is the state of it, for the device below and for the functions that answer in
 * place of libc above; it sends nothing, and says what is to be sent and what it needs.
 *
 * One thread's calls are recorded: that in which the program began. All functions here are for that
 * thread alone, but for clock_is_mine(), clock_attach(false) and clock_ask(). */
#ifndef RDEVICE_CLOCK_H
#define RDEVICE_CLOCK_H

#include "common/readings.h"
#include "rdevice/frames.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- for the device --- */

/* The calling thread is the one whose readings are recorded. A device that is opened, or called, by
 * another one has a rank that cannot be restarted. */
bool clock_is_mine(void);

/* What libc is asked for from now on comes from the device itself and is no reading, until
 * clock_attach() or clock_go_on(). Opening the device begins with it (libsodium's random numbers),
 * and so does closing it: after it there is no relay to log anything. Returns whether that was so
 * before. */
bool clock_pause(void);
void clock_go_on(void);

/* What was read before MPI_Init: recorded, or repeated of an earlier incarnation. `overflow`: there
 * was more than CW_EARLY_MAX bytes, so that it is not whole. */
const uint8_t *clock_early(size_t *size, bool *overflow);

/* After WELCOME: from now on readings go to the stream. log = false: recording is off for good; may
 * be called at any time. Ends the process when what was read before MPI_Init differs from what an
 * earlier incarnation read. */
void clock_attach(bool log);

/* The process goes on from an image: another process, and with `log` a later incarnation, whose
 * readings after that moment are repeated. What was pending then was sent. */
void clock_go_on_from_image(bool log);

/* The readings not yet at the relay. The device sends them as one READINGS frame (never more than
 * CW_READINGS_MAX - READINGS_HEAD bytes) before its next act, and says so. `size` 0: none. */
extern struct readings_writer clock_written; /* for clock_pending() alone */
static inline const uint8_t *clock_pending(size_t *size)
{
    *size = clock_written.used;
    return clock_written.bytes;
}
void clock_flushed(void);

/* The readings of one frame of the log: answers come from it (a copy is made) until it is empty. */
void clock_repeat(const uint8_t *bytes, size_t size);

/* Bytes of that chunk that nothing has asked for yet. Before an act of a rank that repeats it is 0,
 * or the re-execution diverges. */
size_t clock_unrepeated(void);

/* --- for the functions of libc: libc_ask.c --- */

enum clock_answer {
    CLOCK_REAL,   /* the real function answers, and that is all */
    CLOCK_RECORD, /* the real function answers; then the answer is recorded */
    CLOCK_GIVEN,  /* `reading` holds the answer */
    CLOCK_FAILED, /* the answer is failure, with errno in `reading->number` */
    CLOCK_MORE,   /* the log's next readings are needed; then clock_ask_again() */
};

/* A number, or, where `bytes` is set, `size` bytes (before the answer: the room there is). */
struct clock_reading {
    uint8_t kind;
    int64_t number;
    void *bytes;
    size_t size;
};

/* The thread whose calls are recorded without another question; 0: nobody's. */
extern uintptr_t clock_recorder;

/* `caller`: where the function of libc returns to. Any thread. */
enum clock_answer clock_ask(struct clock_reading *reading, uintptr_t caller);

/* After CLOCK_MORE, whose answer this is. `more`: clock_repeat() was called; else there is no more
 * to repeat. */
enum clock_answer clock_ask_again(struct clock_reading *reading, bool more);

/* Of an answer of clock_gettime(), in ns, that is to be recorded: what the program is to be told.
 * A loop that waits on a clock, and does nothing else that is seen, is told the same again until a
 * step has passed: it is recorded as a count. All else is told what the clock says. */
int64_t clock_in_steps(uint8_t kind, int64_t now);

/* Records an answer. False: there is no room. Then, where clock_is_full() says true, what is
 * pending is to be sent, and clock_record_rest() and clock_recorded() follow. */
bool clock_record(const struct clock_reading *reading);
bool clock_is_full(void);
void clock_record_rest(const struct clock_reading *reading);
void clock_recorded(void);

/* Around the use of the device for CLOCK_MORE and clock_is_full(): it may be used, for the program
 * asks and so is outside of it; neither a signal's handler nor a second thread comes in meanwhile.
 * Another thread may have ended the recording before. */
void clock_device_enter(sigset_t *mask);
void clock_device_leave(const sigset_t *mask);
bool clock_is_recording(void);
/* Whether what is recorded goes to the relay, and not yet, or no more, to the early readings. */
bool clock_is_streaming(void);

/* --- for handlers.c --- */

/* What a handler of a signal asks is neither recorded nor repeated. begins() and ends() stand
 * around each call of a handler, in the thread that it interrupts: `top` is an address in the stack
 * above all that the handler uses, `low` where that stack ends (0: unknown), `interrupted` the
 * stack pointer of what it interrupts. ends() also follows where an exception leaves the handler:
 * `returned` says that none did. */
struct clock_handler {
    bool recorded_thread;
    bool returned;
    struct frames_mark mark;
};
void clock_handler_begins(struct clock_handler *handler, uintptr_t top, uintptr_t low,
                          uintptr_t interrupted);
void clock_handler_ends(struct clock_handler *handler);

/* The calling thread is about to go on at the stack pointer `sp`: a jump, or a change of context
 * from `from` (NULL: it is not kept) to `to`. */
void clock_goes(const void *from, const void *to, uintptr_t sp);

#endif
