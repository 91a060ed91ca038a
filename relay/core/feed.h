/* What one incarnation of a rank has been handed: its connection, and how far into the log it is.
 * One whose mailbox has a past repeats it first; then what happens goes to it at once. */
#ifndef RELAY_FEED_H
#define RELAY_FEED_H

#include "relay/core/conn.h"
#include "relay/core/message.h"

struct feed {
    struct relay_conn *conn; /* NULL while no process plays the rank */
    bool unmatched;          /* its rank is its own mailbox: it gets no determinants */
    bool direct;             /* what happens goes to the connection at once; else feed_pump */
    bool decides;            /* it is to be handed what its predecessors decided, first ... */
    struct log_decided_reading decided; /* ... from here on */
    bool repeated;                      /* all determinants are out, LIVE is awaited */
    bool hint_armed;                    /* it is told when a message comes that nobody asked for */
    bool away;                /* it had a relay that was killed, and has not come to us yet */
    uint64_t skip;            /* the events until this one it was handed by that relay, or has taken
                                 before its image */
    bool stuck;               /* what comes next is being read from disk: feed_pump then */
    uint64_t taken_left;      /* events of the last TAKEN that are still to be handed out */
    bool emitting;            /* an event is partly handed out */
    uint64_t checkpoint;      /* where the last CHECKPOINT ends in the stream to it */
    struct cw_message header; /* of the event that is being handed out ... */
    struct log_reading reading; /* ... and what is left of it */
    struct log_cursor cursor;   /* of what this incarnation was handed */
};

/* Of a rank that is its own mailbox, or not. */
static inline void feed_init(struct feed *feed, bool unmatched)
{
    feed->unmatched = unmatched;
}
/* A process plays the rank. `direct`: there is no log to be handed out first. */
void feed_attach(struct feed *feed, struct relay_conn *conn, bool direct);
void feed_detach(struct feed *feed);
/* It begins at this place in the log, and has taken the events until this one. */
void feed_begin(struct feed *feed, const struct log_cursor *from, uint64_t event);
/* A process that played the rank at a relay that was killed has come to us, and was handed all
 * until this event; `from` is before the next one. */
void feed_return(struct feed *feed, struct relay_conn *conn, const struct log_mark *from,
                 uint64_t event);

/* Hands out what the log holds, as long as little waits to be written; then the messages of the
 * list `open`, whose bytes are still coming in, begin anew. Nothing happens where there is no
 * connection, or it is direct. False: the log cannot be read. */
bool feed_pump(struct feed *feed, const struct relay_log *log, const struct relay_messages *open);

/* A message came that nobody asked for. */
void feed_hint(struct feed *feed);

/* It is asked for an image, if there is a connection; not while it was asked before and is not
 * reading. Returns whether it was. */
bool feed_checkpoint(struct feed *feed, const struct cw_checkpoint *checkpoint);

static inline uint8_t feed_type(const struct cw_message *header)
{
    return header->flags & CW_MESSAGE_UNMATCHED ? CW_FRAME_ARRIVAL : CW_FRAME_MESSAGE;
}
/* Bytes of such a frame's fixed part, which is the begin of a struct cw_message. */
static inline uint32_t feed_fixed(const struct cw_message *header)
{
    return header->flags & CW_MESSAGE_UNMATCHED ? CW_ARRIVAL_SIZE : CW_MESSAGE_SIZE;
}
/* One SENT or CANCELED frame. */
void feed_done(struct feed *feed, uint8_t type, uint32_t req, uint64_t event);

/* One MESSAGE frame, or ARRIVAL. */
static inline void feed_message(struct feed *feed, const struct cw_message *header,
                                const uint8_t *at, uint32_t size, struct relay_block *block)
{
    uint8_t *to;

    if (feed->conn->state == CONN_CLOSING)
        return;
    to = conn_data_frame(feed->conn, feed_type(header), feed_fixed(header), at, size, block);
    if (to)
        memcpy(to, header, feed_fixed(header));
}

/* The fixed part of one whose payload the engine writes. Returns the connection; NULL: nothing is
 * to go there. */
struct relay_conn *feed_message_of(struct feed *feed, const struct cw_message *header,
                                   uint32_t size);

#endif
