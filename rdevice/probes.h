/* Probes of the mailbox: what was asked, what the answer was, and which answers "none" are known
 * without asking, until the relay hints that a message has come (docs/protocol.md, "The rule of
 * HINT"). No I/O. For the thread that calls MPI. */
#ifndef RDEVICE_PROBES_H
#define RDEVICE_PROBES_H

#include "common/frame.h"

#include <stdbool.h>
#include <stdint.h>

#define PROBES_NONE_KNOWN 8 /* probes whose answer "none" is remembered */

struct probes {
    bool answered;         /* what was asked last, by `answer` */
    uint64_t asked_until;  /* position of our stream behind the one that was asked last */
    struct cw_probe asked; /* last */
    struct cw_probed answer;
    struct cw_probe none[PROBES_NONE_KNOWN]; /* answered "none", and nothing has come since */
    uint32_t none_count;
    bool mailbox_empty; /* nothing at all waits in the mailbox */
    bool returned;      /* the relay is back, and has not said its last answer */
    bool lost;          /* ... and had been asked what we wait for */
};

/* Known to find nothing. */
bool probes_known_none(const struct probes *p, uint64_t tag, uint64_t mask);

/* This one goes to the relay, and has no answer yet. `until`: the position of our stream behind it.
 */
void probes_ask(struct probes *p, const struct cw_probe *probe, uint64_t until);

/* PROBED and HINT have come. */
void probes_on_answer(struct probes *p, const struct cw_probed *answer);
void probes_on_hint(struct probes *p);

/* The relay was killed and is back, and has received our stream until `received`; what it says
 * first is the last answer that found something. Whether that is the one that we wait for is seen
 * by its clock; else that answer was lost, and found nothing, or the relay was not asked yet. */
void probes_on_return(struct probes *p, uint64_t received);

#endif
