/* A connection to a checkpoint server: frames both ways, and bytes of streams. One thread. */
#ifndef CKPTSRV_PEER_H
#define CKPTSRV_PEER_H

#include "common/frame.h"
#include "dispatcher/loop/loop.h"

#define PEER_OUT_MAX (64u << 20)     /* bytes of frames that wait to be written */
#define PEER_CLOSE_NS 10000000000ull /* for the other side to read the last frame */

struct peer;

enum peer_mode {
    PEER_FRAMES, /* what comes are frames */
    PEER_STREAM, /* bytes of a stream */
    PEER_PAUSED, /* nothing is read */
};

/* All calls come from peer_handle or peer_tick, none from the functions below. */
struct peer_handler {
    void (*frame)(void *ctx, const struct cw_header *header, const uint8_t *body);
    /* Where bytes of the stream go: not none while the mode is PEER_STREAM. */
    void (*space)(void *ctx, uint8_t **at, size_t *size);
    void (*came)(void *ctx, size_t size);
    /* What peer_lend gave is written. */
    void (*written)(void *ctx);
    /* Its patience has come to an end. */
    void (*late)(void *ctx);
    /* The connection is over; the last call. Then peer_free is to be called. */
    void (*over)(void *ctx);
};

/* Takes the descriptor. NULL without memory, with it closed. */
struct peer *peer_new(struct loop *loop, int fd, const struct peer_handler *handler, void *ctx);
void peer_free(struct peer *peer);

void peer_set_mode(struct peer *peer, enum peer_mode mode);

/* For how long it may take until the next change of mode or patience, or byte of a stream in either
 * direction; LOOP_NEVER: no bound. peer_tick looks at the time, and calls `late`. */
void peer_set_patience(struct peer *peer, uint64_t ns);
void peer_tick(struct peer *peer);

/* A frame is sent: its body is to be filled with `length` bytes. NULL: the connection closes. */
uint8_t *peer_frame(struct peer *peer, uint8_t type, uint32_t length);
/* Sends bytes behind all frames; they stay the caller's, and there, until `written`. */
void peer_lend(struct peer *peer, const uint8_t *bytes, size_t size);

/* Once all is written, the connection is closed; what still comes is not looked at. */
void peer_close(struct peer *peer);
/* The same, after REFUSED. */
void peer_refuse(struct peer *peer, enum cw_refusal code, uint32_t rank, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool peer_closes(const struct peer *peer);
/* Now, whatever waits. */
void peer_abandon(struct peer *peer);

#endif
