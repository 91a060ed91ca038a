/* One connection for all that passes between the dispatcher and the node of a host: frames,
 * streams of bytes with credit, and a session that outlives its connection. docs/protocol.md,
 * "Nodes". Pure: bytes come in, bytes go out.
 *
 * - Segments: what the connection carries. Each has some bytes of the session, maybe none, and says
 *   how many bytes of the other direction were received.
 * - The session: the bytes of all segments, each with a position. Those that the other side has not
 *   received are kept, and sent again over the next connection.
 * - Frames: what these bytes are. Those of streams are handled here; others are for ops->frame.
 * - A stream is known by its number to both sides, which open it by what frames say. Each direction
 *   has a window: the sender stops when it is used up, so a stream that nobody takes holds up no
 *   other one. A direction ends with END; STOP says that its bytes are of no use.
 *
 * Thread rule: one caller at a time. */
#ifndef DISPATCHER_MUX_H
#define DISPATCHER_MUX_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUX_WINDOW (128u << 10)      /* bytes of a stream that are on their way; a record fits */
#define MUX_DATA_MAX (96u << 10)     /* bytes of a stream in one frame */
#define MUX_FRAME_MAX (128u << 10)   /* bytes of a frame after its header */
#define MUX_SEGMENT_MAX (64u << 10)  /* bytes of a segment after its header */
#define MUX_KEPT_MAX (1u << 20)      /* bytes that the other side has not acknowledged */
#define MUX_QUEUE_MAX (64u << 20)    /* bytes of frames that wait for room there */
#define MUX_ACK_BYTES (64u << 10)    /* received, after which it is told */
#define MUX_CREDIT_BYTES (32u << 10) /* of a stream that were taken, after which it is told */

#define MUX_SEGMENT_HEADER 16u /* size, magic, received */
#define MUX_FRAME_HEADER 12u   /* length, type, stream */

enum mux_frame {
    MUX_DATA = 1,   /* bytes of a stream */
    MUX_CREDIT = 2, /* u32: so many more may be sent */
    MUX_END = 3,    /* no more DATA of it in this direction */
    MUX_STOP = 4,   /* the other direction is of no use any more: END is to come */
    MUX_FIRST_OTHER = 16
};

struct mux;

struct mux_ops {
    /* A frame that is not one of streams. What it returns, with *err set, ends the session. */
    int (*frame)(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *err);
    /* mux_output may have more than before. */
    void (*output)(void *ctx);
};

/* All are called from inside mux_input, closed() also from inside mux_stream_end. */
struct mux_stream_ops {
    /* What it returns, with *err set, ends the session. */
    int (*data)(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err);
    void (*end)(void *ctx);    /* no more data() */
    void (*stop)(void *ctx);   /* the other side takes no more */
    void (*room)(void *ctx);   /* mux_stream_room was too small, and has grown */
    void (*closed)(void *ctx); /* both directions have ended: it is the owner's again */
};

/* In the owner's memory, at one place from mux_stream_open to closed() or mux_stream_forget(). */
struct mux_stream {
    struct mux *mux;
    struct mux_stream *next;
    const struct mux_stream_ops *ops;
    void *ctx;
    uint32_t id;
    uint32_t credit; /* bytes that may be sent */
    uint32_t window; /* bytes that may come */
    uint32_t taken;  /* bytes that came and were taken, which was not told */
    bool starved;    /* room() is to be called ... */
    uint32_t seen;   /* ... when there is more than this */
    bool ended;      /* END was sent, or nothing is sent on it ever */
    bool end_came;   /* likewise in the other direction */
};

/* NULL with *err set: CW_ENOMEM. */
struct mux *mux_new(const struct mux_ops *ops, void *ctx, struct cw_err *err);
/* Streams that are open are the owners' again, without closed(). NULL is allowed. */
void mux_free(struct mux *mux);

/* --- the connection --- */

/* There is one now, whose greeting is over; the other side has received all before this position.
 * Errors: CW_EPROTO: it cannot have. */
int mux_connect(struct mux *mux, uint64_t received, struct cw_err *err);
/* After mux_connect: what comes over it begins at this position. What this side has received since,
 * over the connection before, comes again and is dropped. Errors: CW_EPROTO: bytes would be
 * missing.
 */
int mux_expect(struct mux *mux, uint64_t from, struct cw_err *err);
/* There is none any more. */
void mux_disconnect(struct mux *mux);

/* The position up to which this side has received; but of a connection on which bytes come again,
 * up to which they came on it. */
uint64_t mux_received(const struct mux *mux);
/* The position up to which this side knows that the other one has received. */
uint64_t mux_acknowledged(const struct mux *mux);

/* What came over the connection. Errors, which end the session: CW_EPROTO, CW_ENOMEM, and what
 * handlers return. */
int mux_input(struct mux *mux, const uint8_t *bytes, size_t size, struct cw_err *err);

/* What is to be sent now: *bytes is valid until mux_sent. Returns its size; 0: nothing. */
size_t mux_output(struct mux *mux, const uint8_t **bytes);
/* The first `size` of these were sent. */
void mux_sent(struct mux *mux, size_t size);

/* A segment is sent in any case: a sign of life. */
void mux_ping(struct mux *mux);

/* Whether all that was put in was sent and acknowledged. */
bool mux_is_through(const struct mux *mux);

/* --- frames --- */

/* Of a type that is not one of streams. Errors: CW_ELIMIT: too much waits, or it is too large;
 * CW_ENOMEM. */
int mux_send(struct mux *mux, uint32_t type, const void *body, size_t size, struct cw_err *err);

/* --- streams --- */

/* `sends`: this side has bytes for it; `takes`: it gets bytes. */
void mux_stream_open(struct mux *mux, struct mux_stream *stream, uint32_t id, bool sends,
                     bool takes, const struct mux_stream_ops *ops, void *ctx);
bool mux_stream_is_open(const struct mux_stream *stream);

/* How many bytes can be sent now. Where that is less than `wanted`, room() follows. */
size_t mux_stream_room(struct mux_stream *stream, size_t wanted);
/* In one frame: at most as many as there is room for, and MUX_DATA_MAX. */
void mux_stream_send(struct mux_stream *stream, const void *bytes, size_t size);
/* Nothing more is sent; closed() may be called from inside. */
void mux_stream_end(struct mux_stream *stream);

/* So many of the bytes that came were passed on. */
void mux_stream_took(struct mux_stream *stream, size_t size);
/* Bytes that come are of no use: data() may still be called until end(). */
void mux_stream_stop(struct mux_stream *stream);

/* The other side does not know of it. */
void mux_stream_forget(struct mux_stream *stream);

#endif
