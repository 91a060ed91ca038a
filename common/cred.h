/* Keys and credentials: who may speak for a job or a rank. Keyed BLAKE2b (RFC 7693) by libsodium.
 *
 *   relay key   32 random bytes, shared by a relay and the dispatchers that may use it
 *   job key     H(relay key, "job" | job id): the dispatcher of one job
 *   rank key    H(job key, "rank" | rank | incarnation): one process, given by its dispatcher
 *   link key    H(job key, "link" | number): a relay of the job that connects to this one
 *
 * Each side proves that it knows the key by a MAC over the HELLO and both nonces; no key is ever
 * sent, but for the link key, which the dispatcher gives to the connecting relay under the job key
 * that it shares with that one (XSalsa20 and Poly1305). */
#ifndef CW_CRED_H
#define CW_CRED_H

#include "common/frame.h"

void cw_cred_job_key(uint8_t key[CW_KEY_SIZE], const uint8_t relay_key[CW_KEY_SIZE],
                     const uint8_t job[CW_ID_SIZE]);
void cw_cred_rank_key(uint8_t key[CW_KEY_SIZE], const uint8_t job_key[CW_KEY_SIZE], uint32_t rank,
                      uint32_t incarnation);

void cw_cred_link_key(uint8_t key[CW_KEY_SIZE], const uint8_t job_key[CW_KEY_SIZE], uint32_t relay);

/* A key under another one, and back. Errors: CW_EAUTH: it was not sealed so. */
void cw_cred_seal(uint8_t sealed[CW_SEALED_SIZE], const uint8_t key[CW_KEY_SIZE],
                  const uint8_t under[CW_KEY_SIZE]);
int cw_cred_open(uint8_t key[CW_KEY_SIZE], const uint8_t sealed[CW_SEALED_SIZE],
                 const uint8_t under[CW_KEY_SIZE]);

/* The MAC of a HELLO (by = "client") or of the WELCOME that answers it (by = "relay"). */
void cw_cred_mac(uint8_t mac[CW_MAC_SIZE], const uint8_t key[CW_KEY_SIZE], const char *by,
                 const struct cw_hello *hello, const uint8_t relay_nonce[CW_NONCE_SIZE]);

/* Constant time. */
bool cw_cred_equal(const uint8_t a[CW_MAC_SIZE], const uint8_t b[CW_MAC_SIZE]);

#endif
