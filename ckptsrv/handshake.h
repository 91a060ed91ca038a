/* A checkpoint server's side of the handshake. docs/protocol.md, sections
 * "Opening a session" and "Credentials". No I/O. */
#ifndef CKPTSRV_HANDSHAKE_H
#define CKPTSRV_HANDSHAKE_H

#include "common/frame.h"

/* Judges the body of HELLO, which answers our `nonce`. Sets *hello, and *welcome with its mac.
 * Returns 0, or an enum cw_refusal with the text of *err set. */
int handshake_judge(const uint8_t key[CW_KEY_SIZE], const uint8_t nonce[CW_NONCE_SIZE],
                    const uint8_t *body, struct cw_hello *hello, struct cw_welcome *welcome,
                    struct cw_err *err);

#endif
