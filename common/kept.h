/* What one side of a session has sent or is about to send, and the other side has not acknowledged:
 * a bounded ring of bytes. Each byte has a position in the stream of its direction, counted from
 * 0 after the handshake; docs/protocol.md, "Positions". When the connection breaks, the bytes are
 * sent again from where the other side says. Pure.
 *
 *     acked <= sent <= end,  end - acked <= size
 *
 * Over a socket: put, unsent, sent; acknowledge at each ACK. Over rings, which keep the bytes
 * themselves: skip what was written there, and restore what the reader had not taken when the
 * connection broke. Bytes that are held when a session moves to rings are sent through them by
 * unsent, sent and acknowledge(kept->sent).
 *
 * Thread rule: one caller at a time. */
#ifndef CW_KEPT_H
#define CW_KEPT_H

#include "common/err.h"

#include <stdint.h>
#include <sys/uio.h>

struct cw_kept {
    uint8_t *bytes; /* `size` of them; the caller's */
    size_t size;
    uint64_t acked;  /* the other side has received all before this position */
    uint64_t sent;   /* of the next byte to send */
    uint64_t end;    /* after the last byte held */
    uint64_t opened; /* of the first byte sent over the present connection */
};

/* Holds nothing, at position 0. `bytes` stays the caller's, and must live as long as `kept`. */
void cw_kept_init(struct cw_kept *kept, uint8_t *bytes, size_t size);

/* How many bytes can be put, and how many of those held are still to be sent. */
size_t cw_kept_room(const struct cw_kept *kept);
size_t cw_kept_left(const struct cw_kept *kept);

/* Copies up to `size` bytes in, at the end. Returns how many there was room for. */
size_t cw_kept_put(struct cw_kept *kept, const void *from, size_t size);

/* The bytes that are to be sent, as up to 2 vectors, valid until the next change. Returns how many
 * vectors. */
int cw_kept_unsent(const struct cw_kept *kept, struct iovec iov[2]);
/* The first `size` of them, at most all, were sent. They are held on. */
void cw_kept_sent(struct cw_kept *kept, size_t size);

/* An ACK: the other side has received all before `position`: these bytes are held no longer. An ACK
 * that was sent again can be older than what was acknowledged otherwise: it changes nothing.
 * Errors: CW_EPROTO: it acknowledges what was not sent. */
int cw_kept_acknowledge(struct cw_kept *kept, uint64_t position);
/* A new connection, and the other side has received all before `position`: what it has not is to
 * be sent again. Errors: CW_EPROTO: it acknowledged more before, or acknowledges what was not
 * sent. */
int cw_kept_rewind(struct cw_kept *kept, uint64_t position);

/* `size` bytes were sent that need not be kept here. Nothing is held before. */
void cw_kept_skip(struct cw_kept *kept, uint64_t size);
/* The last bytes that were sent, which were not kept here, come back: they will be sent again
 * once `rewind` says from where. None of those held was sent. What is more than was sent over the
 * present connection is dropped from the front: it was part of the handshake. Errors: CW_ELIMIT:
 * there is no room for them; nothing is changed. */
int cw_kept_restore(struct cw_kept *kept, const struct iovec *iov, int count);

#endif
