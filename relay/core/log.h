/* What a mailbox keeps so that its rank can be started again: [MPICH-V] 3.5, "the events between
 * the recovery point and the crash are logged and the order of events is also logged".
 *
 * Three sequences: the events handed to the rank, with their payload; the determinants, which say
 * in the order of their happening when the rank took events and what its clocks told it; and
 * what it sent, without payload, to compare a re-execution with. Times are poll clocks. */
#ifndef RELAY_LOG_H
#define RELAY_LOG_H

#include "common/frame.h"
#include "relay/core/copies.h"
#include "relay/core/records.h"

#define LOG_INLINE_MAX                                                                             \
    (4u << 10) /* payload bytes that stand in the event itself; more has blocks of its own         \
                */

#define LOG_SLICES_MAX ((1u << 24) - 1) /* of one event */

/* Bytes of a message that wait in a block. */
struct message_slice {
    struct relay_block *block;
    uint32_t at; /* in its bytes */
    uint32_t size;
};

enum log_event_type { LOG_MESSAGE = 1, LOG_SENT, LOG_CANCELED };

/* One event; its payload follows: a u64 with its size when the message was cut to its receive's
 * capacity, then slices, or, when there are none, the bytes themselves up to a multiple of 8. */
struct log_event {
    uint64_t tag;
    uint64_t total;
    uint32_t req;
    uint32_t type : 4;
    uint32_t flags : 4; /* enum cw_message_flag, TRUNC and ACTIVE */
    uint32_t slices : 24;
};

/* An event as it is found in the log. */
struct log_event_view {
    const struct log_event *event;
    uint64_t size; /* payload bytes */
    const uint8_t *bytes;
    const struct message_slice *slices; /* event->slices of them */
};

enum log_determinant_type { LOG_TAKEN = 1, LOG_READINGS, LOG_ANSWER };

struct log_determinant {
    enum log_determinant_type type;
    uint64_t events;      /* TAKEN: how many */
    uint64_t clock;       /* TAKEN, ANSWER */
    const uint8_t *bytes; /* READINGS */
    uint32_t size;
    struct cw_probed answer; /* ANSWER: a probe that found a message */
};

struct relay_log {
    struct relay_pool *pool;
    struct owed_copies *copies; /* of large payloads to their place here */
    struct records events;
    struct records determinants;
    struct records sends;
    uint64_t event_count;
    uint64_t taken; /* events with a determinant */
    uint64_t clock; /* of the last TAKEN or ANSWER */
    uint64_t send_count;
    uint64_t bytes;            /* memory held, payload in blocks included */
    struct relay_block *block; /* the last of those with payload, being filled; NULL: none */
    uint32_t block_used;
    bool kept; /* false: nothing is kept, the rank cannot be started again */
};

/* A place in the log. */
struct log_cursor {
    struct records_cursor events;
    struct records_cursor determinants;
    struct records_cursor sends;
    uint64_t event; /* how many were read */
    uint64_t clock;
    uint64_t send;
};

void log_init(struct relay_log *log, struct relay_pool *pool, struct owed_copies *copies,
              bool kept);
void log_free(struct relay_log *log);

/* All of these return 0 or CW_ENOMEM; nothing is kept then. */
/* The payload is `size` bytes, at most RELAY_BLOCK_BYTES, at `at`, in `block` (or elsewhere, when
 * block is NULL). */
int log_message(struct relay_log *log, const struct cw_message *header, const uint8_t *at,
                uint64_t size, struct relay_block *block);
/* The payload is the first `size` bytes of the slices, which get references of their own. */
int log_message_slices(struct relay_log *log, const struct cw_message *header,
                       const struct message_slice *slices, uint64_t size);
/* A part of a payload, as above, for log_message_slices later: sets a place for it aside, as up to
 * two slices, each with a reference for the caller. Returns how many, or CW_ENOMEM. */
int log_place(struct relay_log *log, const uint8_t *at, uint32_t size, struct relay_block *block,
              struct message_slice slices[2]);
/* Likewise, but the caller sees to the copy: one slice of at most `size` bytes. Returns 0 or
 * CW_ENOMEM. */
int log_reserve(struct relay_log *log, uint32_t size, struct message_slice *slice);
int log_done(struct relay_log *log, enum log_event_type type, uint32_t req);
/* `event`: the last one taken, `clock` not before the last. */
int log_taken(struct relay_log *log, uint64_t event, uint64_t clock);
int log_readings(struct relay_log *log, const uint8_t *bytes, uint32_t size);
int log_answer(struct relay_log *log, const struct cw_probed *answer);
int log_send(struct relay_log *log, const struct cw_send *send);

/* Gives bytes in order, in pieces that fit a frame. `block`: they lie in it; NULL: elsewhere. */
typedef void piece_give(void *ctx, const uint8_t *at, uint32_t size, struct relay_block *block);
/* The bytes of slices whose copies the log may still owe. */
void log_pieces(const struct relay_log *log, const struct message_slice *slices, uint32_t count,
                piece_give *give, void *ctx);

/* False at the end. What a view points to is valid until log_free. */
bool log_next_event(const struct relay_log *log, struct log_cursor *cursor,
                    struct log_event_view *view);
bool log_next_determinant(const struct relay_log *log, struct log_cursor *cursor,
                          struct log_determinant *determinant);
/* Only dst, kind, tag and total are filled. */
bool log_next_send(const struct relay_log *log, struct log_cursor *cursor, struct cw_send *send);

#endif
