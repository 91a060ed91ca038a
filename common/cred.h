/* Keys and credentials: which process may speak for a job, a rank or a relay. Keyed BLAKE2b (RFC
 * 7693) by libsodium.
 *
 *   relay key   32 random bytes, shared by a relay and the dispatchers that may use it
 *   job key     H(relay key, "job" | job id): the dispatcher of one job
 *   rank key    H(job key, "rank" | rank | incarnation): one process, given by its dispatcher
 *   link key    H(job key, "link" | number): a relay of the job that connects to this one
 *   node key    H(relay key, "node" | host): another dispatcher of a job that is left
 *   server key  H(relay key, "images"): of a job's own checkpoint servers, where it is kept
 *   mark        the first 8 bytes of H(relay key, "log"): whose log a file is
 *
 * Each side proves that it knows the key, by a MAC over both nonces and its HELLO or WELCOME. No
 * key is sent over a connection but the link key: the dispatcher sends it to the relay that is to
 * connect, sealed under the job key that both share (XSalsa20 and Poly1305).
 *
 * Thread rule: all functions from any thread. */
#ifndef CW_CRED_H
#define CW_CRED_H

#include "common/frame.h"

void cw_cred_job_key(uint8_t key[CW_KEY_SIZE], const uint8_t relay_key[CW_KEY_SIZE],
                     const uint8_t job[CW_ID_SIZE]);
void cw_cred_rank_key(uint8_t key[CW_KEY_SIZE], const uint8_t job_key[CW_KEY_SIZE], uint32_t rank,
                      uint32_t incarnation);

void cw_cred_link_key(uint8_t key[CW_KEY_SIZE], const uint8_t job_key[CW_KEY_SIZE], uint32_t relay);

void cw_cred_node_key(uint8_t key[CW_KEY_SIZE], const uint8_t relay_key[CW_KEY_SIZE],
                      uint32_t host);

void cw_cred_server_key(uint8_t key[CW_KEY_SIZE], const uint8_t relay_key[CW_KEY_SIZE]);

/* Encrypts a key under another one, and back. Errors: CW_EAUTH: it was not sealed under that key.
 */
void cw_cred_seal(uint8_t sealed[CW_SEALED_SIZE], const uint8_t key[CW_KEY_SIZE],
                  const uint8_t under[CW_KEY_SIZE]);
int cw_cred_open(uint8_t key[CW_KEY_SIZE], const uint8_t sealed[CW_SEALED_SIZE],
                 const uint8_t under[CW_KEY_SIZE]);

/* Says of a relay's key whether it is the same, and nothing else of it. */
uint64_t cw_cred_mark(const uint8_t relay_key[CW_KEY_SIZE]);

/* The MAC of a HELLO, and of the WELCOME that answers it. Each covers every field of its frame but
 * the MAC itself; that of a WELCOME covers the HELLO too. */
void cw_cred_mac_hello(uint8_t mac[CW_MAC_SIZE], const uint8_t key[CW_KEY_SIZE],
                       const struct cw_hello *hello, const uint8_t relay_nonce[CW_NONCE_SIZE]);
void cw_cred_mac_welcome(uint8_t mac[CW_MAC_SIZE], const uint8_t key[CW_KEY_SIZE],
                         const struct cw_welcome *welcome, const struct cw_hello *hello,
                         const uint8_t relay_nonce[CW_NONCE_SIZE]);

/* Constant time. */
bool cw_cred_equal(const uint8_t a[CW_MAC_SIZE], const uint8_t b[CW_MAC_SIZE]);

#endif
