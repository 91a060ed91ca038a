/* One mailbox, made again from its log. */
#ifndef RELAY_REMAKE_MAILBOX_H
#define RELAY_REMAKE_MAILBOX_H

#include "relay/core/mailbox.h"

struct remake_mailbox {
    struct relay_mailbox *mailbox;
    uint64_t position;              /* of the next record */
    struct relay_message *arriving; /* messages that are not whole */
    struct log_reading reading;     /* of the message whose bytes are being taken up */
    uint64_t payload;               /* what has come before the next record ends here */
    struct log_record due;          /* the event that came of the last record; type 0: none */

    /* its points */
    struct log_points_left points;
    uint32_t point;             /* the next one */
    bool amid;                  /* its snapshot is being read ... */
    struct relay_message *held; /* ... and this message of it */
};

/* `mailbox` is new, and its log has been returned. */
void remake_mailbox_begin(struct remake_mailbox *r, struct relay_mailbox *mailbox,
                          const struct log_points_left *points);
/* Reads on: CHAIN_END: all was; CHAIN_AWAY: it is to be called again; CHAIN_LOST: it makes no
 * sense. */
enum chain_found remake_mailbox_step(struct remake_mailbox *r);
/* Its sender goes on sending the message that began at `record`, of which `left` bytes have not
 * come. NULL: there is no such message. */
struct relay_message *remake_mailbox_claim(struct remake_mailbox *r, uint64_t record,
                                           uint64_t left);
/* All messages that will be claimed were. */
void remake_mailbox_end(struct remake_mailbox *r);

#endif
