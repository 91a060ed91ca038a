/* One record of a log, as bytes: its type, then numbers of as many bytes as they need. */
#ifndef RELAY_RECORD_H
#define RELAY_RECORD_H

#include "common/buf.h"

#define LOG_RECORD_MAX 80u /* bytes of one, but for those that it carries */

enum log_record_type {
    LOG_MESSAGE = 1, /* one begins to arrive: src, kind, req (the sender's), tag, total */
    LOG_PART,        /* bytes of the message that src is sending */
    LOG_PASSED,   /* an event: a message that came whole and found its receive: flags, tag, total,
                     req,   size; its bytes */
    LOG_MATCHED,  /* an event: the message of the record at `message`: flags, tag, total, req, size
                   */
    LOG_SENT,     /* an event: req */
    LOG_CANCELED, /* an event: req */
    LOG_TAKEN,    /* events, clock */
    LOG_READINGS, /* bytes */
    LOG_ANSWER,   /* flags (LOG_REMOVED), clock, msg, tag, mask (of the probe), total */
    LOG_SEND,     /* dst, kind, tag, total, contents */
    /* inputs that lead to events */
    LOG_RECV,   /* req, tag, mask, total (its room) */
    LOG_MRECV,  /* msg, req, total (its room) */
    LOG_CANCEL, /* of a posted receive: req, tag, mask */
    /* a snapshot: what the mailbox holds at a point where a rank may be started again */
    LOG_POINT,     /* it begins: bytes, a struct log_point */
    LOG_STATE,     /* bytes, a struct snapshot_state of the mailbox */
    LOG_HELD,      /* a message that was not delivered whole: as MESSAGE */
    LOG_HELD_PART, /* bytes of it */
    LOG_HELD_END,  /* flags (LOG_HELD_*), msg, total */
    LOG_POSTED,    /* a receive that waits: as RECV */
    /* of a rank that is its own mailbox */
    LOG_OFFERED, /* an event: a message begins to arrive, and its rank is told: as MESSAGE, and msg
                  */
    LOG_RECORD_TYPES
};

#define LOG_REMOVED 1u /* ANSWER: the message was taken out, as `msg` */

/* HELD_END; without any of the first two the message waits for its receive. */
#define LOG_HELD_OUT 1u       /* it was taken out, as `msg` */
#define LOG_HELD_MATCHED 2u   /* it has its receive `msg`, which has room for `total` bytes ... */
#define LOG_HELD_DELIVERED 4u /* ... and these were an event */
#define LOG_HELD_OFFERED 8u   /* with MATCHED: it had been offered */

struct log_record {
    uint8_t type;
    bool placed;    /* the bytes are at `at` of the payload, not here */
    uint32_t whole; /* bytes of it, with those that it carries, once it was read */
    uint64_t src;
    uint64_t dst;
    uint64_t kind;  /* enum cw_send_kind */
    uint64_t flags; /* enum cw_message_flag, but FIRST and LAST */
    uint64_t req;
    uint64_t msg; /* of a probe that took its message out */
    uint64_t tag;
    uint64_t mask;
    uint64_t total;
    uint64_t size;     /* of the bytes; MATCHED: of those that the receive had room for */
    uint64_t events;   /* taken since the last TAKEN */
    uint64_t clock;    /* since the last TAKEN or ANSWER */
    uint64_t contents; /* SEND: hash of what it carried; 0: none */
    uint64_t message;
    uint64_t at; /* MATCHED, HELD: where the payload ended when the message began */
    const uint8_t *bytes;
};

/* Writes all but `bytes` to `to`, which has room for LOG_RECORD_MAX, and returns how much that was.
 */
uint32_t log_record_put(uint8_t *to, const struct log_record *record);

static inline bool log_record_has_bytes(const struct log_record *record)
{
    const uint32_t types = 1u << LOG_PART | 1u << LOG_PASSED | 1u << LOG_READINGS |
                           1u << LOG_POINT | 1u << LOG_STATE | 1u << LOG_HELD_PART;

    return types >> record->type & 1;
}

/* How many bytes it carries itself. */
static inline uint64_t log_record_carries(const struct log_record *record)
{
    return log_record_has_bytes(record) && !record->placed ? record->size : 0;
}

/* Reads the record at the start of `size` bytes, and returns how many of them it takes, with what
 * it carries; 0: there is none that makes sense. */
uint32_t log_record_get(const uint8_t *from, uint32_t size, struct log_record *record);

#endif
