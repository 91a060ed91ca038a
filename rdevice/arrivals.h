/* What the relay has handed over to a rank that is its own mailbox, and the rank has not taken:
 * messages of ranks elsewhere, which come in parts beside each other, offers of others, of which
 * the bytes come once it has asked for them, and news of synchronous sends that were matched there.
 * A message is taken whole. No I/O. For the thread that calls MPI.
 *
 * Functions that read a frame return NULL, or what is wrong with it (a constant string). */
#ifndef RDEVICE_ARRIVALS_H
#define RDEVICE_ARRIVALS_H

#include "rdevice/mailbox.h"

#define ARRIVALS_AHEAD (1u << 20) /* bytes that are here and not taken, before more is read */

struct arrival;

struct arrivals {
    struct mailbox *mailbox; /* that takes them */
    uint64_t event;          /* number of the last that came whole ... */
    uint64_t taken;          /* ... and of the last that was taken */
    struct arrival *whole;   /* in order */
    struct arrival **whole_tail;
    struct arrival *coming; /* not whole yet, at most one of each sender */
    struct arrival *at;     /* whose payload is at hand ... */
    bool ends;              /* ... and is the last of it */
    uint64_t bytes;         /* of all that are whole */
    uint64_t room_taken;    /* in the mailbox, by those that are here, or coming */
};

/* `mailbox` outlives it. */
void arrivals_begin(struct arrivals *a, struct mailbox *mailbox);

/* ARRIVAL, whose fixed part is `body`, with `size` bytes of payload, which go to *to; or MESSAGE,
 * with those of an offer that the rank has asked for. When they are there, also when they are none,
 * arrivals_payload_came() follows. */
const char *arrivals_on_message(struct arrivals *a, const uint8_t *body, size_t size, uint8_t **to);
const char *arrivals_on_asked(struct arrivals *a, const uint8_t *body, size_t size, uint8_t **to);
void arrivals_payload_came(struct arrivals *a);
/* SENT. */
const char *arrivals_on_sent(struct arrivals *a, const uint8_t *body);

/* How many are whole and not taken. */
static inline uint64_t arrivals_count(const struct arrivals *a)
{
    return a->event - a->taken;
}
static inline bool arrivals_are_many(const struct arrivals *a)
{
    return a->bytes > ARRIVALS_AHEAD;
}

/* The next one goes into the mailbox; there is one. */
const char *arrivals_take(struct arrivals *a);

/* The relay begins anew after the last that came whole. */
void arrivals_on_return(struct arrivals *a);
/* The process goes on from an image: the relay begins anew after the last that was taken. */
void arrivals_on_restore(struct arrivals *a);

#endif
