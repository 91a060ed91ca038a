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
#define CW_PROTOCOL_VERSION 16
#define CW_FRAME_HEADER 16
#define CW_FRAME_DATA_MAX (256u << 10) /* payload bytes one frame may carry */
#define CW_FRAME_BODY_MAX 512u         /* fixed part of any frame's body */
#define CW_RANKS_MAX 65536u            /* MPICH's UCX binding has 16 bits for a rank */
#define CW_MESSAGE_MAX (1ull << 40)    /* bytes of one message */
#define CW_RELAYS_MAX 16u              /* of one job */
#define CW_COPIES_MAX 2u               /* of one relay's log */
#define CW_ID_SIZE 16                  /* job identifier, bytes */
#define CW_NONCE_SIZE 16
#define CW_KEY_SIZE 32
#define CW_MAC_SIZE 32
#define CW_SEALED_SIZE 72           /* a key encrypted under another one */
#define CW_LINK_ADDRESS_MAX 999u    /* bytes of an address in LINK */
#define CW_TEXT_MAX 400             /* bytes of text in REFUSED and NOTICE */
#define CW_READINGS_MAX (16u << 10) /* bytes of one READINGS frame */
#define CW_DECIDED_MAX (32u << 10)  /* bytes of one DECIDED frame: more than one decision has */
#ifndef CW_KEPT_MAX
#define CW_ACK_BYTES (256u << 10) /* received over a socket before an ACK is owed */
#define CW_KEPT_MAX (1u << 20)    /* bytes that an opener sends over a socket without an ACK */
#endif
#define CW_RESUME_MAX_MS 3600000u /* the longest time that a session may be suspended */

/* Each frame: its name, its number, the bytes that it always has after the header, and how many
 * more it may have. */
#define CW_FRAMES(X)                                                                               \
    /* opening a session */                                                                        \
    X(CHALLENGE, 1, CW_CHALLENGE_SIZE, 0)                                                          \
    X(HELLO, 2, CW_HELLO_SIZE, 0)                                                                  \
    X(WELCOME, 3, CW_WELCOME_SIZE, 0)                                                              \
    X(REFUSED, 4, CW_NOTICE_SIZE, CW_TEXT_MAX)                                                     \
    X(ACK, 5, CW_ACK_SIZE, 0)                                                                      \
    /* from a live rank, and, without data, back to one that replays */                            \
    X(SEND, 16, CW_SEND_SIZE, CW_FRAME_DATA_MAX)                                                   \
    /* rank to relay */                                                                            \
    X(SEND_DATA, 17, 0, CW_FRAME_DATA_MAX)                                                         \
    X(RECV, 18, CW_RECV_SIZE, 0)                                                                   \
    X(MRECV, 19, CW_MRECV_SIZE, 0)                                                                 \
    X(PROBE, 20, CW_PROBE_SIZE, 0)                                                                 \
    X(CANCEL, 21, CW_RECV_SIZE, 0)                                                                 \
    X(BYE, 22, CW_BYE_SIZE, 0)                                                                     \
    X(LIVE, 26, CW_TAKEN_SIZE, 0)                                                                  \
    X(UNLOGGED, 27, CW_WORD_SIZE, 0)                                                               \
    X(POINT, 28, CW_POINT_SIZE, 0)                                                                 \
    X(COUNTED, 40, CW_COUNTED_SIZE, 0)                                                             \
    /* images: dispatcher to relay, and on to the rank; dispatcher to relay; its answer */         \
    X(CHECKPOINT, 29, CW_CHECKPOINT_SIZE, 0)                                                       \
    X(TRIM, 30, CW_TRIM_SIZE, 0)                                                                   \
    X(TRIMMED, 31, CW_TRIM_SIZE, 0)                                                                \
    /* determinants: from a live rank, and back to one that replays */                             \
    X(TAKEN, 23, CW_TAKEN_SIZE, 0)                                                                 \
    X(READINGS, 24, 0, CW_READINGS_MAX)                                                            \
    /* relay to rank */                                                                            \
    X(MESSAGE, 32, CW_MESSAGE_SIZE, CW_FRAME_DATA_MAX)                                             \
    X(SENT, 33, CW_DONE_SIZE, 0)                                                                   \
    X(CANCELED, 34, CW_DONE_SIZE, 0)                                                               \
    X(PROBED, 35, CW_PROBED_SIZE, 0)                                                               \
    X(HINT, 36, 0, 0)                                                                              \
    X(FAREWELL, 37, 0, 0)                                                                          \
    X(REPLAYED, 38, 0, 0)                                                                          \
    /* with a rank that is its own mailbox: to it, and from it */                                  \
    X(ARRIVAL, 41, CW_ARRIVAL_SIZE, CW_FRAME_DATA_MAX)                                             \
    X(MATCHED, 42, CW_FORWARD_REF_SIZE, 0)                                                         \
    X(ROOM, 43, CW_ROOM_SIZE, 0)                                                                   \
    X(DECIDED, 44, 0, CW_DECIDED_MAX)                                                              \
    /* relay to dispatcher, unasked */                                                             \
    X(GROWN, 39, CW_GROWN_SIZE, 0)                                                                 \
    /* relay to dispatcher, and its one request */                                                 \
    X(NOTICE, 48, CW_NOTICE_SIZE, CW_TEXT_MAX)                                                     \
    X(STATS, 49, CW_STATS_SIZE, 0)                                                                 \
    X(STATS_ASK, 50, 0, 0)                                                                         \
    /* dispatcher to relay, in a job of several relays */                                          \
    X(ROUTE, 51, CW_ROUTE_SIZE, 0)                                                                 \
    X(LINK, 52, CW_LINK_SIZE, CW_LINK_ADDRESS_MAX)                                                 \
    X(CUT, 53, CW_WORD_SIZE, 0)          /* a drill */                                             \
    X(JOB_END, 54, 0, 0)                 /* the job ends now, not when its session's time is up */ \
    X(RANK_END, 55, CW_RANK_END_SIZE, 0) /* a process that played a rank has ended */              \
    /* relay to relay */                                                                           \
    X(FORWARD, 56, CW_FORWARD_SIZE, CW_FRAME_DATA_MAX)                                             \
    X(FORWARD_DATA, 57, CW_FORWARD_REF_SIZE, CW_FRAME_DATA_MAX)                                    \
    X(FORWARD_END, 58, CW_FORWARD_REF_SIZE, 0)                                                     \
    X(FORWARD_SENT, 59, CW_FORWARD_REF_SIZE, 0)                                                    \
    /* ... of its log, and back */                                                                 \
    X(COPY_PART, 60, CW_COPY_REF_SIZE, CW_FRAME_DATA_MAX)                                          \
    X(COPY_ACK, 61, CW_COPY_REF_SIZE, 0)                                                           \
    /* with a checkpoint server: from a rank's image, and back */                                  \
    X(PUT, 64, CW_PUT_SIZE, 0)                                                                     \
    X(GO, 65, CW_WORD_SIZE, 0)                                                                     \
    X(STORED, 66, CW_STORED_SIZE, 0) /* to the dispatcher as well */                               \
    /* ... to a dispatcher, and back */                                                            \
    X(HELD, 67, CW_STORED_SIZE, 0)                                                                 \
    X(HELD_END, 68, 0, 0)                                                                          \
    X(FETCH, 69, CW_IMAGE_REF_SIZE, 0)                                                             \
    X(IMAGE, 70, CW_IMAGE_SIZE, 0)                                                                 \
    X(DROP, 71, CW_IMAGE_REF_SIZE, 0)                                                              \
    /* where relays have copies of their logs at others: dispatcher to relay, and back */          \
    X(COPY, 72, CW_COPY_SIZE, 0)                                                                   \
    X(COVER, 73, CW_COVER_SIZE, 0)                                                                 \
    X(COVERED, 74, CW_COVER_SIZE, 0)                                                               \
    X(COPY_CLOSE, 75, CW_COPY_CLOSE_SIZE, 0)                                                       \
    X(COPY_CLOSED, 76, CW_COPY_CLOSED_SIZE, 0)

enum cw_frame_type {
#define CW_FRAME_NUMBER(name, number, fixed, more) CW_FRAME_##name = (number),
    CW_FRAMES(CW_FRAME_NUMBER)
#undef CW_FRAME_NUMBER
        CW_FRAME_TYPES
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
    /* of ARRIVAL; `req` is the sender's rank */
    CW_MESSAGE_UNMATCHED = 16, /* always */
    CW_MESSAGE_SYNC = 32,      /* a synchronous one */
    CW_MESSAGE_OFFERED = 64,   /* no bytes of it: MRECV has them come, as MESSAGE */
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
    CW_NOTICE_LINKED = 9,    /* the relay has its links to all other relays of the job */
    CW_NOTICE_UNLINKED = 10, /* the session of one of these links was given up */
    CW_NOTICE_UNSYNCED = 11, /* the relay's log does not survive the loss of power any more */
    CW_NOTICE_COVERED = 12,  /* all that the relay has is at its backups, and from now on nothing of
                                it goes outside before it is there; `acts`: number of the COPY */
    CW_NOTICE_UNCOVERED = 13, /* that goes on no more, and what was to go outside waits; likewise */
};

/* The body of a frame is its struct: fields stand as they are sent, and `reserved` ones are zero.
 * Encoders write all of its bytes, whose count is SIZE; decoders read as many, and return false
 * when a value is out of its bounds. */
#define CW_BODY(name, SIZE, size, makes_sense)                                                     \
    enum { SIZE = (size) };                                                                        \
    static inline void cw_##name##_put(uint8_t *to, const struct cw_##name *v)                     \
    {                                                                                              \
        memcpy(to, v, SIZE);                                                                       \
    }                                                                                              \
    static inline bool cw_##name##_get(const uint8_t *from, struct cw_##name *v)                   \
    {                                                                                              \
        memcpy(v, from, SIZE);                                                                     \
        return (makes_sense);                                                                      \
    }                                                                                              \
    _Static_assert(sizeof(struct cw_##name) == SIZE, "it stands as it is sent")

struct cw_header {
    uint32_t length; /* bytes after the header */
    uint8_t type;
    uint32_t seq; /* number of this frame in its direction, from 1, modulo 2^32 */
    uint32_t ack; /* last number received from the other side */
};

struct cw_challenge {
    uint32_t magic;
    uint16_t version;
    uint16_t reserved;
    uint8_t nonce[CW_NONCE_SIZE];
};
CW_BODY(challenge, CW_CHALLENGE_SIZE, 24, v->magic == CW_PROTOCOL_MAGIC);

struct cw_hello {
    uint32_t magic;
    uint16_t version;
    uint16_t role;
    uint8_t job[CW_ID_SIZE];
    uint32_t rank; /* of a dispatcher: how many ranks; of a relay: its number in the job */
    uint32_t incarnation;
    uint8_t nonce[CW_NONCE_SIZE];
    uint64_t event; /* 0: the rank starts from its beginning, as do the next two. Of a dispatcher:
                       for how many ms its own session may be suspended, where that is longer */
    uint64_t poll_clock;
    uint64_t acts;
    uint8_t mac[CW_MAC_SIZE];
    uint32_t flags;     /* enum cw_hello_flag */
    uint32_t resume_ms; /* of a dispatcher: how long its job's sessions may be suspended */
    uint64_t received;  /* with CW_HELLO_RESUME: bytes of the relay's stream received so far */
};
CW_BODY(hello, CW_HELLO_SIZE, 120,
        v->magic == CW_PROTOCOL_MAGIC && v->role >= CW_ROLE_RANK && v->role <= CW_ROLE_IMAGE);

enum cw_hello_flag {
    CW_HELLO_LOG = 1,      /* of a dispatcher: keep what is needed to restart ranks */
    CW_HELLO_RESUME = 2,   /* the session goes on over this connection */
    CW_HELLO_TAKE = 4,     /* of a dispatcher: a new session takes the place of the job's, which was
                              left without anybody to resume it */
    CW_HELLO_IMAGES = 8,   /* of a dispatcher: images of ranks are taken, which make room in logs */
    CW_HELLO_CHANNEL = 16, /* of a dispatcher, and of each rank of its job: a rank is its own
                              mailbox, and logs what it does in channel memory */
    CW_HELLO_COPY = 32,    /* of a relay: its log is copied over this session */
};

struct cw_welcome {
    uint64_t acts;    /* that earlier incarnations of this rank made */
    uint64_t event;   /* number of the last event of this rank's mailbox */
    uint64_t missing; /* bytes of the message of the last act that have not come */
    uint64_t clock;   /* poll clock of the last act */
    uint32_t flags;   /* enum cw_welcome_flag */
    uint32_t reserved;
    uint8_t mac[CW_MAC_SIZE];
    uint64_t received; /* with CW_WELCOME_RESUMED: bytes of the opener's stream received so far */
};
CW_BODY(welcome, CW_WELCOME_SIZE, 80, true);

enum cw_welcome_flag {
    CW_WELCOME_LOG = 1,    /* send determinants */
    CW_WELCOME_REPLAY = 2, /* there is a past to repeat; REPLAYED ends it */
    CW_WELCOME_RESUMED = 4,
    CW_WELCOME_RETURNED = 8, /* the relay was killed and is back; its stream begins anew */
    CW_WELCOME_DECIDED = 16, /* the channel memory was lost: DECIDED says what was decided there */
};

struct cw_send {
    uint32_t dst;
    uint32_t kind;
    uint32_t req; /* the sender's request, for SENT */
    uint32_t reserved;
    uint64_t tag;
    uint64_t total;    /* bytes of the whole message */
    uint64_t clock;    /* poll clock of the sender */
    uint64_t contents; /* hash of what it carries; 0: none */
};

static inline bool cw_send_makes_sense(const struct cw_send *v)
{
    return v->kind >= CW_SEND_TAG && v->kind <= CW_SEND_AM && v->total <= CW_MESSAGE_MAX;
}
CW_BODY(send, CW_SEND_SIZE, 48, cw_send_makes_sense(v));

/* RECV and CANCEL */
struct cw_recv {
    uint32_t req;
    uint32_t reserved;
    uint64_t tag;
    uint64_t mask; /* a message matches when (its tag ^ tag) & mask == 0 */
    uint64_t capacity;
    uint64_t clock;
};
CW_BODY(recv, CW_RECV_SIZE, 40, true);

struct cw_mrecv {
    uint32_t req;
    uint32_t msg; /* as given by PROBED */
    uint64_t capacity;
    uint64_t clock;
};
CW_BODY(mrecv, CW_MRECV_SIZE, 24, true);

struct cw_probe {
    uint64_t tag;
    uint64_t mask;
    uint32_t remove; /* 1: take the message out; only MRECV can receive it then */
    uint32_t reserved;
    uint64_t clock;
};
CW_BODY(probe, CW_PROBE_SIZE, 32, v->remove <= 1);

/* MESSAGE, and, whole, ARRIVAL */
struct cw_message {
    uint32_t req;
    uint32_t flags;
    uint64_t event; /* with CW_MESSAGE_LAST; else 0 */
    uint64_t tag;
    uint64_t total;
    /* of ARRIVAL alone */
    uint32_t sync; /* with CW_MESSAGE_SYNC: the sender's request; else 0 */
    uint32_t msg;  /* with CW_MESSAGE_OFFERED: for MRECV; else 0 */
};
enum { CW_MESSAGE_SIZE = 32, CW_ARRIVAL_SIZE = 40 };
_Static_assert(offsetof(struct cw_message, sync) == CW_MESSAGE_SIZE &&
                   sizeof(struct cw_message) == CW_ARRIVAL_SIZE,
               "it stands as it is sent");

static inline void cw_message_put(uint8_t *to, const struct cw_message *v)
{
    memcpy(to, v, CW_MESSAGE_SIZE);
}

static inline bool cw_message_get(const uint8_t *from, struct cw_message *v)
{
    memcpy(v, from, CW_MESSAGE_SIZE);
    v->sync = v->msg = 0;
    return !(v->flags & CW_MESSAGE_UNMATCHED);
}

static inline void cw_arrival_put(uint8_t *to, const struct cw_message *v)
{
    memcpy(to, v, CW_ARRIVAL_SIZE);
}

static inline bool cw_arrival_get(const uint8_t *from, struct cw_message *v)
{
    const uint32_t whole =
        CW_MESSAGE_FIRST | CW_MESSAGE_LAST | CW_MESSAGE_UNMATCHED | CW_MESSAGE_OFFERED;

    memcpy(v, from, CW_ARRIVAL_SIZE);
    return v->flags & CW_MESSAGE_UNMATCHED && !(v->flags & CW_MESSAGE_TRUNC) &&
           (!(v->flags & CW_MESSAGE_OFFERED) || v->flags == whole) && v->total <= CW_MESSAGE_MAX;
}

/* What a message that waits at a rank which is its own mailbox takes of its room. */
#define CW_ROOM_RECORD 256u /* bytes, beside those of the message */
static inline uint64_t cw_room_taken(uint64_t total)
{
    return CW_ROOM_RECORD + total;
}

/* ROOM: what such a rank has room for. */
struct cw_room {
    uint64_t bytes; /* as cw_room_taken, of all messages that are handed over whole, ever */
};
CW_BODY(room, CW_ROOM_SIZE, 8, true);

/* SENT and CANCELED */
struct cw_done {
    uint32_t req;
    uint32_t reserved;
    uint64_t event;
};
CW_BODY(done, CW_DONE_SIZE, 16, true);

/* TAKEN and LIVE */
struct cw_taken {
    uint64_t event; /* all events up to this one that were not taken before ... */
    uint64_t clock; /* ... were taken at this poll clock */
};
CW_BODY(taken, CW_TAKEN_SIZE, 16, true);

/* POINT: where a rank is when an image of its process is taken, and a HELLO of the rank that is
 * started from that image. */
struct cw_point {
    uint64_t event; /* the last event that it took */
    uint64_t clock; /* its poll clock */
    uint64_t acts;  /* that it made */
};
CW_BODY(point, CW_POINT_SIZE, 24, true);

/* CHECKPOINT: the rank is to take an image of its process. */
struct cw_checkpoint {
    uint32_t rank;
    uint32_t number;  /* of the image: 1, 2, ... of a rank, over all incarnations */
    uint32_t base;    /* of the newest one that all these servers hold; 0: none */
    uint32_t servers; /* where it goes: bits, by the places of servers in the rank's SETUP */
};
CW_BODY(checkpoint, CW_CHECKPOINT_SIZE, 16, v->number > 0 && v->base < v->number);

/* TRIM: the image of this point is safe. TRIMMED: what became of that. */
struct cw_trim {
    uint32_t rank;
    uint32_t known; /* TRIMMED: 1: the log begins there now; 0: the point is not known */
    struct cw_point point;
};
CW_BODY(trim, CW_TRIM_SIZE, 32, v->known <= 1);

/* GROWN: what the relay keeps for this rank has grown. */
struct cw_grown {
    uint32_t rank;
    uint32_t reserved;
    uint64_t bytes; /* that it keeps */
};
CW_BODY(grown, CW_GROWN_SIZE, 16, true);

/* PUT: an image follows, as the stream of common/image.h, once GO has come. */
struct cw_put {
    uint32_t number;
    uint32_t base;  /* the image in which blocks may be that are the SAME; 0: none */
    uint64_t bytes; /* of memory that are to come, about */
    struct cw_point point;
};
CW_BODY(put, CW_PUT_SIZE, 40, v->number > 0 && v->base < v->number);

/* GO: the base that the stream may refer to: that of PUT, or 0. UNLOGGED: enum cw_unlogged. CUT: a
 * rank, CW_CUT_LINKS or CW_CUT_DISPATCHER. */
#define CW_WORD_SIZE 8u

static inline void cw_word_put(uint8_t *to, uint32_t value)
{
    memcpy(to, &(uint64_t){value}, CW_WORD_SIZE);
}

static inline uint32_t cw_word_get(const uint8_t *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof(value));
    return value;
}

/* STORED: the image is verified and on disk. HELD: it is since before this session. */
struct cw_stored {
    uint32_t rank;
    uint32_t incarnation; /* that it was taken of */
    uint32_t number;
    uint32_t reserved;
    uint64_t bytes;  /* of memory in it */
    uint64_t stored; /* bytes that were new on disk */
    struct cw_point point;
};
CW_BODY(stored, CW_STORED_SIZE, 56, v->number > 0);

/* FETCH: IMAGE and the image's stream follow, and then the end of the connection; or REFUSED. DROP:
 * it is not needed any more, nor are older ones of the rank. */
struct cw_image_ref {
    uint32_t rank;   /* DROP: CW_EVERY_RANK: the whole job */
    uint32_t number; /* DROP: and all before it */
};
CW_BODY(image_ref, CW_IMAGE_REF_SIZE, 8, true);
#define CW_EVERY_RANK UINT32_MAX

/* IMAGE: bytes of the stream that follows, u64. */
#define CW_IMAGE_SIZE 8u

/* Why a rank cannot be started again. */
enum cw_unlogged {
    CW_UNLOGGED_THREADS = 1,   /* several threads call MPI */
    CW_UNLOGGED_READINGS = 2,  /* too many readings before MPI_Init */
    CW_UNLOGGED_ADDRESSES = 3, /* its memory lies elsewhere in each process */
    CW_UNLOGGED_MEMORY = 4,    /* its log in channel memory has no room */
};

/* Which ranks are at home at relay `home` of the job. */
struct cw_route {
    uint32_t self;   /* number of the relay that gets this frame */
    uint32_t relays; /* of the job, 2 to CW_RELAYS_MAX */
    uint32_t home;
    uint32_t first; /* ranks first, first + step, ..., `count` of them */
    uint32_t step;
    uint32_t count;
};
CW_BODY(route, CW_ROUTE_SIZE, 24,
        v->relays >= 2 && v->relays <= CW_RELAYS_MAX && v->self < v->relays &&
            v->home < v->relays && v->step > 0 && v->count > 0);

/* The address of another relay of the job, to which the relay that gets this frame connects. */
struct cw_link {
    uint32_t peer;        /* its number */
    uint32_t flags;       /* enum cw_link_flag */
    uint32_t incarnation; /* of it: 1, 2, ... */
    uint32_t reserved;
    uint8_t sealed[CW_SEALED_SIZE];        /* the link key, sealed under the job key */
    char address[CW_LINK_ADDRESS_MAX + 1]; /* terminated */
};
#define CW_LINK_SIZE 88u /* without the address */

enum cw_link_flag {
    CW_LINK_COPIES = 1, /* the link itself is opened by the other relay: this is for copies */
};

/* COPY: these relays are to have a copy of the log of the one that gets this frame. */
struct cw_copy {
    uint32_t number;      /* of this frame, from 1, never less than before */
    uint32_t incarnation; /* of the relay that it is for: for another one it is void */
    uint32_t count;       /* 0: nothing is copied, nor held back */
    uint32_t peer[CW_COPIES_MAX];
    uint32_t reserved;
};
CW_BODY(copy, CW_COPY_SIZE, 24,
        v->count <= CW_COPIES_MAX && !(v->count == 2 && v->peer[0] == v->peer[1]));

/* COVER, and COVERED, which is held back until all that was done when COVER came is at the backups.
 */
struct cw_cover {
    uint64_t token;
};
CW_BODY(cover, CW_COVER_SIZE, 8, true);

/* COPY_CLOSE: the copy of this relay's log is for its successor now. */
struct cw_copy_close {
    uint32_t relay;
    uint32_t incarnation; /* of it, that is over */
};
CW_BODY(copy_close, CW_COPY_CLOSE_SIZE, 8, true);

struct cw_copy_closed {
    uint32_t relay;
    uint32_t covered; /* 1: the copy is whole */
    uint64_t commit;  /* the last one in it */
};
CW_BODY(copy_closed, CW_COPY_CLOSED_SIZE, 16, v->covered <= 1);

/* COPY_PART: of this commit. COPY_ACK: all up to this one are in the copy. */
struct cw_copy_ref {
    uint64_t commit; /* from 1, of a relay's process */
};
CW_BODY(copy_ref, CW_COPY_REF_SIZE, 8, true);

/* What CUT names instead of a rank. CUT is a drill: the relay breaks a connection as a failing
 * network would. */
#define CW_CUT_LINKS UINT32_MAX            /* all links of the job */
#define CW_CUT_DISPATCHER (UINT32_MAX - 1) /* the connection that CUT came over */

struct cw_rank_end {
    uint32_t rank;
    uint32_t incarnation;
};
CW_BODY(rank_end, CW_RANK_END_SIZE, 8, true);

/* A SEND whose receiver has its home at another relay. */
struct cw_forward {
    uint32_t src;
    uint32_t reserved;
    struct cw_send send;
};
CW_BODY(forward, CW_FORWARD_SIZE, 56, cw_send_makes_sense(&v->send));

/* FORWARD_DATA and FORWARD_END: the sender. FORWARD_SENT: the rank whose synchronous send was
 * matched, and its request. */
struct cw_forward_ref {
    uint32_t rank;
    uint32_t req;
};
CW_BODY(forward_ref, CW_FORWARD_REF_SIZE, 8, true);

struct cw_probed {
    uint64_t clock; /* as in PROBE */
    uint32_t found;
    uint32_t msg;
    uint64_t tag;
    uint64_t total;
    uint64_t unexpected; /* messages that wait in the mailbox */
};
CW_BODY(probed, CW_PROBED_SIZE, 40, v->found <= 1);

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
#define CW_BYE_SIZE 32u      /* the first four */
#define CW_COUNTED_SIZE 112u /* COUNTED: all of them, by a rank with channel memory */
_Static_assert(sizeof(struct cw_rank_stats) == CW_COUNTED_SIZE, "docs/protocol.md, COUNTED");

static inline void cw_bye_put(uint8_t *to, const struct cw_rank_stats *v)
{
    memcpy(to, v, CW_BYE_SIZE);
}

static inline void cw_bye_get(const uint8_t *from, struct cw_rank_stats *v)
{
    memcpy(v, from, CW_BYE_SIZE);
}

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
CW_BODY(stats, CW_STATS_SIZE, 208, true);

/* REFUSED and NOTICE: a code, the rank that it is about, and text for a person. */
struct cw_notice_body {
    uint32_t code;
    uint32_t rank;
    uint32_t incarnation; /* 0: unknown, as are the next two */
    uint32_t reserved;
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

/* Writes the body of an ACK (CW_ACK_SIZE bytes) for all that was received, and notes that in the
 * session. */
static inline void cw_ack_put(uint8_t *to, struct cw_session *s)
{
    s->received_told = s->received;
    memcpy(to, &s->received, CW_ACK_SIZE);
}

static inline uint64_t cw_ack_get(const uint8_t *from)
{
    uint64_t position;

    memcpy(&position, from, CW_ACK_SIZE);
    return position;
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

/* Return the bytes written: the fixed part and the text. `size` is that of both. */
size_t cw_link_put(uint8_t *to, const struct cw_link *v);
bool cw_link_get(const uint8_t *from, size_t size, struct cw_link *v);
size_t cw_notice_put(uint8_t *to, const struct cw_notice_body *v);
bool cw_notice_get(const uint8_t *from, size_t size, struct cw_notice_body *v);

/* Reads what is left, at most `max` bytes, as printable text, terminated (max + 1 bytes). */
void cw_get_text(struct cw_reader *r, char *text, size_t max);

#endif
