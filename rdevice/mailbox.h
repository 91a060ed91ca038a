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
#ifndef MAILBOX_FAR_MAX
#define MAILBOX_FAR_MAX                                                                            \
    (64ull << 20) /* bytes of messages from elsewhere that wait here; others wait at the relay */
#endif
#define MAILBOX_FAR_SHARE 4u /* ... and no more than this part of the room */
#define MAILBOX_FAR_PARTS 4u /* each such part of it that gets free is told to the relay */

struct mailbox_sender;
struct waiting_message;

/* What has come of messages, and others are to be told: through channel memory, or the relay. */
enum mailbox_news_kind {
    NEWS_SENT,    /* to another rank of this host: its synchronous send was matched */
    NEWS_MATCHED, /* to the relay: likewise one from elsewhere */
    NEWS_ASKED,   /* to the relay: a message that it offered has this receive */
    NEWS_ROOM     /* to the relay: there is room for so many bytes, ever */
};

struct mailbox_news {
    enum mailbox_news_kind kind;
    uint32_t rank;  /* SENT: its place; MATCHED: it */
    uint32_t req;   /* SENT, MATCHED: of the send; ASKED: of the receive */
    uint32_t msg;   /* ASKED: number of the offer */
    uint64_t bytes; /* ASKED: that the receive has room for; ROOM */
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
    uint64_t far_bytes;      /* of messages that came whole through the relay, by cw_room_taken() */
    uint64_t far_room;       /* of these at most ... */
    uint64_t far_matched;    /* ... and what has become free of it, ever ... */
    uint64_t far_told;       /* ... and the relay was told, or will be */
    uint64_t active_bytes;   /* of active messages since the inbox had none */
    uint32_t streams;        /* active messages begun, for stream numbers */
    uint64_t received;       /* messages that have their receive, or are active */
    uint64_t received_bytes; /* of these */
    uint64_t unexpected;     /* messages that came before their receives */
    struct mailbox_news *news; /* in order; at most two for each message that came */
    uint32_t news_count;
    uint32_t news_size;
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

/* --- messages that come through the relay, or are offered by it. They come after this. */
void mailbox_open_far(struct mailbox *m);
/* One, whose header this is: room for it. */
struct waiting_message *mailbox_make(const struct cw_message *header);
/* Where its bytes go: room for all of them. */
uint8_t *mailbox_bytes(struct waiting_message *message);
/* What one takes of the room for those that wait. */
uint64_t mailbox_needs(const struct cw_message *header);
/* It is there, whole or as an offer, and is taken. Or it comes again. */
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
