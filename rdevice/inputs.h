/* The inputs of the program that no message brings: what clocks, random numbers, the machine, names
 * of files and standard input told its main thread. Live, the source is asked and its answer is
 * appended to the log; a rank that repeats itself is told the next of the log, which has to be of
 * the same kind (docs/protocol.md, "Readings").
 *
 * A function in place of libc's asks inputs_ask() first, and does as it says. A full buffer is
 * sent, and a log is read on, by the device, which stands above and says how.
 *
 * One thread's inputs are recorded: those of the thread in which the program began. All functions
 * here are for that thread alone, but for inputs_are_mine(), inputs_attach(false), and those for
 * functions of libc. */
#ifndef RDEVICE_INPUTS_H
#define RDEVICE_INPUTS_H

#include "common/readings.h"
#include "rdevice/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- for functions of libc --- */

enum input_answer {
    INPUT_REAL,   /* the real function answers, and that is all */
    INPUT_RECORD, /* the real one answers; then inputs_record(), or inputs_record_failure() */
    INPUT_GIVEN,  /* `input` holds the answer */
    INPUT_FAILED, /* the answer is failure; errno is set */
};

/* A number, or, where `bytes` is set, `size` bytes (before the answer: the room there is). */
struct input {
    uint8_t kind;
    int64_t number;
    void *bytes;
    size_t size;
};

/* The thread whose inputs are recorded without another question; 0: nobody's. */
extern uintptr_t inputs_recorder;

enum input_answer inputs_ask_closely(struct input *input, uintptr_t caller);

/* `caller`: where the function of libc returns to. Any thread. */
static inline enum input_answer inputs_ask(struct input *input, uintptr_t caller)
{
    if (__builtin_expect(inputs_recorder == (uintptr_t)__builtin_thread_pointer(), 1))
        return INPUT_RECORD;
    return inputs_ask_closely(input, caller);
}

/* errno stays. A failure is recorded by errno. */
void inputs_record(const struct input *input);
void inputs_record_failure(void);

/* After INPUT_RECORD of a real function that has answered with `result`, below 0 where it failed;
 * else nothing. Returns `result`. */
static inline long inputs_finish(const struct input *input, enum input_answer answer, long result)
{
    if (answer == INPUT_RECORD && result >= 0)
        inputs_record(input);
    else if (answer == INPUT_RECORD)
        inputs_record_failure();
    return result;
}

/* What a function in place of libc's returns: `given`, where the log has the answer, -1, where that
 * is failure; else `real`, what the real one returns, which is recorded with what it puts into
 * `input`. */
#define INPUT_TOLD(input, caller, given, real)                                                     \
    ({                                                                                             \
        enum input_answer input_answer = inputs_ask(input, caller);                                \
                                                                                                   \
        input_answer == INPUT_FAILED  ? -1                                                         \
        : input_answer == INPUT_GIVEN ? (given)                                                    \
                                      : inputs_finish(input, input_answer, real);                  \
    })

/* What is recorded goes to the relay now: for what has an effect outside of the process. */
void inputs_send(void);

/* Of an answer of clock_gettime(), in ns, that is to be recorded: what the program is to be told.
 * A loop that waits on a clock, and does nothing else that is seen, is told the same again until a
 * step has passed: it is recorded as a count. All else is told what the clock says. */
int64_t inputs_in_steps(uint8_t kind, int64_t now);

/* --- for the device --- */

/* The calling thread is the one whose inputs are recorded. A device that is opened, or called, by
 * another one has a rank that cannot be restarted. */
bool inputs_are_mine(void);

/* What libc is asked for from now on comes from the device itself and is no input, until it is set
 * to false, or inputs_attach(). Opening the device begins with it (libsodium's random numbers), and
 * so does closing it: after it there is no relay to log anything. Returns what was set before. */
bool inputs_pause(bool paused);

/* What was asked before MPI_Init: recorded, or repeated of an earlier incarnation. `overflow`:
 * there was more than CW_EARLY_MAX bytes, so that it is not whole. */
const uint8_t *inputs_early(size_t *size, bool *overflow);

/* What it does for the inputs of the program, which is outside of it then; no handler of a signal
 * and no other thread comes in meanwhile. */
struct inputs_log {
    bool (*read_on)(void); /* inputs_repeat() follows from it, or false: all is repeated */
    void (*used_up)(void); /* what inputs_repeat() was given is */
    void (*flush)(void);   /* sends inputs_written, which is empty then */
    void (*diverged)(const char *what); /* the program does what it did not: ends the process */
};

/* After WELCOME: from now on inputs go to the stream. log = NULL: recording is off for good; may be
 * called at any time. Ends the process when what was asked before MPI_Init differs from what an
 * earlier incarnation asked. */
void inputs_attach(const struct inputs_log *log);

/* The process goes on from an image: another process, and with `log` a later incarnation, whose
 * inputs after that moment are repeated. What was pending then was sent. */
void inputs_go_on_from_image(bool log);

/* Those not yet at the relay. The device sends them as one READINGS frame (never more than
 * CW_READINGS_MAX - READINGS_HEAD bytes) before its next operation, and sets `used` to 0. */
extern struct readings_writer inputs_written;

/* The readings of one frame of the log: answers come from a copy, which is returned, until
 * it is empty. */
const uint8_t *inputs_repeat(const uint8_t *bytes, size_t size);

/* Bytes of that chunk that nothing has asked for yet. Before an operation of a rank that repeats it
 * is 0, or the re-execution diverges. */
size_t inputs_unrepeated(void);

/* --- for handlers.c --- */

/* What a handler of a signal asks is neither recorded nor repeated. begins() and ends() stand
 * around each call of a handler, in the thread that it interrupts: `top` is an address in the stack
 * above all that the handler uses, `low` where that stack ends (0: unknown), `interrupted` the
 * stack pointer of what it interrupts. ends() also follows where an exception leaves the handler:
 * `returned` says that none did. */
struct inputs_handler {
    bool recorded_thread;
    bool returned;
    struct frames_mark mark;
};
void inputs_handler_begins(struct inputs_handler *handler, uintptr_t top, uintptr_t low,
                           uintptr_t interrupted);
void inputs_handler_ends(struct inputs_handler *handler);

/* The calling thread is about to go on at the stack pointer `sp`: a jump, or a change of context
 * from `from` (NULL: it is not kept) to `to`. */
void inputs_go(const void *from, const void *to, uintptr_t sp);

#endif
