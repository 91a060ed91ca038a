/* What came for this rank through channel memory, and what it has asked for: the rank is its own
 * mailbox there, as a relay is for others (relay/core/mailbox.h), and matches in the same order.
 * What happens goes into its inbox. Pure. For the thread that calls MPI.
 *
 * Functions that may find that another rank wrote what cannot be return NULL, or what is wrong (a
 * constant string). */
#ifndef RDEVICE_MAILBOX_H
#define RDEVICE_MAILBOX_H

#include "common/channel.h"
#include "common/match.h"
#include "rdevice/inbox.h"

#define MAILBOX_TAKEN_OUT_MAX 65536u /* messages taken out by probes and not yet received */

struct mailbox_sender;
struct waiting_message;

/* A synchronous send of another rank that was matched, which is not told yet. */
struct matched_send {
    uint32_t rank;
    uint32_t req;
    bool far; /* its message came through the relay, which tells it; else through channel memory */
};

struct mailbox {
    struct match_index index;
    struct inbox *inbox;
    const struct request_table *requests;
    struct mailbox_sender *senders;     /* by rank */
    struct waiting_message **taken_out; /* by the number that a probe gave; NULL where free */
    uint32_t taken_out_size;
    uint64_t room;           /* bytes of messages that came before their receives, at most ... */
    uint64_t stretched;      /* ... and what was added to that */
    uint64_t waiting_bytes;  /* of these, with their records */
    uint64_t far_bytes;      /* the same of messages that came through the relay */
    uint64_t active_bytes;   /* of active messages since the inbox had none */
    uint32_t streams;        /* active messages begun, for stream numbers */
    uint64_t received;       /* messages that have their receive, or are active */
    uint64_t received_bytes; /* of these */
    uint64_t unexpected;     /* messages that came before their receives */
    struct matched_send *matched; /* at most one for each message that came */
    uint32_t matched_count;
    uint32_t matched_size;
};

/* `inbox` and `requests` outlive it. */
void mailbox_begin(struct mailbox *m, struct inbox *inbox, const struct request_table *requests,
                   uint32_t ranks, uint64_t room);

/* Whether there is room for what the next piece of a stream begins, or it needs none. Else it stays
 * where it is, until messages were received, or a receive waits for it. */
bool mailbox_takes(struct mailbox *m, const struct cw_piece *piece);

/* There is to be room for one of `total` bytes nevertheless; at most twice as much in all. False:
 * it would be more. */
bool mailbox_stretches(struct mailbox *m, uint64_t total);

/* The next piece of the stream from rank `src`, which the caller takes then. */
const char *mailbox_piece(struct mailbox *m, uint32_t src, const struct cw_piece *piece,
                          const struct cw_stream *stream);

/* --- messages that come through the relay, and are taken when they are whole. Room for one, whose
 * header this is, while `ahead` bytes of others are here and not taken. Ends the process where it
 * would wait and there is no room for that. */
struct waiting_message *mailbox_make(struct mailbox *m, const struct cw_message *header,
                                     uint64_t ahead);
/* Where its bytes go: room for all of them. */
uint8_t *mailbox_bytes(struct waiting_message *message);
/* It is there. Or it comes again. */
void mailbox_take(struct mailbox *m, struct waiting_message *message);
void mailbox_drop(struct waiting_message *message);
/* A synchronous send of this rank was matched. */
const char *mailbox_sent(struct mailbox *m, uint32_t req);

/* --- The rank's receives; a cancelled one completes as such, unless its message has come. */
void mailbox_recv(struct mailbox *m, const struct cw_recv *recv);
void mailbox_mrecv(struct mailbox *m, const struct cw_mrecv *mrecv);
void mailbox_cancel(struct mailbox *m, const struct cw_recv *cancel);

/* Whether a message waits, and which; `remove`: it is taken out, for mailbox_mrecv. */
struct cw_probed mailbox_probe(struct mailbox *m, uint64_t tag, uint64_t mask, bool remove);

#endif
