/* What a mailbox keeps so that its rank can be started again: [MPICH-V] 3.5, "the events between
 * the recovery point and the crash are logged and the order of events is also logged".
 *
 * One stream of records, in the order in which things happened: messages as they came, the events
 * that they and others became, when the rank took events and what its clocks told it (the
 * determinants), and what it sent, without payload, to compare a re-execution with. Large payloads
 * stand beside it. Times are poll clocks. No record says where in memory something is. */
#ifndef RELAY_LOG_H
#define RELAY_LOG_H

#include "common/frame.h"
#include "relay/log/chain.h"
#include "relay/log/copies.h"
#include "relay/log/decided.h"
#include "relay/log/record.h"

#define LOG_INLINE_MAX                                                                             \
    (4u << 10) /* payload bytes that stand in a record itself; more stand beside it                \
                */

#ifndef LOG_PART_SLICES
#define LOG_PART_SLICES 2 /* a part is at most a block, and begins anywhere in a segment */
#endif

/* Types of records: a bit each. */
#define LOG_EVENTS                                                                                 \
    (1u << LOG_PASSED | 1u << LOG_MATCHED | 1u << LOG_SENT | 1u << LOG_CANCELED | 1u << LOG_OFFERED)
#define LOG_DETERMINANTS (1u << LOG_TAKEN | 1u << LOG_READINGS | 1u << LOG_ANSWER)

/* Bytes of a message that wait in a block. */
struct message_slice {
    struct relay_block *block; /* NULL: in a segment of the log, which need not be in memory ... */
    uint32_t at;               /* in its bytes */
    uint32_t size;
    uint32_t number; /* ... this one */
};

/* An event as it is found in the log. */
struct log_event {
    enum log_record_type type; /* PASSED: of any message */
    uint8_t flags;             /* enum cw_message_flag, but FIRST and LAST */
    uint32_t req;
    uint32_t sync; /* with CW_MESSAGE_SYNC: the sender's request */
    uint32_t msg;  /* with CW_MESSAGE_OFFERED */
    uint64_t tag;
    uint64_t total;
    uint64_t size;   /* payload bytes */
    uint64_t record; /* where its payload begins */
};

struct log_determinant {
    enum log_record_type type;
    uint64_t events;      /* TAKEN: how many */
    uint64_t clock;       /* TAKEN, ANSWER */
    const uint8_t *bytes; /* READINGS */
    uint32_t size;
    struct cw_probed answer; /* ANSWER: a probe that found a message */
    struct cw_send send;     /* SEND: dst, kind, tag, total and contents */
};

/* A place in the log such that the events behind it, and the messages that they are, are all those
 * that the rank has not said it took, and perhaps some more. */
struct log_mark {
    uint64_t position; /* event `event` and those before it are before it ... */
    uint64_t event;
    uint64_t low;   /* ... and the messages of those behind it begin here, or later ... */
    uint64_t floor; /* ... and their payload here */
};

/* A place in the log, for each kind of what it holds. A send is handed out as determinants are. */
struct log_cursor {
    uint64_t events;
    uint64_t determinants; /* and sends */
    uint64_t event;        /* how many were read */
    uint64_t clock;
    uint64_t send;
};

struct log_points;

struct relay_log {
    struct relay_pool *pool;
    struct owed_copies *copies; /* of large payloads to their place here */
    struct chain records;
    struct chain payload;
    struct log_decided decided; /* where the rank's own log is in channel memory */
    uint64_t event_count;
    uint64_t taken; /* events with a determinant */
    uint64_t clock; /* of the last TAKEN or ANSWER */
    uint64_t determinant_count;
    uint64_t send_count;
    uint64_t bytes;            /* memory held, payload included */
    uint64_t snapshots;        /* ... and how much of it are snapshots, since it was trimmed */
    bool kept;                 /* false: nothing is kept, the rank cannot be started again */
    struct log_record *due;    /* of one that is read back: the event that came of its last record,
                                  and must be the next one; NULL: events are appended */
    struct log_mark early;     /* all its events were taken */
    struct log_mark late;      /* the next one, once all of its events are */
    struct log_points *points; /* where the rank may be started again: point.h; NULL: nowhere but
                                  at its beginning */
};

/* `store` and `copies` are those of the core. */
void log_init(struct relay_log *log, struct relay_pool *pool, struct log_store *store,
              struct owed_copies *copies, bool kept);
void log_free(struct relay_log *log);
/* It outlives the process from now on; of its chains the entry saves the ends. */
void log_outlive(struct relay_log *log, struct ledger_entry *entry);
/* The same for one that was left: then log_look reads all that it holds,
 * and log_count counts it. Errors: as chain_return. */
int log_return(struct relay_log *log, struct ledger_entry *entry, struct chain_end records,
               struct chain_end payload, uint32_t payload_solid,
               const struct log_decided_left *decided);
static inline bool log_is_event(const struct log_record *record)
{
    return LOG_EVENTS >> record->type & 1;
}
/* Of two events: whether they say the same. */
bool log_is_same_event(const struct log_record *a, const struct log_record *b);
/* It holds so many more bytes of memory. */
void log_hold(struct relay_log *log, uint64_t bytes);
struct log_decided_left log_decided_left(const struct relay_log *log);
/* Counts its bytes again. */
void log_weigh(struct relay_log *log);
enum chain_found log_look(const struct relay_log *log, uint64_t *position,
                          struct log_record *record);
/* `position`: behind it. False: it makes no sense. */
bool log_count(struct relay_log *log, const struct log_record *record, uint64_t position);
/* Bytes of it in memory. */
static inline uint64_t log_memory(const struct relay_log *log)
{
    return chain_memory(&log->records) + chain_memory(&log->payload) +
           chain_memory(&log->decided.chain);
}

/* All of these return 0 or CW_ENOMEM; then the log cannot be read on, and is to be given up. */
/* Writes a record, with what it carries; *position is where. */
int log_append(struct relay_log *log, const struct log_record *record, uint64_t *position);
/* The same, and counts it. Of an event, what it came of was logged before. */
int log_put(struct relay_log *log, const struct log_record *record);
/* A message that came whole, and has its receive. The payload is `size` bytes, at most
 * CW_FRAME_DATA_MAX, at `at`, in `block` (or elsewhere, when block is NULL). */
int log_message(struct relay_log *log, const struct cw_message *header, const uint8_t *at,
                uint32_t size, struct relay_block *block);
/* Bytes of the message that rank `src` is sending, as above. Unless `slices` is NULL they are so
 * many slices then, each with a reference for the caller. Returns how many. */
int log_part(struct relay_log *log, uint32_t src, const uint8_t *at, uint32_t size,
             struct relay_block *block, struct message_slice slices[LOG_PART_SLICES]);
/* Likewise, but the caller sees to the copy: one slice of at most `size` bytes. */
int log_part_reserve(struct relay_log *log, uint32_t src, uint32_t size,
                     struct message_slice *slice);
/* An event: the message that began to arrive at `record`, when the payload ended at `floor`, has
 * its receive, and the first `size` bytes of it, which that has room for, are here. */
int log_matched(struct relay_log *log, const struct cw_message *header, uint64_t record,
                uint64_t floor, uint64_t size);
/* An event: OFFERED. *position: where it is, unless it is read back. */
int log_offered(struct relay_log *log, const struct log_record *record, uint64_t *position);
/* SENT or CANCELED. */
int log_done(struct relay_log *log, enum log_record_type type, uint32_t req);
/* `event`: the last one taken, `clock` not before the last. */
int log_taken(struct relay_log *log, uint64_t event, uint64_t clock);

/* Gives bytes in order, in pieces that fit a frame. `block`: they lie in it; NULL: elsewhere. */
typedef void piece_give(void *ctx, const uint8_t *at, uint32_t size, struct relay_block *block);
/* The bytes of slices whose copies the log may still owe. */
void log_pieces(const struct relay_log *log, const struct message_slice *slices, uint32_t count,
                piece_give *give, void *ctx);

/* What is found points to memory that stays as store_want says. Where something is AWAY, the cursor
 * stays where it is; where it is LOST, the log is to be given up. */
enum chain_found log_next_event(const struct relay_log *log, struct log_cursor *cursor,
                                struct log_event *event);
enum chain_found log_next_determinant(const struct relay_log *log, struct log_cursor *cursor,
                                      struct log_determinant *determinant);

/* The payload of an event, read from its begin. */
struct log_reading {
    uint64_t left;     /* of the event */
    uint64_t position; /* of the next record */
    uint64_t at;       /* of the payload that the last one has beside it ... */
    uint64_t placed;   /* ... bytes of that which are left */
    uint32_t src;
    bool begun;
    bool held; /* by a snapshot, and being read from there */
};

struct log_piece {
    const uint8_t *at;
    uint32_t size;             /* at most CW_FRAME_DATA_MAX */
    struct relay_block *block; /* that it lies in; NULL: elsewhere */
};

static inline struct log_reading log_read(const struct log_event *event)
{
    return (struct log_reading){.left = event->size, .position = event->record};
}
/* The next bytes, as above; not to be called when none are left. */
enum chain_found log_read_piece(const struct relay_log *log, struct log_reading *reading,
                                struct log_piece *piece);

#endif
