#include "common/cred.h"

#include <sodium.h>

static void hash(uint8_t *out, const uint8_t *key, const uint8_t *bytes, size_t size)
{
    crypto_generichash(out, CW_KEY_SIZE, bytes, size, key, CW_KEY_SIZE);
}

void cw_cred_job_key(uint8_t key[CW_KEY_SIZE], const uint8_t relay_key[CW_KEY_SIZE],
                     const uint8_t job[CW_ID_SIZE])
{
    uint8_t text[3 + CW_ID_SIZE];
    struct cw_writer w = cw_writer(text, sizeof(text));

    cw_put_bytes(&w, "job", 3);
    cw_put_bytes(&w, job, CW_ID_SIZE);
    hash(key, relay_key, text, w.used);
}

void cw_cred_rank_key(uint8_t key[CW_KEY_SIZE], const uint8_t job_key[CW_KEY_SIZE], uint32_t rank,
                      uint32_t incarnation)
{
    uint8_t text[4 + 8];
    struct cw_writer w = cw_writer(text, sizeof(text));

    cw_put_bytes(&w, "rank", 4);
    cw_put_u32(&w, rank);
    cw_put_u32(&w, incarnation);
    hash(key, job_key, text, w.used);
}

void cw_cred_mac(uint8_t mac[CW_MAC_SIZE], const uint8_t key[CW_KEY_SIZE], const char *by,
                 const struct cw_hello *hello, const uint8_t relay_nonce[CW_NONCE_SIZE])
{
    uint8_t text[16 + CW_HELLO_SIZE + CW_NONCE_SIZE];
    uint8_t encoded[CW_HELLO_SIZE];
    struct cw_hello bare = *hello;
    struct cw_writer w = cw_writer(text, sizeof(text));

    memset(bare.mac, 0, sizeof(bare.mac));
    cw_hello_put(encoded, &bare);
    cw_put_bytes(&w, by, strnlen(by, 16));
    cw_put_bytes(&w, encoded, sizeof(encoded));
    cw_put_bytes(&w, relay_nonce, CW_NONCE_SIZE);
    hash(mac, key, text, w.used);
}

bool cw_cred_equal(const uint8_t a[CW_MAC_SIZE], const uint8_t b[CW_MAC_SIZE])
{
    return sodium_memcmp(a, b, CW_MAC_SIZE) == 0;
}
