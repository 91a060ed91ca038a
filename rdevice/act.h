/* What the program does that others can see: messages, receives, cancels and probes. An act that an
 * earlier incarnation made is compared and dropped; before any other go the determinants that the
 * relay has not seen. That is the pessimistic rule: what a rank did is seen by others only after
 * its determinants are logged. For the thread that calls MPI. */
#ifndef RDEVICE_ACT_H
#define RDEVICE_ACT_H

#include "rdevice/exchange.h"

#define ACT_COPY_MAX (8u << 10) /* bytes: a smaller message is copied behind its header */

/* To which rank, as what, and what synchronous sends complete. */
struct act_target {
    uint32_t dst;
    uint32_t kind; /* enum cw_send_kind */
    uint64_t tag;
    uint32_t req;    /* of CW_SEND_SYNC */
    uint64_t header; /* bytes before those that are the same in each incarnation, or
                        CONTENTS_UNLIKE */
};

/* Sends one message, gathered from at most EXCHANGE_PIECES_MAX pieces; returns when it is written
 * to the relay: it never stops reading a rank for long. */
void act_send(struct exchange *x, const struct act_target *to, const struct iovec *pieces,
              int count);

/* The same in steps, for a message of `total` bytes that is packed chunk by chunk: the first one,
 * then others until all bytes are out; each at most CW_FRAME_DATA_MAX bytes. *skip is kept for the
 * caller between the steps. */
void act_send_first(struct exchange *x, const struct act_target *to, uint64_t total,
                    const void *first, size_t size, uint64_t *skip);
void act_send_more(struct exchange *x, const void *bytes, size_t size, uint64_t *skip);

/* Queues a frame that is an act; NULL when it was made by an earlier incarnation. */
uint8_t *act_frame(struct exchange *x, uint8_t type, size_t size);

/* Asks the mailbox, and waits for its answer; .found says whether a message waits there: then it
 * was an act. `remove`: the message is taken out. */
struct cw_probed act_probe(struct exchange *x, uint64_t tag, uint64_t mask, bool remove);

/* Queues what clocks have told the program since the last time. */
void act_readings(struct exchange *x);

/* Queues what must be logged before anything that follows: all that has happened is taken now. */
void act_taken(struct exchange *x);

#endif
