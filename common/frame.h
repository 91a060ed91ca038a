/* The frames between a relay and the processes that connect to it. docs/protocol.md is the
 * contract. */
#ifndef CW_FRAME_H
#define CW_FRAME_H

#include "common/buf.h"
#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CW_PROTOCOL_MAGIC 0x59415743u /* "CWAY" */
#define CW_PROTOCOL_VERSION 9
#define CW_FRAME_HEADER 16
#define CW_FRAME_DATA_MAX (256u << 10) /* payload bytes one frame may carry */
#define CW_FRAME_BODY_MAX 512u         /* fixed part of any frame's body */
#define CW_RANKS_MAX 65536u            /* MPICH's UCX binding has 16 bits for a rank */
#define CW_MESSAGE_MAX (1ull << 40)    /* bytes of one message */
#define CW_RELAYS_MAX 16u              /* of one job */
#define CW_ID_SIZE 16                  /* job identifier, bytes */
#define CW_NONCE_SIZE 16
#define CW_KEY_SIZE 32
#define CW_MAC_SIZE 32
#define CW_SEALED_SIZE 72           /* a key encrypted under another one */
#define CW_LINK_ADDRESS_MAX 999u    /* bytes of an address in LINK */
#define CW_TEXT_MAX 400             /* bytes of text in REFUSED and NOTICE */
#define CW_READINGS_MAX (16u << 10) /* bytes of one READINGS frame */
#ifndef CW_KEPT_MAX
#define CW_ACK_BYTES (256u << 10) /* received over a socket before an ACK is owed */
#define CW_KEPT_MAX (1u << 20)    /* bytes that an opener sends over a socket without an ACK */
#endif
#define CW_RESUME_MAX_MS 3600000u /* the longest time that a session may be suspended */

enum cw_frame_type {
    /* opening a session */
    CW_FRAME_CHALLENGE = 1,
    CW_FRAME_HELLO = 2,
    CW_FRAME_WELCOME = 3,
    CW_FRAME_REFUSED = 4,
    CW_FRAME_ACK = 5,
    /* rank to relay */
    CW_FRAME_SEND = 16,
    CW_FRAME_SEND_DATA = 17,
    CW_FRAME_RECV = 18,
    CW_FRAME_MRECV = 19,
    CW_FRAME_PROBE = 20,
    CW_FRAME_CANCEL = 21,
    CW_FRAME_BYE = 22,
    CW_FRAME_CHECK = 25,
    CW_FRAME_LIVE = 26,
    CW_FRAME_UNLOGGED = 27,
    CW_FRAME_POINT = 28,
    /* images: dispatcher to relay, and on to the rank; dispatcher to relay; its answer */
    CW_FRAME_CHECKPOINT = 29,
    CW_FRAME_TRIM = 30,
    CW_FRAME_TRIMMED = 31,
    /* determinants: from a live rank, and back to one that replays */
    CW_FRAME_TAKEN = 23,
    CW_FRAME_READINGS = 24,
    /* relay to rank */
    CW_FRAME_MESSAGE = 32,
    CW_FRAME_SENT = 33,
    CW_FRAME_CANCELED = 34,
    CW_FRAME_PROBED = 35,
    CW_FRAME_HINT = 36,
    CW_FRAME_FAREWELL = 37,
    CW_FRAME_REPLAYED = 38,
    /* relay to dispatcher, unasked */
    CW_FRAME_GROWN = 39,
    /* relay to dispatcher, and its one request */
    CW_FRAME_NOTICE = 48,
    CW_FRAME_STATS = 49,
    CW_FRAME_STATS_ASK = 50,
    /* dispatcher to relay, in a job of several relays */
    CW_FRAME_ROUTE = 51,
    CW_FRAME_LINK = 52,
    CW_FRAME_CUT = 53,      /* a drill */
    CW_FRAME_JOB_END = 54,  /* the job ends now, not when its session's time is up */
    CW_FRAME_RANK_END = 55, /* a process that played a rank has ended */
    /* relay to relay */
    CW_FRAME_FORWARD = 56,
    CW_FRAME_FORWARD_DATA = 57,
    CW_FRAME_FORWARD_END = 58,
    CW_FRAME_FORWARD_SENT = 59,
    /* with a checkpoint server: from a rank's image, and back */
    CW_FRAME_PUT = 64,
    CW_FRAME_GO = 65,
    CW_FRAME_STORED = 66, /* to the dispatcher as well */
    /* ... to a dispatcher, and back */
    CW_FRAME_HELD = 67,
    CW_FRAME_HELD_END = 68,
    CW_FRAME_FETCH = 69,
    CW_FRAME_IMAGE = 70,
    CW_FRAME_DROP = 71,
    CW_FRAME_TYPES = 72,
};

enum cw_role {
    CW_ROLE_RANK = 1,
    CW_ROLE_DISPATCHER = 2,
    CW_ROLE_RELAY = 3,
    CW_ROLE_IMAGE = 4, /* what copies a rank's process to a checkpoint server */
};

/* How a message is matched, and when it is complete for its sender. */
enum cw_send_kind {
    CW_SEND_TAG = 1,  /* matched by tag; complete when it is at the relay */
    CW_SEND_SYNC = 2, /* matched by tag; complete when SENT says that it was matched */
    CW_SEND_AM = 3,   /* active message: goes to the rank as it comes, in order */
};

enum cw_message_flag {
    CW_MESSAGE_FIRST = 1,  /* first frame of the message: tag and total are valid */
    CW_MESSAGE_LAST = 2,   /* last frame: the event is complete and numbered */
    CW_MESSAGE_TRUNC = 4,  /* the message is longer than the receive's capacity */
    CW_MESSAGE_ACTIVE = 8, /* an active message; `req` is a stream number of the relay */
};

enum cw_refusal {
    CW_REFUSED_VERSION = 1,
    CW_REFUSED_JOB = 2,
    CW_REFUSED_CREDENTIAL = 3,
    CW_REFUSED_DUPLICATE = 4,
    CW_REFUSED_FENCED = 5,
    CW_REFUSED_LIMIT = 6,
    CW_REFUSED_PROTOCOL = 7,
    CW_REFUSED_BUSY = 8, /* the relay is ending the session's old connection: try again */
};

enum cw_notice {
    CW_NOTICE_RANK_UP = 1,
    CW_NOTICE_RANK_LOST = 2, /* its session was given up, or refused */
    CW_NOTICE_RANK_BYE = 3,
    CW_NOTICE_REFUSED = 4,   /* a connection that claimed to be this rank was refused */
    CW_NOTICE_FATAL = 5,     /* the relay cannot go on with this job */
    CW_NOTICE_RANK_LIVE = 6, /* it has repeated all that earlier incarnations did */
    CW_NOTICE_UNLOGGED = 7,  /* its log was dropped: it cannot be started again */
    CW_NOTICE_DIVERGED = 8,  /* its re-execution differs from the execution before it */
    CW_NOTICE_LINKED = 9,    /* the relay has its links to all other relays of the job */
    CW_NOTICE_UNLINKED = 10, /* the session of one of these links was given up */
    CW_NOTICE_UNSYNCED = 11, /* the relay's log does not survive the loss of power any more */
    CW_NOTICE_DIFFERS = 12,  /* it repeats its sends with other contents, and goes on */
};

struct cw_header {
    uint32_t length; /* bytes after the header */
    uint8_t type;
    uint32_t seq; /* number of this frame in its direction, from 1, modulo 2^32 */
    uint32_t ack; /* last number received from the other side */
};

struct cw_challenge {
    uint32_t magic;
    uint16_t version;
    uint8_t nonce[CW_NONCE_SIZE];
};
#define CW_CHALLENGE_SIZE 24u

struct cw_hello {
    uint32_t magic;
    uint16_t version;
    uint16_t role;
    uint8_t job[CW_ID_SIZE];
    uint32_t rank; /* of a dispatcher: how many ranks; of a relay: its number in the job */
    uint32_t incarnation;
    uint8_t nonce[CW_NONCE_SIZE];
    uint64_t event; /* 0: the rank starts from its beginning, as do the next two */
    uint64_t poll_clock;
    uint64_t acts;
    uint8_t mac[CW_MAC_SIZE];
    uint32_t flags;     /* enum cw_hello_flag */
    uint32_t resume_ms; /* of a dispatcher: how long its job's sessions may be suspended */
    uint64_t received;  /* with CW_HELLO_RESUME: bytes of the relay's stream received so far */
};
#define CW_HELLO_SIZE 120u

enum cw_hello_flag {
    CW_HELLO_LOG = 1,    /* of a dispatcher: keep what is needed to restart ranks */
    CW_HELLO_RESUME = 2, /* the session goes on over this connection */
    CW_HELLO_TAKE = 4,   /* of a dispatcher: a new session takes the place of the job's, which was
                            left without anybody to resume it */
    CW_HELLO_IMAGES = 8, /* of a dispatcher: images of ranks are taken, which make room in logs */
};

struct cw_welcome {
    uint64_t acts;    /* that earlier incarnations of this rank made */
    uint64_t event;   /* number of the last event of this rank's mailbox */
    uint64_t missing; /* bytes of the message of the last act that have not come */
    uint64_t clock;   /* poll clock of the last act */
    uint32_t flags;   /* enum cw_welcome_flag */
    uint8_t mac[CW_MAC_SIZE];
    uint64_t received; /* with CW_WELCOME_RESUMED: bytes of the opener's stream received so far */
};
#define CW_WELCOME_SIZE 80u

enum cw_welcome_flag {
    CW_WELCOME_LOG = 1,    /* send determinants */
    CW_WELCOME_REPLAY = 2, /* there is a past to repeat; REPLAYED ends it */
    CW_WELCOME_RESUMED = 4,
    CW_WELCOME_RETURNED = 8, /* the relay was killed and is back; its stream begins anew */
};

struct cw_send {
    uint32_t dst;
    uint32_t kind;
    uint32_t req; /* the sender's request, for SENT */
    uint64_t tag;
    uint64_t total;    /* bytes of the whole message */
    uint64_t clock;    /* poll clock of the sender */
    uint64_t contents; /* hash of what it carries; 0: none */
    uint32_t flags;    /* of CHECK: enum cw_check_flag */
};
#define CW_SEND_SIZE 48u

enum cw_check_flag {
    CW_CHECK_BEARS = 1, /* the rank goes on where its contents differ */
};

/* RECV and CANCEL */
struct cw_recv {
    uint32_t req;
    uint64_t tag;
    uint64_t mask; /* a message matches when (its tag ^ tag) & mask == 0 */
    uint64_t capacity;
    uint64_t clock;
};
#define CW_RECV_SIZE 40u

struct cw_mrecv {
    uint32_t req;
    uint32_t msg; /* as given by PROBED */
    uint64_t capacity;
    uint64_t clock;
};
#define CW_MRECV_SIZE 24u

struct cw_probe {
    uint64_t tag;
    uint64_t mask;
    uint32_t remove; /* 1: take the message out; only MRECV can receive it then */
    uint64_t clock;
};
#define CW_PROBE_SIZE 32u

struct cw_message {
    uint32_t req;
    uint32_t flags;
    uint64_t event; /* with CW_MESSAGE_LAST; else 0 */
    uint64_t tag;
    uint64_t total;
};
#define CW_MESSAGE_SIZE 32u

/* SENT and CANCELED */
struct cw_done {
    uint32_t req;
    uint64_t event;
};
#define CW_DONE_SIZE 16u

/* TAKEN and LIVE */
struct cw_taken {
    uint64_t event; /* all events up to this one that were not taken before ... */
    uint64_t clock; /* ... were taken at this poll clock */
};
#define CW_TAKEN_SIZE 16u

/* POINT: where a rank is when an image of its process is taken, and a HELLO of the rank that is
 * started from that image. */
struct cw_point {
    uint64_t event; /* the last event that it took */
    uint64_t clock; /* its poll clock */
    uint64_t acts;  /* that it made */
};
#define CW_POINT_SIZE 24u

/* CHECKPOINT: the rank is to take an image of its process. */
struct cw_checkpoint {
    uint32_t rank;
    uint32_t number; /* of the image: 1, 2, ... of a rank, over all incarnations */
    uint32_t base;   /* of the newest one that the checkpoint server holds; 0: none */
};
#define CW_CHECKPOINT_SIZE 16u

/* TRIM: the image of this point is safe. TRIMMED: what became of that. */
struct cw_trim {
    uint32_t rank;
    uint32_t known; /* TRIMMED: 1: the log begins there now; 0: the point is not known */
    struct cw_point point;
};
#define CW_TRIM_SIZE 32u

/* GROWN: what the relay keeps for this rank has grown. */
struct cw_grown {
    uint32_t rank;
    uint64_t bytes; /* that it keeps */
};
#define CW_GROWN_SIZE 16u

/* PUT: an image follows, as the stream of common/image.h, once GO has come. */
struct cw_put {
    uint32_t number;
    uint32_t base;  /* the image in which blocks may be that are the SAME; 0: none */
    uint64_t bytes; /* of memory that are to come, about */
    struct cw_point point;
};
#define CW_PUT_SIZE 40u

/* GO: the base that the stream may refer to: that of PUT, or 0. */
#define CW_GO_SIZE 8u

/* STORED: the image is verified and on disk. HELD: it is since before this session. */
struct cw_stored {
    uint32_t rank;
    uint32_t incarnation; /* that it was taken of */
    uint32_t number;
    uint64_t bytes;  /* of memory in it */
    uint64_t stored; /* bytes that were new on disk */
    struct cw_point point;
};
#define CW_STORED_SIZE 56u

/* FETCH: IMAGE and the image's stream follow, and then the end of the connection; or REFUSED. DROP:
 * it is not needed any more, nor are older ones of the rank. */
struct cw_image_ref {
    uint32_t rank;   /* DROP: CW_EVERY_RANK: the whole job */
    uint32_t number; /* DROP: and all before it */
};
#define CW_IMAGE_REF_SIZE 8u
#define CW_EVERY_RANK UINT32_MAX

/* IMAGE: bytes of the stream that follows, u64. */
#define CW_IMAGE_SIZE 8u

/* Why a rank cannot be started again. */
enum cw_unlogged {
    CW_UNLOGGED_THREADS = 1,   /* several threads call MPI */
    CW_UNLOGGED_READINGS = 2,  /* too many readings before MPI_Init */
    CW_UNLOGGED_ADDRESSES = 3, /* its memory lies elsewhere in each process */
};
#define CW_UNLOGGED_SIZE 8u

/* Which ranks are at home at relay `home` of the job. */
struct cw_route {
    uint32_t self;   /* number of the relay that gets this frame */
    uint32_t relays; /* of the job, 2 to CW_RELAYS_MAX */
    uint32_t home;
    uint32_t first; /* ranks first, first + step, ..., `count` of them */
    uint32_t step;
    uint32_t count;
};
#define CW_ROUTE_SIZE 24u

/* The address of another relay of the job, to which the relay that gets this frame connects. */
struct cw_link {
    uint32_t peer;                         /* its number */
    uint8_t sealed[CW_SEALED_SIZE];        /* the link key, sealed under the job key */
    char address[CW_LINK_ADDRESS_MAX + 1]; /* terminated */
};
#define CW_LINK_SIZE 80u /* without the address */

/* What CUT names instead of a rank. CUT is a drill: the relay breaks a connection as a failing
 * network would. */
#define CW_CUT_LINKS UINT32_MAX            /* all links of the job */
#define CW_CUT_DISPATCHER (UINT32_MAX - 1) /* the connection that CUT came over */
#define CW_CUT_SIZE 8u

struct cw_rank_end {
    uint32_t rank;
    uint32_t incarnation;
};
#define CW_RANK_END_SIZE 8u

/* A SEND whose receiver has its home at another relay. */
struct cw_forward {
    uint32_t src;
    struct cw_send send;
};
#define CW_FORWARD_SIZE 56u

/* FORWARD_DATA and FORWARD_END: the sender. FORWARD_SENT: the rank whose synchronous send was
 * matched, and its request. */
struct cw_forward_ref {
    uint32_t rank;
    uint32_t req;
};
#define CW_FORWARD_REF_SIZE 8u

struct cw_probed {
    uint64_t clock; /* as in PROBE */
    uint32_t found;
    uint32_t msg;
    uint64_t tag;
    uint64_t total;
    uint64_t unexpected; /* messages that wait in the mailbox */
};
#define CW_PROBED_SIZE 40u

/* What a rank, and the relay for this rank, have counted. BYE and STATS have the same order. */
struct cw_rank_stats {
    uint64_t polls;          /* device: calls for progress, and probes */
    uint64_t sleeps;         /* device: times it slept in poll() */
    uint64_t syscalls;       /* device: system calls on the relay's socket, sleeps and yields */
    uint64_t switches;       /* device: context switches of the process, both kinds */
    uint64_t sent;           /* relay: messages from the rank */
    uint64_t sent_bytes;     /* relay */
    uint64_t received;       /* relay: messages handed to the rank */
    uint64_t received_bytes; /* relay */
    uint64_t unexpected;     /* relay: messages that came before their receive */
    uint64_t events;         /* relay: numbered so far */
    uint64_t taken;          /* relay: of them, how many the rank is known to have taken */
    uint64_t replayed;  /* relay: of them, how many were handed out again to this incarnation */
    uint64_t acts;      /* relay: sends, receives, probes that found, and cancels */
    uint64_t log_bytes; /* relay: held for a restart */
};
#define CW_BYE_SIZE 32u
#define CW_STATS_SIZE (8u + 112u + 88u)

struct cw_relay_stats {
    uint64_t frames_in;
    uint64_t frames_out;
    uint64_t wakeups;     /* engine: times that its wait returned with work */
    uint64_t syscalls;    /* engine: all of its system calls */
    uint64_t sleeps;      /* engine: waits that blocked */
    uint64_t switches;    /* engine: context switches of the process, both kinds */
    uint64_t allocations; /* core: blocks and tables taken from the C library */
    uint64_t memory_now;  /* core: bytes held */
    uint64_t memory_max;
    uint64_t forwarded; /* core: messages to ranks at home at other relays */
    uint64_t forwarded_bytes;
};

/* STATS_ASK is answered by one of these for each rank; all have the relay's own counts. */
struct cw_stats {
    uint32_t rank;
    uint32_t incarnation; /* that connected last */
    struct cw_rank_stats of_rank;
    struct cw_relay_stats of_relay;
};

/* REFUSED and NOTICE: a code, the rank that it is about, and text for a person. */
struct cw_notice_body {
    uint32_t code;
    uint32_t rank;
    uint32_t incarnation; /* 0: unknown, as are the next two */
    uint64_t acts;
    uint64_t event;             /* RANK_UP: how many are to be repeated; else the last one taken */
    char text[CW_TEXT_MAX + 1]; /* terminated; printable */
};
#define CW_NOTICE_SIZE 32u /* without the text */

/* Frame numbers of a session in both directions, and the position in the stream that is received.
 * It outlives the connection. docs/protocol.md, "Numbers" and "Positions". */
struct cw_session {
    uint32_t out_seq;       /* last number sent */
    uint32_t in_seq;        /* last number received */
    uint32_t in_acked;      /* last number that the other side was told */
    uint32_t out_acked;     /* last number that the other side told us */
    uint64_t received;      /* bytes of the stream; whoever reads from the wire adds to it */
    uint64_t received_told; /* `received` as the last ACK said it */
};
#define CW_ACK_EVERY 1024u /* frames received before an ACK is owed */
#define CW_ACK_SIZE 8u

/* Writes a header (16 bytes) and counts the frame in the session. */
static inline void cw_frame_begin(struct cw_session *s, uint8_t *to, uint8_t type, uint32_t length)
{
    struct cw_writer w = cw_writer(to, CW_FRAME_HEADER);

    cw_put_u32(&w, length);
    cw_put_u32(&w, type);
    cw_put_u32(&w, ++s->out_seq);
    cw_put_u32(&w, s->in_seq);
    s->in_acked = s->in_seq;
}

/* Whether an ACK is to be sent for what was received. `kept`: the wire is a socket, and the other
 * side keeps what it has sent until an ACK covers it. */
static inline bool cw_session_owes_ack(const struct cw_session *s, bool kept)
{
    return s->in_seq - s->in_acked >= CW_ACK_EVERY ||
           (kept && s->received - s->received_told >= CW_ACK_BYTES);
}

/* Writes the body of an ACK (CW_ACK_SIZE bytes) for all before `position`, which is at most what
 * was received, and notes that in the session. */
static inline void cw_ack_put_until(uint8_t *to, struct cw_session *s, uint64_t position)
{
    struct cw_writer w = cw_writer(to, CW_ACK_SIZE);

    cw_put_u64(&w, position);
    s->received_told = position;
}

/* For all that was received. */
static inline void cw_ack_put(uint8_t *to, struct cw_session *s)
{
    cw_ack_put_until(to, s, s->received);
}

static inline uint64_t cw_ack_get(const uint8_t *from)
{
    struct cw_reader r = cw_reader(from, CW_ACK_SIZE);

    return cw_get_u64(&r);
}

/* Reads a header (16 bytes) and checks it against the table of frames and the session's numbers.
 * Errors: CW_EPROTO. */
int cw_frame_accept(struct cw_session *s, const uint8_t *bytes, struct cw_header *header,
                    struct cw_err *err);

/* Checks a header (16 bytes) against the table of frames only; does not count the frame. Errors:
 * CW_EPROTO. */
int cw_frame_check(const uint8_t *bytes, struct cw_header *header, struct cw_err *err);

/* The length in a header (16 bytes), not checked. */
static inline uint32_t cw_frame_length(const uint8_t *bytes)
{
    struct cw_reader r = cw_reader(bytes, CW_FRAME_HEADER);

    return cw_get_u32(&r);
}

/* Bytes of the fixed part of a type: they are needed to decode a frame. */
uint32_t cw_frame_fixed(uint8_t type);

/* "SEND", ... or "?" */
const char *cw_frame_name(uint8_t type);

/* Encoders write exactly the size named beside the struct; decoders read it and return false when
 * bytes are missing or a value is out of its bounds. */
void cw_challenge_put(uint8_t *to, const struct cw_challenge *v);
bool cw_challenge_get(const uint8_t *from, struct cw_challenge *v);
void cw_hello_put(uint8_t *to, const struct cw_hello *v);
bool cw_hello_get(const uint8_t *from, struct cw_hello *v);
void cw_welcome_put(uint8_t *to, const struct cw_welcome *v);
bool cw_welcome_get(const uint8_t *from, struct cw_welcome *v);
void cw_stats_put(uint8_t *to, const struct cw_stats *v);
bool cw_stats_get(const uint8_t *from, struct cw_stats *v);
void cw_bye_put(uint8_t *to, const struct cw_rank_stats *v);
bool cw_bye_get(const uint8_t *from, struct cw_rank_stats *v);
void cw_route_put(uint8_t *to, const struct cw_route *v);
bool cw_route_get(const uint8_t *from, struct cw_route *v);
/* Returns the bytes written: CW_LINK_SIZE and the address. */
size_t cw_link_put(uint8_t *to, const struct cw_link *v);
/* `size`: bytes of the address. */
bool cw_link_get(const uint8_t *from, size_t size, struct cw_link *v);
/* Reads what is left, at most `max` bytes, as printable text, terminated (max + 1 bytes). */
void cw_get_text(struct cw_reader *r, char *text, size_t max);
size_t cw_notice_put(uint8_t *to, const struct cw_notice_body *v);
bool cw_notice_get(const uint8_t *from, size_t size, struct cw_notice_body *v);

static inline void cw_send_put(uint8_t *to, const struct cw_send *v)
{
    struct cw_writer w = cw_writer(to, CW_SEND_SIZE);

    cw_put_u32(&w, v->dst);
    cw_put_u32(&w, v->kind);
    cw_put_u32(&w, v->req);
    cw_put_u32(&w, v->flags);
    cw_put_u64(&w, v->tag);
    cw_put_u64(&w, v->total);
    cw_put_u64(&w, v->clock);
    cw_put_u64(&w, v->contents);
}

static inline bool cw_send_get(const uint8_t *from, struct cw_send *v)
{
    struct cw_reader r = cw_reader(from, CW_SEND_SIZE);

    v->dst = cw_get_u32(&r);
    v->kind = cw_get_u32(&r);
    v->req = cw_get_u32(&r);
    v->flags = cw_get_u32(&r);
    v->tag = cw_get_u64(&r);
    v->total = cw_get_u64(&r);
    v->clock = cw_get_u64(&r);
    v->contents = cw_get_u64(&r);
    return cw_reader_end(&r) && v->kind >= CW_SEND_TAG && v->kind <= CW_SEND_AM &&
           v->total <= CW_MESSAGE_MAX;
}

static inline void cw_forward_put(uint8_t *to, const struct cw_forward *v)
{
    struct cw_writer w = cw_writer(to, CW_FORWARD_SIZE - CW_SEND_SIZE);

    cw_put_u32(&w, v->src);
    cw_put_u32(&w, 0);
    cw_send_put(to + w.used, &v->send);
}

static inline bool cw_forward_get(const uint8_t *from, struct cw_forward *v)
{
    struct cw_reader r = cw_reader(from, CW_FORWARD_SIZE - CW_SEND_SIZE);

    v->src = cw_get_u32(&r);
    cw_get_u32(&r);
    return cw_reader_end(&r) && cw_send_get(from + CW_FORWARD_SIZE - CW_SEND_SIZE, &v->send);
}

static inline void cw_forward_ref_put(uint8_t *to, const struct cw_forward_ref *v)
{
    struct cw_writer w = cw_writer(to, CW_FORWARD_REF_SIZE);

    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->req);
}

static inline void cw_forward_ref_get(const uint8_t *from, struct cw_forward_ref *v)
{
    struct cw_reader r = cw_reader(from, CW_FORWARD_REF_SIZE);

    v->rank = cw_get_u32(&r);
    v->req = cw_get_u32(&r);
}

static inline void cw_recv_put(uint8_t *to, const struct cw_recv *v)
{
    struct cw_writer w = cw_writer(to, CW_RECV_SIZE);

    cw_put_u32(&w, v->req);
    cw_put_u32(&w, 0);
    cw_put_u64(&w, v->tag);
    cw_put_u64(&w, v->mask);
    cw_put_u64(&w, v->capacity);
    cw_put_u64(&w, v->clock);
}

static inline bool cw_recv_get(const uint8_t *from, struct cw_recv *v)
{
    struct cw_reader r = cw_reader(from, CW_RECV_SIZE);

    v->req = cw_get_u32(&r);
    cw_get_u32(&r);
    v->tag = cw_get_u64(&r);
    v->mask = cw_get_u64(&r);
    v->capacity = cw_get_u64(&r);
    v->clock = cw_get_u64(&r);
    return cw_reader_end(&r);
}

static inline void cw_mrecv_put(uint8_t *to, const struct cw_mrecv *v)
{
    struct cw_writer w = cw_writer(to, CW_MRECV_SIZE);

    cw_put_u32(&w, v->req);
    cw_put_u32(&w, v->msg);
    cw_put_u64(&w, v->capacity);
    cw_put_u64(&w, v->clock);
}

static inline bool cw_mrecv_get(const uint8_t *from, struct cw_mrecv *v)
{
    struct cw_reader r = cw_reader(from, CW_MRECV_SIZE);

    v->req = cw_get_u32(&r);
    v->msg = cw_get_u32(&r);
    v->capacity = cw_get_u64(&r);
    v->clock = cw_get_u64(&r);
    return cw_reader_end(&r);
}

static inline void cw_probe_put(uint8_t *to, const struct cw_probe *v)
{
    struct cw_writer w = cw_writer(to, CW_PROBE_SIZE);

    cw_put_u64(&w, v->tag);
    cw_put_u64(&w, v->mask);
    cw_put_u32(&w, v->remove);
    cw_put_u32(&w, 0);
    cw_put_u64(&w, v->clock);
}

static inline bool cw_probe_get(const uint8_t *from, struct cw_probe *v)
{
    struct cw_reader r = cw_reader(from, CW_PROBE_SIZE);

    v->tag = cw_get_u64(&r);
    v->mask = cw_get_u64(&r);
    v->remove = cw_get_u32(&r);
    cw_get_u32(&r);
    v->clock = cw_get_u64(&r);
    return cw_reader_end(&r) && v->remove <= 1;
}

static inline void cw_message_put(uint8_t *to, const struct cw_message *v)
{
    struct cw_writer w = cw_writer(to, CW_MESSAGE_SIZE);

    cw_put_u32(&w, v->req);
    cw_put_u32(&w, v->flags);
    cw_put_u64(&w, v->event);
    cw_put_u64(&w, v->tag);
    cw_put_u64(&w, v->total);
}

static inline bool cw_message_get(const uint8_t *from, struct cw_message *v)
{
    struct cw_reader r = cw_reader(from, CW_MESSAGE_SIZE);

    v->req = cw_get_u32(&r);
    v->flags = cw_get_u32(&r);
    v->event = cw_get_u64(&r);
    v->tag = cw_get_u64(&r);
    v->total = cw_get_u64(&r);
    return cw_reader_end(&r);
}

static inline void cw_done_put(uint8_t *to, const struct cw_done *v)
{
    struct cw_writer w = cw_writer(to, CW_DONE_SIZE);

    cw_put_u32(&w, v->req);
    cw_put_u32(&w, 0);
    cw_put_u64(&w, v->event);
}

static inline bool cw_done_get(const uint8_t *from, struct cw_done *v)
{
    struct cw_reader r = cw_reader(from, CW_DONE_SIZE);

    v->req = cw_get_u32(&r);
    cw_get_u32(&r);
    v->event = cw_get_u64(&r);
    return cw_reader_end(&r);
}

static inline void cw_taken_put(uint8_t *to, const struct cw_taken *v)
{
    struct cw_writer w = cw_writer(to, CW_TAKEN_SIZE);

    cw_put_u64(&w, v->event);
    cw_put_u64(&w, v->clock);
}

static inline bool cw_taken_get(const uint8_t *from, struct cw_taken *v)
{
    struct cw_reader r = cw_reader(from, CW_TAKEN_SIZE);

    v->event = cw_get_u64(&r);
    v->clock = cw_get_u64(&r);
    return cw_reader_end(&r);
}

static inline void cw_point_put(uint8_t *to, const struct cw_point *v)
{
    struct cw_writer w = cw_writer(to, CW_POINT_SIZE);

    cw_put_u64(&w, v->event);
    cw_put_u64(&w, v->clock);
    cw_put_u64(&w, v->acts);
}

static inline bool cw_point_get(const uint8_t *from, struct cw_point *v)
{
    struct cw_reader r = cw_reader(from, CW_POINT_SIZE);

    v->event = cw_get_u64(&r);
    v->clock = cw_get_u64(&r);
    v->acts = cw_get_u64(&r);
    return cw_reader_end(&r);
}

static inline void cw_checkpoint_put(uint8_t *to, const struct cw_checkpoint *v)
{
    struct cw_writer w = cw_writer(to, CW_CHECKPOINT_SIZE);

    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->number);
    cw_put_u32(&w, v->base);
    cw_put_u32(&w, 0);
}

static inline bool cw_checkpoint_get(const uint8_t *from, struct cw_checkpoint *v)
{
    struct cw_reader r = cw_reader(from, CW_CHECKPOINT_SIZE);

    v->rank = cw_get_u32(&r);
    v->number = cw_get_u32(&r);
    v->base = cw_get_u32(&r);
    cw_get_u32(&r);
    return cw_reader_end(&r) && v->number > 0 && v->base < v->number;
}

/* TRIM and TRIMMED */
static inline void cw_trim_put(uint8_t *to, const struct cw_trim *v)
{
    struct cw_writer w = cw_writer(to, CW_TRIM_SIZE - CW_POINT_SIZE);

    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->known);
    cw_point_put(to + w.used, &v->point);
}

static inline bool cw_trim_get(const uint8_t *from, struct cw_trim *v)
{
    struct cw_reader r = cw_reader(from, CW_TRIM_SIZE - CW_POINT_SIZE);

    v->rank = cw_get_u32(&r);
    v->known = cw_get_u32(&r);
    return cw_reader_end(&r) && cw_point_get(from + CW_TRIM_SIZE - CW_POINT_SIZE, &v->point) &&
           v->known <= 1;
}

static inline void cw_grown_put(uint8_t *to, const struct cw_grown *v)
{
    struct cw_writer w = cw_writer(to, CW_GROWN_SIZE);

    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, 0);
    cw_put_u64(&w, v->bytes);
}

static inline bool cw_grown_get(const uint8_t *from, struct cw_grown *v)
{
    struct cw_reader r = cw_reader(from, CW_GROWN_SIZE);

    v->rank = cw_get_u32(&r);
    cw_get_u32(&r);
    v->bytes = cw_get_u64(&r);
    return cw_reader_end(&r);
}

static inline void cw_put_put(uint8_t *to, const struct cw_put *v)
{
    struct cw_writer w = cw_writer(to, CW_PUT_SIZE - CW_POINT_SIZE);

    cw_put_u32(&w, v->number);
    cw_put_u32(&w, v->base);
    cw_put_u64(&w, v->bytes);
    cw_point_put(to + w.used, &v->point);
}

static inline bool cw_put_get(const uint8_t *from, struct cw_put *v)
{
    struct cw_reader r = cw_reader(from, CW_PUT_SIZE - CW_POINT_SIZE);

    v->number = cw_get_u32(&r);
    v->base = cw_get_u32(&r);
    v->bytes = cw_get_u64(&r);
    return cw_reader_end(&r) && cw_point_get(from + CW_PUT_SIZE - CW_POINT_SIZE, &v->point) &&
           v->number > 0 && v->base < v->number;
}

/* The base of GO. */
static inline void cw_go_put(uint8_t *to, uint32_t base)
{
    struct cw_writer w = cw_writer(to, CW_GO_SIZE);

    cw_put_u32(&w, base);
    cw_put_u32(&w, 0);
}

static inline uint32_t cw_go_get(const uint8_t *from)
{
    struct cw_reader r = cw_reader(from, CW_GO_SIZE);

    return cw_get_u32(&r);
}

/* STORED and HELD */
static inline void cw_stored_put(uint8_t *to, const struct cw_stored *v)
{
    struct cw_writer w = cw_writer(to, CW_STORED_SIZE - CW_POINT_SIZE);

    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->incarnation);
    cw_put_u32(&w, v->number);
    cw_put_u32(&w, 0);
    cw_put_u64(&w, v->bytes);
    cw_put_u64(&w, v->stored);
    cw_point_put(to + w.used, &v->point);
}

static inline bool cw_stored_get(const uint8_t *from, struct cw_stored *v)
{
    struct cw_reader r = cw_reader(from, CW_STORED_SIZE - CW_POINT_SIZE);

    v->rank = cw_get_u32(&r);
    v->incarnation = cw_get_u32(&r);
    v->number = cw_get_u32(&r);
    cw_get_u32(&r);
    v->bytes = cw_get_u64(&r);
    v->stored = cw_get_u64(&r);
    return cw_reader_end(&r) && cw_point_get(from + CW_STORED_SIZE - CW_POINT_SIZE, &v->point) &&
           v->number > 0;
}

/* FETCH and DROP */
static inline void cw_image_ref_put(uint8_t *to, const struct cw_image_ref *v)
{
    struct cw_writer w = cw_writer(to, CW_IMAGE_REF_SIZE);

    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->number);
}

static inline void cw_image_ref_get(const uint8_t *from, struct cw_image_ref *v)
{
    struct cw_reader r = cw_reader(from, CW_IMAGE_REF_SIZE);

    v->rank = cw_get_u32(&r);
    v->number = cw_get_u32(&r);
}

static inline void cw_unlogged_put(uint8_t *to, uint32_t why)
{
    struct cw_writer w = cw_writer(to, CW_UNLOGGED_SIZE);

    cw_put_u32(&w, why);
    cw_put_u32(&w, 0);
}

static inline void cw_cut_put(uint8_t *to, uint32_t what)
{
    struct cw_writer w = cw_writer(to, CW_CUT_SIZE);

    cw_put_u32(&w, what);
    cw_put_u32(&w, 0);
}

/* A rank, CW_CUT_LINKS or CW_CUT_DISPATCHER. */
static inline uint32_t cw_cut_get(const uint8_t *from)
{
    struct cw_reader r = cw_reader(from, CW_CUT_SIZE);

    return cw_get_u32(&r);
}

static inline void cw_rank_end_put(uint8_t *to, const struct cw_rank_end *v)
{
    struct cw_writer w = cw_writer(to, CW_RANK_END_SIZE);

    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->incarnation);
}

static inline void cw_rank_end_get(const uint8_t *from, struct cw_rank_end *v)
{
    struct cw_reader r = cw_reader(from, CW_RANK_END_SIZE);

    v->rank = cw_get_u32(&r);
    v->incarnation = cw_get_u32(&r);
}

static inline bool cw_unlogged_get(const uint8_t *from, uint32_t *why)
{
    struct cw_reader r = cw_reader(from, CW_UNLOGGED_SIZE);

    *why = cw_get_u32(&r);
    return *why >= CW_UNLOGGED_THREADS && *why <= CW_UNLOGGED_ADDRESSES;
}

static inline void cw_probed_put(uint8_t *to, const struct cw_probed *v)
{
    struct cw_writer w = cw_writer(to, CW_PROBED_SIZE);

    cw_put_u64(&w, v->clock);
    cw_put_u32(&w, v->found);
    cw_put_u32(&w, v->msg);
    cw_put_u64(&w, v->tag);
    cw_put_u64(&w, v->total);
    cw_put_u64(&w, v->unexpected);
}

static inline bool cw_probed_get(const uint8_t *from, struct cw_probed *v)
{
    struct cw_reader r = cw_reader(from, CW_PROBED_SIZE);

    v->clock = cw_get_u64(&r);
    v->found = cw_get_u32(&r);
    v->msg = cw_get_u32(&r);
    v->tag = cw_get_u64(&r);
    v->total = cw_get_u64(&r);
    v->unexpected = cw_get_u64(&r);
    return cw_reader_end(&r) && v->found <= 1;
}

#endif
