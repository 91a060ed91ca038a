/* What the program does that others can see: messages, receives, cancels and probes. An
 * operation that an earlier incarnation made is compared and dropped; before any other go the
 * determinants that the relay has not seen. That is the pessimistic rule: what a rank did is seen
 * by others only after its determinants are logged. For the thread that calls MPI. */
#ifndef RDEVICE_OPERATION_H
#define RDEVICE_OPERATION_H

#include "rdevice/exchange.h"

#define OPERATION_COPY_MAX (8u << 10) /* bytes: a smaller message is copied behind its header */

/* To which rank, as what, and what synchronous sends complete. */
struct operation_target {
    uint32_t dst;
    uint32_t kind; /* enum cw_send_kind */
    uint64_t tag;
    uint32_t req;    /* of CW_SEND_SYNC */
    uint64_t header; /* bytes before those that are the same in each incarnation, or
                        CONTENTS_UNLIKE */
};

/* Sends one message, gathered from at most EXCHANGE_PIECES_MAX pieces; returns when it is written
 * to the relay: it never stops reading a rank for long. Where `total` is not 0 the message has so
 * many bytes, and the pieces the first of them: others follow until all are out, each time at most
 * CW_FRAME_DATA_MAX bytes. */
void operation_send(struct exchange *x, const struct operation_target *to, uint64_t total,
                    const struct iovec *pieces, int count);
void operation_send_more(struct exchange *x, const void *bytes, size_t size);

/* Receives, and takes a receive back. They are told with the next flush: until the next call for
 * progress nobody could see their effect. */
void operation_recv(struct exchange *x, const struct cw_recv *recv);
void operation_mrecv(struct exchange *x, const struct cw_mrecv *mrecv);
void operation_cancel(struct exchange *x, const struct cw_recv *cancel);

/* Asks the mailbox, and waits for its answer; .found says whether a message waits there: then it
 * was an operation. `remove`: the message is taken out. */
struct cw_probed operation_probe(struct exchange *x, uint64_t tag, uint64_t mask, bool remove);

/* Queues the inputs of the program since the last time. */
void operation_inputs(struct exchange *x);

/* With channel memory, before a POINT: what was taken of the relay by now. */
void operation_arrivals_taken(struct exchange *x);
/* Queues what must be logged before anything that follows: all that has happened is taken now. */
void operation_taken(struct exchange *x);

#endif
