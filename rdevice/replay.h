/* A restarted rank repeats what its predecessors did: the relay has streamed their determinants and
 * events, in the order of their happening, and knows how many acts they made. Until all is
 * repeated, events are taken at the poll clocks of the first time, every other poll finds nothing,
 * clocks say what they said, and acts are not made again ([MPICH-V] definition 2, silent
 * re-execution). Past that the rank is live.
 *
 * Used by the thread that calls MPI. A re-execution that does something else ends the process. */
#ifndef RDEVICE_REPLAY_H
#define RDEVICE_REPLAY_H

#include "common/frame.h"

#include <stdbool.h>
#include <stdint.h>

/* What the log holds next. */
enum replay_item { REPLAY_UNKNOWN, REPLAY_TAKEN, REPLAY_ANSWER, REPLAY_READINGS, REPLAY_END };

struct replay {
    bool active;
    enum replay_item next;
    struct cw_taken taken;   /* when that is next */
    struct cw_probed answer; /* likewise */
    uint64_t acts;           /* to be repeated */
    uint64_t acts_clock;     /* poll clock of the last of them */
    uint64_t missing;        /* bytes of the last one, a message, that the relay lacks */
};

/* After WELCOME. */
void replay_begin(const struct cw_welcome *welcome);

/* The program makes an act (device.acts counts it already): true when it was made before. */
bool replay_act(void);

/* Likewise of a message: true when it was sent before, with *has the bytes that the relay has. */
bool replay_send(const struct cw_send *send, uint64_t *has);

/* A call for progress at the poll clock of now: true when events happened, of the log. */
bool replay_poll(void);

/* A probe at the poll clock of now: true when it found something then, as *answer says. */
bool replay_probe(struct cw_probed *answer);

/* The program ends its use of MPI: all must have been repeated. */
void replay_finish(void);

/* The log holds something that does not fit what the program did; ends the process. */
void replay_mismatch(const char *what) __attribute__((noreturn));

/* Frames of the log, from input.c. */
void replay_on_taken(const struct cw_taken *taken);
void replay_on_answer(const struct cw_probed *answer);
void replay_on_end(void);

#endif
