/* A connection to a checkpoint server: frames both ways, and bytes of streams. One thread. */
#ifndef CKPTSRV_GUEST_H
#define CKPTSRV_GUEST_H

#include "common/frame.h"
#include "common/loop.h"

#define GUEST_OUT_MAX (64u << 20)     /* bytes of frames that wait to be written */
#define GUEST_CLOSE_NS 10000000000ull /* for the other side to read the last frame */

struct guest;

enum guest_mode {
    GUEST_FRAMES, /* what comes are frames */
    GUEST_STREAM, /* bytes of a stream */
    GUEST_PAUSED, /* nothing is read */
};

/* All calls come from the loop, none from the functions below. */
struct guest_handler {
    void (*frame)(void *ctx, const struct cw_header *header, const uint8_t *body);
    /* Where bytes of the stream go: not none while the mode is GUEST_STREAM. */
    void (*space)(void *ctx, uint8_t **at, size_t *size);
    void (*came)(void *ctx, size_t size);
    /* What guest_lend gave is written. */
    void (*written)(void *ctx);
    /* Its patience has come to an end. */
    void (*late)(void *ctx);
    /* The connection is over; the last call. Then guest_free is to be called. */
    void (*over)(void *ctx);
};

/* Takes the descriptor. NULL without memory, with it closed. */
struct guest *guest_new(struct loop *loop, int fd, const struct guest_handler *handler, void *ctx);
void guest_free(struct guest *guest);

void guest_set_mode(struct guest *guest, enum guest_mode mode);

/* For how long it may take until the next change of mode or patience, or byte of a stream in either
 * direction; LOOP_NEVER: no bound. Then `late` is called. */
void guest_set_patience(struct guest *guest, uint64_t ns);

/* A frame with this body is sent. False: the connection closes. */
bool guest_frame(struct guest *guest, uint8_t type, const void *body, size_t size);
/* Sends bytes behind all frames; they stay the caller's, and there, until `written`. */
void guest_lend(struct guest *guest, const uint8_t *bytes, size_t size);

/* Once all is written, the connection is closed; what still comes is not looked at. */
void guest_close(struct guest *guest);
/* The same, after REFUSED. */
void guest_refuse(struct guest *guest, enum cw_refusal code, uint32_t rank, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool guest_closes(const struct guest *guest);
/* Now, whatever waits. */
void guest_abandon(struct guest *guest);

#endif
