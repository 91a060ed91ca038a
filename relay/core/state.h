/* The core's own structures; nobody outside relay/core includes this. */
#ifndef RELAY_STATE_H
#define RELAY_STATE_H

#include "common/cred.h"
#include "relay/core/block.h"
#include "relay/core/core.h"
#include "relay/core/log.h"
#include "relay/core/match.h"
#include "relay/core/out.h"

#define MESSAGE_INLINE_MAX                                                                         \
    (16u << 10)             /* bytes: a waiting message no larger is copied out of its block */
#define MESSAGE_SMALL 256u  /* inline bytes of a message taken from the free list */
#define MESSAGES_KEPT 4096u /* free small messages kept */
#define PROBED_MAX 65536u   /* messages of a mailbox taken out by probes and not yet received */
#define STREAM_NONE UINT32_MAX

/* A message that is not yet delivered whole: it waits for its receive, or for its bytes. */
struct relay_message {
    struct match_waiting waiting; /* first: found by its address */
    struct relay_message *next_free;
    struct relay_message *next_open; /* of its mailbox, while it is matched and not whole */
    struct relay_message *prev_open;
    uint64_t total;
    uint64_t arrived;
    uint64_t capacity;  /* of its receive, once matched */
    uint64_t delivered; /* bytes handed to the rank's connection */
    uint32_t src;
    uint32_t kind; /* enum cw_send_kind */
    uint32_t sender_req;
    uint32_t req; /* of its receive, or the stream number of an active message */
    bool matched;
    bool begun;  /* its first MESSAGE frame is out */
    bool orphan; /* its sender is gone before its last byte */
    struct message_slice *slices;
    uint32_t slice_count;
    uint32_t slice_size;
    uint32_t inline_size; /* room in bytes[] */
    uint32_t inline_used;
    uint8_t bytes[];
};

/* The message that a rank is sending, from its first frame to its last byte; one at a time. It
 * stays here when the connection breaks: the next incarnation sends the rest. */
struct relay_sending {
    uint64_t left;                 /* bytes after the frame at hand */
    struct relay_message *message; /* NULL: it is forwarded, or its bytes are dropped */
    struct relay_mailbox *to;
    bool forwarded;           /* to the receiver's home ... */
    uint32_t relay;           /* ... which is this one */
    uint64_t cut_deadline_ns; /* 0: not waiting */
    bool cut_spent;           /* this message has waited enough */
};

/* What the home relay keeps for one rank. Of a rank of another relay only what it sends. */
struct relay_mailbox {
    struct relay_job *job;
    struct relay_conn *conn; /* NULL while no process plays the rank */
    struct match_index index;
    struct relay_message **probed; /* by the number that PROBED gave; NULL where free */
    uint32_t probed_size;
    uint32_t probed_free_hint;
    struct relay_message *early; /* active messages that came before the rank did (in order) */
    struct relay_message **early_tail;
    uint64_t event; /* number of the last event */
    struct relay_log log;
    struct relay_message *open; /* matched, and not whole yet */

    /* handing out */
    bool direct;   /* what happens goes to the connection at once; else replay.c sees to it */
    bool repeated; /* all determinants are out, LIVE is awaited */
    struct log_cursor cursor;  /* of what this incarnation was handed */
    struct log_cursor checked; /* of the sends that it has repeated */
    uint64_t taken_left;       /* events of the last TAKEN that are still to be handed out */

    /* what its rank did */
    uint64_t acts;
    uint64_t act_clock;
    struct relay_sending sending;

    uint32_t rank;
    uint32_t incarnation; /* of the last process that was let in; 0 before */
    uint32_t streams;     /* active messages begun, for stream numbers */
    bool hint_armed;
    struct cw_rank_stats stats;
};

struct relay_job {
    struct relay_job *next;
    struct relay_core *core;
    struct relay_conn *dispatcher;
    uint8_t id[CW_ID_SIZE];
    uint8_t key[CW_KEY_SIZE];
    uint32_t ranks;
    bool log;                         /* ranks may be started again */
    struct relay_mailbox **mailboxes; /* NULL until first used */

    /* of several relays */
    uint32_t relays;
    uint32_t self;  /* our number among them */
    uint8_t *homes; /* the relay of each rank; NULL: we are alone */
    bool linking;   /* a link was asked for: the routes stay as they are */
    uint32_t links_up;
    struct relay_conn *links[CW_RELAYS_MAX];
};

enum conn_state {
    CONN_NEW = 1,        /* CHALLENGE sent */
    CONN_RANK = 2,       /* WELCOME sent, or LIVE received */
    CONN_DISPATCHER = 4, /* WELCOME sent */
    CONN_REPEATING = 8,  /* WELCOME sent: the rank repeats what an earlier incarnation did */
    CONN_LINK = 32,      /* another relay of the job */
    CONN_CLOSING = 16,   /* REFUSED or FAREWELL sent: nothing more is read */
};

struct relay_conn {
    struct relay_core *core;
    void *owner;
    struct relay_conn *next; /* all connections of the core */
    struct relay_conn *prev;
    struct relay_conn *next_ready;
    bool is_ready;
    bool fenced; /* a newer incarnation or the end of its job took its place */
    enum conn_state state;
    uint64_t opened_ns;
    uint8_t nonce[CW_NONCE_SIZE];
    struct relay_job *job;
    struct relay_mailbox *mailbox;
    uint32_t peer; /* CONN_LINK: the other relay's number */
    struct cw_session session;
    struct out_queue out;
    bool writing;   /* the engine holds what relay_conn_output gave it ... */
    bool discarded; /* ... and lets go of all that is queued, once it does not */

    /* input */
    struct relay_block *block; /* NULL while nothing is read */
    uint32_t start;            /* of bytes not yet acted on */
    uint32_t end;
    uint32_t payload_left;        /* of the frame at hand, still to come */
    struct relay_mailbox *source; /* who sends the payload of the frame at hand */
};

struct relay_core {
    struct relay_core_config config;
    struct relay_pool pool;
    struct owed_copies copies;
    struct cw_relay_stats stats;
    struct relay_conn *conns;
    struct relay_conn *ready;
    struct relay_conn **ready_tail;
    struct relay_job *jobs;
    uint32_t job_count;
    uint64_t log_bytes; /* of all logs */
    struct relay_message *free_messages;
    uint32_t free_message_count;
    struct relay_posted *free_posted;
};

/* core.c */
void conn_ready(struct relay_conn *conn);
/* Queues a frame whose whole body is `size` bytes to be filled by the caller; NULL without memory
 * (the connection is then failed). */
uint8_t *conn_frame(struct relay_conn *conn, uint8_t type, size_t size);
/* Likewise with payload behind its fixed part, which alone is to be filled: `size` bytes at `at`,
 * in `block` or, when that is NULL, elsewhere. */
uint8_t *conn_data_frame(struct relay_conn *conn, uint8_t type, size_t fixed, const uint8_t *at,
                         uint32_t size, struct relay_block *block);
/* Likewise, but its `size` bytes of payload are written behind it by someone else. */
uint8_t *conn_frame_of(struct relay_conn *conn, uint8_t type, size_t fixed, uint32_t size);
/* Takes what is here of the payload of the frame at hand; returns how many bytes, from where
 * conn->start was. */
uint32_t conn_take(struct relay_conn *conn);
/* Silent yet. NULL without memory. */
struct relay_conn *conn_new(struct relay_core *core, uint64_t now_ns, void *owner);
/* Nothing more is read or, but for what is queued, written. */
void conn_end(struct relay_conn *conn);
void conn_notice(struct relay_conn *conn, uint8_t type, const struct cw_notice_body *notice);
/* Refuses what the connection does: says so to it, and to its dispatcher, and closes it. */
void conn_refuse(struct relay_conn *conn, uint32_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void conn_out_of_memory(struct relay_conn *conn, const char *doing);

/* One handler a frame; `body` has the type's fixed size. Payload follows by message_input. */
void recv_hello(struct relay_conn *conn, const uint8_t *body);
void recv_send(struct relay_conn *conn, const uint8_t *body);
void recv_send_data(struct relay_conn *conn, const uint8_t *body);
void recv_recv(struct relay_conn *conn, const uint8_t *body);
void recv_mrecv(struct relay_conn *conn, const uint8_t *body);
void recv_probe(struct relay_conn *conn, const uint8_t *body);
void recv_cancel(struct relay_conn *conn, const uint8_t *body);
void recv_bye(struct relay_conn *conn, const uint8_t *body);
void recv_taken(struct relay_conn *conn, const uint8_t *body);
void recv_readings(struct relay_conn *conn, const uint8_t *body);
void recv_check(struct relay_conn *conn, const uint8_t *body);
void recv_live(struct relay_conn *conn, const uint8_t *body);
void recv_unlogged(struct relay_conn *conn, const uint8_t *body);
void recv_stats_ask(struct relay_conn *conn, const uint8_t *body);
void recv_ack(struct relay_conn *conn, const uint8_t *body);
void recv_route(struct relay_conn *conn, const uint8_t *body);
void recv_link(struct relay_conn *conn, const uint8_t *body);
void recv_forward(struct relay_conn *conn, const uint8_t *body);
void recv_forward_data(struct relay_conn *conn, const uint8_t *body);
void recv_forward_end(struct relay_conn *conn, const uint8_t *body);
void recv_forward_sent(struct relay_conn *conn, const uint8_t *body);

/* link.c */
void link_up(struct relay_conn *conn, struct relay_job *job, uint32_t relay);
void link_down(struct relay_conn *conn, const char *why);
/* The rank's message goes to the receiver's home: its SEND (with what is here of its payload), more
 * of it, and that the rest never comes. */
void forward_send(struct relay_conn *conn, const struct cw_send *send);
void forward_data(struct relay_conn *conn, const uint8_t *at, uint32_t size);
void forward_end(struct relay_mailbox *sender);
/* The synchronous message of a rank of another relay was matched. */
void forward_sent(struct relay_job *job, uint32_t src, uint32_t req);
/* False while what is under way to the other relay should drain first: it always reads. */
bool forward_wants_input(const struct relay_mailbox *sender);

/* recv_send.c */
/* A message for a rank of ours begins; its payload follows as that of conn->source. */
void send_arrives(struct relay_conn *conn, struct relay_mailbox *sender,
                  const struct cw_send *send);
/* More of it. False after refusing. */
bool data_fits(struct relay_conn *conn, struct relay_mailbox *sender);
/* payload bytes of the message at hand have come, in the connection's block. */
void message_input(struct relay_conn *conn, const uint8_t *at, uint32_t size);
/* Some of what is being sent has arrived: lets go of it when that was the last. */
void message_arrived(struct relay_sending *sending);
/* The connection ends, perhaps in the middle of a message: the next incarnation of the rank sends
 * the rest, if there can be one; else the message is never whole. */
void message_suspend(struct relay_conn *conn);
/* Nobody will send the rest of what this rank was sending. */
void message_abandon(struct relay_mailbox *sender);

/* job.c */
struct relay_job *job_find(struct relay_core *core, const uint8_t id[CW_ID_SIZE]);
struct relay_job *job_new(struct relay_core *core, const uint8_t id[CW_ID_SIZE], uint32_t ranks);
void job_free(struct relay_job *job);
void job_notice(struct relay_job *job, uint32_t code, uint32_t rank, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The number of a rank's home relay, and whether that is us. */
static inline uint32_t job_home(const struct relay_job *job, uint32_t rank)
{
    return job->homes ? job->homes[rank] : job->self;
}
static inline bool job_is_home(const struct relay_job *job, uint32_t rank)
{
    return job_home(job, rank) == job->self;
}
/* The mailbox of a rank, made at first use; NULL without memory. */
struct relay_mailbox *job_mailbox(struct relay_job *job, uint32_t rank);

/* message.c */
/* `waits`: for its receive. */
struct relay_message *message_new(struct relay_core *core, const struct cw_send *send, uint32_t src,
                                  bool waits);
void message_free(struct relay_core *core, struct relay_message *message);
/* Keeps bytes of a message that cannot be delivered yet, or will be an event of `log`. Returns 0 or
 * CW_ENOMEM. */
int message_store(struct relay_core *core, struct relay_message *message, struct relay_log *log,
                  const uint8_t *at, uint32_t size, struct relay_block *block);

/* Bytes in order, in pieces that fit a frame. */
typedef void piece_give(void *ctx, const uint8_t *at, uint32_t size, struct relay_block *block);
void slices_pieces(struct relay_core *core, const struct message_slice *slices, uint32_t count,
                   piece_give *give, void *ctx);
/* Those of the message that are here. */
void message_pieces(struct relay_core *core, const struct relay_message *message, piece_give *give,
                    void *ctx);
/* Lets go of its bytes. */
void message_forget(struct relay_core *core, struct relay_message *message);

/* One more piece of its bytes. Takes over the slice's reference. Returns 0 or CW_ENOMEM. */
int slice_add(struct relay_core *core, struct relay_message *message, struct message_slice slice);

/* mailbox.c */
/* A receive and a message have found each other: acknowledges a synchronous send, hands over what
 * is there. Frees the message once it is delivered whole. */
void mailbox_match(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t req,
                   uint64_t capacity);
/* Hands bytes of a matched message, in order, to the rank. */
void mailbox_deliver(struct relay_mailbox *mailbox, struct relay_message *message,
                     const uint8_t *at, uint32_t size, struct relay_block *block);
/* Likewise `size` bytes that the engine passes on: queues the frame's fixed part, and returns
 * where; NULL: nothing is to go to the rank. */
struct relay_conn *mailbox_deliver_cut(struct relay_mailbox *mailbox, struct relay_message *message,
                                       uint32_t size);
struct cw_message message_header(const struct relay_message *message, bool last);
bool message_delivered(const struct relay_message *message);
/* A message that is here whole, and its receive: at once to the rank, and into its log. */
void mailbox_pass(struct relay_mailbox *mailbox, struct cw_message *header, const uint8_t *at,
                  uint32_t size, struct relay_block *block);
/* One MESSAGE frame to the rank. */
void mailbox_emit(struct relay_mailbox *mailbox, const struct cw_message *header, const uint8_t *at,
                  uint32_t size, struct relay_block *block);
/* One SENT or CANCELED frame. */
void mailbox_emit_done(struct relay_mailbox *mailbox, uint8_t type, uint32_t req, uint64_t event);
/* SENT or CANCELED, as an event. */
void mailbox_done(struct relay_mailbox *mailbox, uint8_t type, uint32_t req);
/* Tells the sender of a synchronous message that it was matched. */
void mailbox_acknowledge(struct relay_job *job, uint32_t src, uint32_t kind, uint32_t req);
struct relay_posted *posted_new(struct relay_core *core);
void posted_free(struct relay_core *core, struct relay_posted *posted);
/* Bytes of the message that its receive has room for. */
uint64_t message_wanted(const struct relay_message *message);
/* The message is matched; parts of it are still to come. */
void message_open(struct relay_mailbox *mailbox, struct relay_message *message);
void message_close(struct relay_mailbox *mailbox, struct relay_message *message);

/* recovery.c */
/* Something was logged, or could not be: counts what the logs hold, and gives one up when that is
 * too much. `before` is log.bytes before. */
void mailbox_logged(struct relay_mailbox *mailbox, uint64_t before, int result);
/* The rank did something that others may see. */
void mailbox_act(struct relay_mailbox *mailbox, uint64_t clock);
/* Gives its log up: the rank cannot be started again. */
void mailbox_unlog(struct relay_mailbox *mailbox, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Its re-execution does something else than the first one did: the job is over. */
void mailbox_diverged(struct relay_mailbox *mailbox, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* True when the rank's next incarnation has something to repeat. */
bool mailbox_has_past(const struct relay_mailbox *mailbox);
/* A process plays the rank: what waited for it goes out. */
void mailbox_attach(struct relay_mailbox *mailbox, struct relay_conn *conn);
void mailbox_detach(struct relay_conn *conn);
/* Hands out what the log holds for this connection, as long as little waits to be written. */
void recovery_pump(struct relay_conn *conn);

/* Drops posted receives and messages. */
void mailbox_fini(struct relay_mailbox *mailbox);

#endif
