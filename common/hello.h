/* The opener's side of a handshake with a relay: for ranks, dispatchers and other relays. */
#ifndef CW_HELLO_H
#define CW_HELLO_H

#include "common/frame.h"
#include "common/wire.h"

/* Opens a session over the wire of a connected non-blocking socket: reads CHALLENGE, sends `hello`
 * (the caller sets role, job, rank, incarnation, resume_ms and CW_HELLO_LOG; the rest is set
 * here), and reads WELCOME. Both sides prove that they know `key`. `session` is all zero before.
 * Blocks for at most `timeout_ms` between bytes. Errors: CW_ECLOSED (the connection broke),
 * CW_ETIME, CW_EAUTH (refused, or not our relay), CW_EBUSY, CW_EPROTO. */
int cw_hello_open(struct cw_wire *wire, struct cw_session *session, struct cw_hello *hello,
                  const uint8_t key[CW_KEY_SIZE], int timeout_ms, struct cw_welcome *welcome,
                  struct cw_err *err);

/* Resumes a session over the wire of a new connection: the same handshake, numbered for itself.
 * `received`: bytes of the relay's stream received so far. After it welcome->received says from
 * where on our stream is to be sent; the caller checks it (cw_kept_rewind). Errors: as above;
 * after CW_ECLOSED, CW_ETIME and CW_EBUSY another connection may be tried, all others are final. */
int cw_hello_resume(struct cw_wire *wire, uint64_t received, struct cw_hello *hello,
                    const uint8_t key[CW_KEY_SIZE], int timeout_ms, struct cw_welcome *welcome,
                    struct cw_err *err);

/* Reads one frame whose body fits CW_FRAME_BODY_MAX bytes, from such a wire. Blocks for at most
 * `timeout_ms` between bytes. Errors: CW_ECLOSED, CW_ETIME, CW_EPROTO. */
int cw_read_frame(struct cw_wire *wire, struct cw_session *session, struct cw_header *header,
                  uint8_t *body, int timeout_ms, struct cw_err *err);

/* Writes to such a wire; blocks for at most `timeout_ms` at a time. Errors: CW_ECLOSED, CW_ETIME
 * (the other side does not read). */
int cw_write_all(struct cw_wire *wire, const uint8_t *from, size_t size, int timeout_ms,
                 struct cw_err *err);

#endif
