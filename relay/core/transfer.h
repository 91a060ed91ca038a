/* The message that one rank is sending, from its first frame to its last byte; one at a time. It
 * comes in on the rank's connection, or on the link to its home, and goes to a mailbox of ours or
 * to the link to its receiver's home. It stays when the connection breaks: the next incarnation
 * sends the rest. */
#ifndef RELAY_TRANSFER_H
#define RELAY_TRANSFER_H

#include "relay/core/mailbox.h"

struct transfer {
    uint32_t src;                   /* the rank that sends */
    struct ledger_entry *entry;     /* of its state */
    uint64_t left;                  /* bytes after the frame at hand */
    struct relay_message *message;  /* NULL: it is forwarded, or its bytes are dropped */
    struct relay_mailbox *to;       /* of the message */
    struct relay_conn *const *link; /* it is forwarded there, while there is one; NULL: it is not */
    uint64_t cut_deadline_ns;       /* 0: not waiting */
    bool cut_spent;                 /* this message has waited enough */
};

/* A message begins, and none was under way; the payload of the frame at hand is its first. */
void transfer_begin(struct transfer *transfer, struct relay_conn *conn, const struct cw_send *send);
/* ... for a rank of another relay; `link` outlives the transfer. */
void transfer_to_link(struct transfer *transfer, struct relay_conn *conn,
                      const struct cw_send *send, struct relay_conn *const *link);

/* More of it: the payload of the frame at hand. False after refusing. */
bool transfer_more(struct transfer *transfer, struct relay_conn *conn);
/* `size` bytes of payload have come, in the connection's block. */
void transfer_input(struct transfer *transfer, struct relay_conn *conn, const uint8_t *at,
                    uint32_t size);
/* Some of what is being sent has arrived: lets go of it when that was the last. */
void transfer_arrived(struct transfer *transfer);
/* False while bytes that are under way to a slow receiver should drain first. */
bool transfer_wants_input(struct transfer *transfer, uint64_t now_ns);

/* The rank's connection ends, perhaps in the middle of a message: where its next incarnation can be
 * started (`log`), it sends the rest; else the message is never whole. */
void transfer_suspend(struct transfer *transfer, struct relay_conn *conn, bool log);
/* No process will send the rest of it. */
void transfer_abandon(struct transfer *transfer);

#endif
