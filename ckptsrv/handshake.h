/* A checkpoint server's side of the handshake. docs/protocol.md, sections
 * "Opening a session" and "Credentials". No I/O. */
#ifndef CKPTSRV_HANDSHAKE_H
#define CKPTSRV_HANDSHAKE_H

#include "common/stranger.h"

/* Judges the body of a stranger's HELLO. Sets *hello, and *welcome with its mac.
 * Returns 0, or an enum cw_refusal with the text of *err set. */
int handshake_judge(const struct cw_stranger *stranger, const uint8_t key[CW_KEY_SIZE],
                    const uint8_t *body, struct cw_hello *hello, struct cw_welcome *welcome,
                    struct cw_err *err);

#endif
