/* Sessions that go on over a new connection. docs/protocol.md, "Sessions". */
#ifndef RELAY_RESUME_H
#define RELAY_RESUME_H

#include "relay/core/job.h"

/* The opener of the session `old` says HELLO with RESUME on `conn`, and has proven that it knows
 * `key`: goes on over conn, or refuses it. `old` is NULL where there is no such session. */
void resume_hello(struct relay_conn *conn, struct relay_conn *old, const struct cw_hello *hello,
                  const uint8_t key[CW_KEY_SIZE]);

/* The link whose session `old` is suspended was opened again over `conn`. */
void resume_dialled(struct relay_conn *conn, struct relay_conn *old, uint64_t received);

#endif
