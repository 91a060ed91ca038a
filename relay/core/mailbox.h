/* What the home relay keeps for one rank: the receives and messages that wait, numbered events, the
 * log of them, and what its present incarnation was handed. */
#ifndef RELAY_MAILBOX_H
#define RELAY_MAILBOX_H

#include "common/follow.h"
#include "relay/core/bounds.h"
#include "relay/core/feed.h"
#include "relay/log/point.h"

#define POSTED_KEPT 4096u      /* free posted receives kept */
#define PROBED_MAX 65536u      /* messages of a mailbox taken out by probes and not yet received */
#define OFFERED_MAX (1u << 20) /* ... or, of a rank that is its own mailbox, offered */

/* What all mailboxes of a core share. */
struct mailbox_shared {
    struct owed_copies copies;
    struct message_cache messages;
    struct match_posted *free_posted;
    uint32_t free_posted_count;
    struct log_store store;
    LIST_HEAD(, relay_mailbox) unlogged; /* whose log could not be kept: nobody has been told yet */
    LIST_HEAD(, relay_mailbox) stuck;    /* whose feed waits for what is being read from disk ... */
    LIST_HEAD(, relay_mailbox) woken;    /* ... and may go on */
    LIST_HEAD(, relay_mailbox) due;      /* whose log has grown, or may be trimmed now */
    uint32_t imaged;                     /* jobs of whose ranks images are taken, which make room */
    uint64_t wait_end_ns; /* the logs have no room, until then ranks wait for one to be trimmed; 0:
                             they do not wait */
    bool waited;          /* ... in vain, until something changes */
};

/* `pool`: of what is kept for any mailbox; the rest is for store_init. */
void mailbox_shared_init(struct mailbox_shared *shared, struct relay_pool *pool,
                         struct ledger *ledger, uint64_t log_memory, uint64_t log_disk);
/* Gives back what is kept. There is no mailbox any more. */
void mailbox_shared_fini(struct mailbox_shared *shared);

struct relay_mailbox {
    struct mailbox_shared *shared;
    struct relay_pool *pool;
    struct relay_job *job; /* whose it is; not looked into here */
    struct match_index index;
    struct relay_message **probed; /* by the number of PROBED or ARRIVAL; NULL where free */
    uint32_t probed_size;
    uint32_t probed_free_hint;
    struct relay_message *early; /* active messages that came before the rank did (in order) */
    struct relay_message **early_tail;
    uint64_t event; /* number of the last event */
    struct relay_log log;
    struct ledger_entry entry;  /* of this and the rest of its rank, where that outlives us */
    struct cw_probed found;     /* the last answer to a probe, which is said again after a return */
    struct relay_messages open; /* matched, and not whole yet, or being read from the log */
    uint32_t away;              /* messages whose bytes are in the log alone */
    struct feed feed;
    LIST_ENTRY(relay_mailbox) in_unlogged;
    bool is_unlogged; /* it is in that list, as are the next ones */
    const char *unlogged_why;
    LIST_ENTRY(relay_mailbox) in_stuck; /* or among those that are woken */
    bool is_stuck;
    LIST_ENTRY(relay_mailbox) in_due;
    bool is_due;
    bool asked;           /* its rank is to say POINT: it was asked for an image */
    uint64_t grown_at;    /* bytes of its log at which its dispatcher is told; 0: now */
    bool trims;           /* its log is to be trimmed, when its rank is not being handed it ... */
    struct cw_point trim; /* ... to this point */
    bool elsewhere;       /* its rank is its own mailbox: it gets all messages as they come, matches
                             them, and logs what it takes and does in channel memory ... */
    struct cw_rank_stats counted; /* ... as it said last ... */
    uint64_t elsewhere_events;    /* ... and it has repeated so many events */
    struct cw_follow follow;      /* how far what it decides there was read */
    bool lost; /* its channel memory was lost with its host: what it decided is handed to the next
                  process that plays it, until one is live */
    uint64_t room;   /* what it has room for, of all that it is handed, by cw_room_taken() ... */
    uint64_t handed; /* ... and what it was handed */

    /* what its rank did */
    uint64_t acts;
    uint64_t act_clock;

    uint32_t rank;
    uint32_t incarnation; /* of the last process that was let in; 0 before */
    uint32_t ended;       /* incarnation of the last process that is known to have ended; 0: none */
    uint32_t streams;     /* active messages begun, for stream numbers */
    struct cw_rank_stats stats;
};

void mailbox_init(struct relay_mailbox *mailbox, struct mailbox_shared *shared,
                  struct relay_pool *pool, struct relay_job *job, uint32_t rank, bool log,
                  bool elsewhere);
/* Drops posted receives and messages. */
void mailbox_fini(struct relay_mailbox *mailbox);

/* --- incarnations */
/* Of its rank, wherever they are. */
static inline uint64_t mailbox_log_bytes(const struct relay_mailbox *mailbox)
{
    return mailbox->log.bytes + mailbox->counted.log_bytes;
}

/* A process plays the rank, from this point on (NULL: from its beginning): what waited for it goes
 * out. */
void mailbox_attach(struct relay_mailbox *mailbox, struct relay_conn *conn,
                    const struct log_point *from);
/* The process that was let in last has ended: its session is not resumed. */
static inline bool mailbox_is_over(const struct relay_mailbox *mailbox)
{
    return mailbox->ended >= mailbox->incarnation;
}
/* True when the rank's next incarnation has something to repeat. */
bool mailbox_has_past(const struct relay_mailbox *mailbox);
/* Hands out more of the log, if its rank has not been handed all. */
void mailbox_pump(struct relay_mailbox *mailbox);
/* Its feed waits for what is being read from disk. */
void mailbox_stick(struct relay_mailbox *mailbox);
/* Something was read: all that wait may look again. */
void mailbox_wake(struct mailbox_shared *shared);
/* One of them; NULL: there is none any more. */
struct relay_mailbox *mailbox_next_woken(struct mailbox_shared *shared);
/* Its log is to be trimmed to this point, in place of any other, when its rank is not being handed
 * it. Does not outlive the process. */
void mailbox_trim_later(struct relay_mailbox *mailbox, const struct cw_point *to);
/* Its rank is not being handed its log any more. */
void mailbox_let_trim(struct relay_mailbox *mailbox);
/* Its rank was asked for an image, or it was at a point, or will not be there; or its log was
 * trimmed. */
void mailbox_set_asked(struct relay_mailbox *mailbox, bool asked);
/* It is one that mailbox_next_due gives. */
void mailbox_settle_later(struct relay_mailbox *mailbox);
/* One of those whose logs have grown, or may be trimmed, once; NULL: there is none any more. */
struct relay_mailbox *mailbox_next_due(struct mailbox_shared *shared);
/* The rank did something that others may see. */
static inline void mailbox_act(struct relay_mailbox *mailbox, uint64_t clock)
{
    mailbox->acts++;
    mailbox->act_clock = clock;
    ledger_change(&mailbox->entry);
}

/* --- its log */
/* Something could not be logged, or read back: the log is given up, and the mailbox is one that
 * mailbox_next_unlogged gives. `why` is static. */
void mailbox_log_failed(struct relay_mailbox *mailbox, const char *why);
#define MAILBOX_NO_MEMORY "the relay has no memory for its log (--memory-max)"
#define MAILBOX_LOST "what the relay's log holds on disk cannot be read back (--log-dir)"
/* Something was logged, or with a negative result could not be. */
static inline void mailbox_logged(struct relay_mailbox *mailbox, int result)
{
    if (result < 0)
        mailbox_log_failed(mailbox, MAILBOX_NO_MEMORY);
    else if (mailbox->log.bytes >= mailbox->grown_at)
        mailbox_settle_later(mailbox);
}
/* The log was given up: an incarnation that was not handed all of it is refused, and so is one for
 * which messages wait there. */
void mailbox_refuse_unlogged(struct relay_mailbox *mailbox, const char *why);
/* A mailbox whose log could not be kept, once; unlogged_why says why. NULL: there is none. */
struct relay_mailbox *mailbox_next_unlogged(struct mailbox_shared *shared);

/* --- receives and messages */
struct match_posted *mailbox_posted_new(struct relay_mailbox *mailbox);
void mailbox_posted_free(struct relay_mailbox *mailbox, struct match_posted *posted);
void mailbox_message_free(struct relay_mailbox *mailbox, struct relay_message *message);
/* Nobody asked for this message yet. Returns 0 or CW_ENOMEM. */
int mailbox_wait(struct relay_mailbox *mailbox, struct relay_message *message);
/* An active message came before the rank did. */
void mailbox_queue_early(struct relay_mailbox *mailbox, struct relay_message *message);
/* Whether one of this kind and size is offered to the rank, which is its own mailbox, and else
 * waits here: all that are large, and those for which it may have no room. */
static inline bool mailbox_offers(const struct relay_mailbox *mailbox, uint32_t kind,
                                  uint64_t total)
{
    return mailbox->elsewhere && kind != CW_SEND_AM &&
           (total >= RELAY_OFFER_MIN || mailbox->handed + cw_room_taken(total) > mailbox->room);
}
/* Such a rank is handed one that is not offered. */
static inline void mailbox_hands(struct relay_mailbox *mailbox, uint32_t kind, uint64_t total)
{
    if (!mailbox->elsewhere || kind == CW_SEND_AM)
        return;
    mailbox->handed += cw_room_taken(total);
    ledger_change(&mailbox->entry);
}
/* It is offered, by this number, which mailbox_next_out has given: an event. Errors: CW_ENOMEM;
 * then nothing has come of it. */
int mailbox_offer(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t number);
/* The number of the next message that a probe takes out, or that is offered. Errors: CW_ENOMEM;
 * CW_ELIMIT: too many were. */
int64_t mailbox_next_out(struct relay_mailbox *mailbox);
/* A message that does not wait any more is taken out: only MRECV can receive it, by this number.
 * Errors: as above. */
int mailbox_put_out(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t number);
/* How many can be out. */
static inline uint32_t mailbox_out_max(const struct relay_mailbox *mailbox)
{
    return mailbox->elsewhere ? OFFERED_MAX : PROBED_MAX;
}
/* Whether there is a message of such a number. */
static inline bool mailbox_is_out(const struct relay_mailbox *mailbox, uint64_t number)
{
    return number < mailbox->probed_size && mailbox->probed[number];
}
/* This message; its number is free then. */
struct relay_message *mailbox_taken_out(struct relay_mailbox *mailbox, uint32_t number);
/* The number under which a message from this rank, which needs no receive, is handed over: one that
 * no other message of the mailbox has at the time. */
static inline uint32_t mailbox_stream(struct relay_mailbox *mailbox, uint32_t src)
{
    return mailbox->elsewhere ? src : mailbox->streams++;
}
/* It has its receive. */
void mailbox_bind(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t req,
                  uint64_t capacity);
/* A receive and a message have found each other: hands over what is there. Frees the message once
 * it is delivered whole. */
void mailbox_match(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t req,
                   uint64_t capacity);
/* Bytes of a message have come, which are stored if they are to be; those of a matched one go to
 * the rank. `at` may be NULL where nothing goes there at once. Then mailbox_came. */
void mailbox_arrives(struct relay_mailbox *mailbox, struct relay_message *message,
                     const uint8_t *at, uint32_t size, struct relay_block *block);
/* Whether all of it has: then nobody but the mailbox, if it waits there, has it any more. Where
 * logs have no memory left, their disk has the bytes of one that waits from now on. */
bool mailbox_came(struct relay_mailbox *mailbox, struct relay_message *message);
/* As mailbox_arrives, of a matched message whose next `size` bytes the engine passes on: queues the
 * frame's fixed part, and returns for whom; NULL: nothing is to go to the rank. */
struct relay_conn *mailbox_cut_arrives(struct relay_mailbox *mailbox, struct relay_message *message,
                                       uint32_t size);
/* A message that is here whole, and its receive: at once to the rank, and into its log. */
void mailbox_pass(struct relay_mailbox *mailbox, struct cw_message *header, const uint8_t *at,
                  uint32_t size, struct relay_block *block);
/* No more bytes of it come. */
void mailbox_abandon(struct relay_mailbox *mailbox, struct relay_message *message);
/* SENT or CANCELED, as an event. */
void mailbox_done(struct relay_mailbox *mailbox, uint8_t type, uint32_t req);

#endif
