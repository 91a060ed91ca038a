/* A message that is not delivered whole: it waits for its receive, or for its bytes. */
#ifndef RELAY_MESSAGE_H
#define RELAY_MESSAGE_H

#include "common/match.h"
#include "relay/log/log.h"

#define MESSAGE_INLINE_MAX                                                                         \
    (16u << 10)             /* bytes: a waiting message no larger is copied out of its block */
#define MESSAGE_SMALL 256u  /* inline bytes of a message taken from the free list */
#define MESSAGES_KEPT 4096u /* free small messages kept */

LIST_HEAD(relay_messages, relay_message);

struct relay_message {
    struct match_waiting waiting; /* first: found by its address */
    struct relay_message *next_free;
    LIST_ENTRY(relay_message) in_open; /* of its mailbox, while it is matched and not whole */
    uint64_t total;
    uint64_t arrived;
    uint64_t capacity;  /* of its receive, once matched */
    uint64_t delivered; /* bytes handed to the rank's connection */
    uint64_t record;    /* where it begins in its mailbox's log, if that is kept ... */
    uint64_t floor;     /* ... and where the payload there ended then */
    uint32_t src;
    uint32_t kind; /* enum cw_send_kind */
    uint32_t sender_req;
    uint32_t req; /* of its receive, or the stream number of an active message */
    bool matched;
    bool unmatched;             /* its rank matches it: it was handed over as if by a receive */
    bool offered;               /* its rank matches it, and asks for it then */
    bool begun;                 /* its first MESSAGE frame is out */
    bool orphan;                /* its sender is gone before its last byte */
    bool restored;              /* from a log that was left */
    bool away;                  /* its bytes are in its mailbox's log alone, all of them ... */
    struct log_reading reading; /* ... and, once it is matched, are read from there */
    struct message_slice *slices;
    uint32_t slice_count;
    uint32_t slice_size;
    uint32_t inline_size; /* room in bytes[] */
    uint32_t inline_used;
    uint8_t bytes[];
};

/* Small messages that are free, for the jobs of a core. All zero but for the pool: none. */
struct message_cache {
    struct relay_pool *pool; /* that holds them */
    struct relay_message *first;
    uint32_t count;
};

/* The message of a record, MESSAGE or HELD, which is at `message`; its memory is the pool's.
 * `waits`: for its receive. NULL without memory. */
struct relay_message *message_new(struct message_cache *cache, struct relay_pool *pool,
                                  const struct log_record *record, bool waits);
void message_free(struct message_cache *cache, struct relay_pool *pool,
                  struct relay_message *message);
/* Gives back what is kept. */
void message_cache_fini(struct message_cache *cache);

/* Keeps bytes of a message that cannot be delivered yet, or will be an event of `log`, which gets
 * them if it is kept. Returns 0 or CW_ENOMEM. */
int message_store(struct relay_message *message, struct relay_log *log, const uint8_t *at,
                  uint32_t size, struct relay_block *block);
/* Sets room in the log aside for at most `size` bytes, which the caller copies there: one slice,
 * which is the message's. Returns 0 or CW_ENOMEM. */
int message_reserve(struct relay_message *message, struct relay_log *log, uint32_t size,
                    struct message_slice *slice);
/* The bytes of it that are here; the log is the one that they may be stored in. */
void message_pieces(const struct relay_message *message, const struct relay_log *log,
                    piece_give *give, void *ctx);
/* More of its bytes, as they were found in the log. Returns 0 or CW_ENOMEM. */
int message_restore(struct relay_message *message, struct relay_pool *pool,
                    const struct log_piece *piece);
/* Lets go of its bytes. */
void message_forget(struct relay_message *message);
/* The log alone has its bytes from now on. */
void message_put_away(struct relay_message *message);
/* One that is away, and matched, is to be delivered from its begin. */
void message_read(struct relay_message *message);

/* Bytes of the message that its receive has room for. */
static inline uint64_t message_wanted(const struct relay_message *message)
{
    return message->total < message->capacity ? message->total : message->capacity;
}
static inline bool message_delivered(const struct relay_message *message)
{
    return message->begun && message->delivered == message_wanted(message);
}
/* What a MESSAGE frame says of it. */
struct cw_message message_header(const struct relay_message *message, bool last);

#endif
