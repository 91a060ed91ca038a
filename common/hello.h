/* The client's side of opening a session with a relay, for the R-device and for the dispatcher. */
#ifndef CW_HELLO_H
#define CW_HELLO_H

#include "common/frame.h"
#include "common/wire.h"

/* On a wire of a connected non-blocking socket: waits for CHALLENGE, says `hello` (role, job, rank
 * and incarnation are the caller's; the rest is filled in), and waits until it is welcome. Both
 * sides prove that they know `key`. Blocks for at most `timeout_ms` between bytes. Errors:
 * CW_ECLOSED (the connection broke), CW_EAUTH (refused, or not our relay), CW_EPROTO. */
int cw_hello_open(struct cw_wire *wire, struct cw_session *session, struct cw_hello *hello,
                  const uint8_t key[CW_KEY_SIZE], int timeout_ms, struct cw_welcome *welcome,
                  struct cw_err *err);

/* Writes to such a wire; blocks for at most `timeout_ms` at a time. Errors:
 * CW_ECLOSED, CW_EPROTO (nobody reads there). */
int cw_write_all(struct cw_wire *wire, const uint8_t *from, size_t size, int timeout_ms,
                 struct cw_err *err);

#endif
