/* Where a restarted rank is in what it has to repeat. The relay streams the determinants and events
 * of its predecessors in the order of their happening, and knows how many operations they made.
 * Until all is repeated, events are taken at the poll clocks of the first time, every other poll
 * finds nothing, inputs are what they were, and operations are not made again ([MPICH-V]
 * definition 2, silent re-execution). Past that the rank is live, which the relay is told.
 *
 * For the thread that calls MPI; ends the process when the re-execution does something else. */
#ifndef RDEVICE_CURSOR_H
#define RDEVICE_CURSOR_H

#include "common/channel.h"
#include "common/frame.h"
#include "rdevice/inputs.h"
#include "rdevice/tally.h"

#include <stdbool.h>
#include <stdint.h>

enum cursor_kind {
    CURSOR_UNKNOWN, /* the relay's next frame, or the channel memory, says it */
    CURSOR_TAKEN,
    CURSOR_ANSWER,
    CURSOR_READINGS,
    CURSOR_SEND,
    CURSOR_END
};

/* What the log holds next. */
struct cursor_item {
    enum cursor_kind kind;
    uint64_t clock;          /* poll clock at which it was; of readings, and of sends in the relay's
                                log: or before */
    uint64_t event;          /* TAKEN: until this one */
    struct cw_probed answer; /* ANSWER */
    struct cw_send send;     /* SEND */
    struct cw_piece noted;   /* with channel memory: it itself */
};

struct cursor {
    uint64_t polls; /* the poll clock: calls for progress, and probes */
    uint64_t acts;  /* sends, receives, probes that found, and cancels; of all incarnations */
    bool active;    /* repeats; else live */
    bool logged;    /* the relay wants determinants: the rank can be restarted. Or no more */
    uint32_t incarnation;
    /* while it is active; exchange.c says what comes */
    struct cursor_item next;
    uint64_t readings_clock; /* poll clock of the readings that came last */
    uint64_t acts_made;      /* to be repeated */
    uint64_t acts_clock;     /* poll clock of the last of them */
    uint64_t relay_acts; /* the same, but with channel memory those alone that the relay was told */
    uint64_t missing;    /* bytes of the last of these, a message, that it lacks */
    bool differs;        /* it was told that contents differ */
    struct tally tally;  /* since the last send with the contents that it had */
};

/* Readings of the log have come; where they are, others may write. */
static inline void cursor_repeat_inputs(struct cursor *c, const uint8_t *bytes, size_t size)
{
    tally_readings(&c->tally, inputs_repeat(bytes, size), size);
}

struct exchange;

/* After WELCOME. The poll clock and the operations go on from where they are: those of an image, or
 * 0. */
static inline void cursor_begin(struct cursor *c, uint32_t incarnation,
                                const struct cw_welcome *welcome)
{
    *c = (struct cursor){.polls = c->polls,
                         .acts = c->acts,
                         .active = welcome->flags & CW_WELCOME_REPLAY,
                         .logged = welcome->flags & CW_WELCOME_LOG,
                         .incarnation = incarnation,
                         .acts_made = welcome->acts,
                         .relay_acts = welcome->acts,
                         .acts_clock = welcome->clock,
                         .missing = welcome->missing};
}

/* There is nothing more to repeat, and the relay is told so. */
void cursor_live(struct exchange *x);

/* The program makes an operation: true when it was made before. */
bool cursor_act(struct exchange *x);

/* It is to send a message: true when it was sent before, which is compared. */
bool cursor_send(struct exchange *x, const struct cw_send *send);

/* Whether the relay has had this act of an earlier incarnation, a message of `total` bytes or none;
 * if so, *has of these. */
static inline bool cursor_was_told(const struct cursor *c, uint64_t act, uint64_t total,
                                   uint64_t *has)
{
    uint64_t lacks = act == c->relay_acts ? c->missing : 0;

    *has = lacks < total ? total - lacks : 0;
    return act <= c->relay_acts;
}

/* While it is active: a call for progress at the poll clock of now. True: events happened then. */
bool cursor_poll(struct exchange *x);

/* While it is active: a probe at the poll clock of now. True: it found *answer, which is an
 * operation. */
bool cursor_probe(struct exchange *x, struct cw_probed *answer);

/* For struct inputs_log: an input is wanted. True: the log's next ones have come (inputs_repeat).
 * False: the rank is live, the answer is a new one. */
bool cursor_inputs(struct exchange *x);

/* All that has come is used up, or the program ends its use of MPI: the rank is live, if that was
 * the last of its log. `ends`: it must be. */
void cursor_used_up(struct exchange *x, bool ends);

#endif
