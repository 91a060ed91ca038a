#include "common/cred.h"

#include <sodium.h>
#include <string.h>

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

void cw_cred_link_key(uint8_t key[CW_KEY_SIZE], const uint8_t job_key[CW_KEY_SIZE], uint32_t relay)
{
    uint8_t text[4 + 4];
    struct cw_writer w = cw_writer(text, sizeof(text));

    cw_put_bytes(&w, "link", 4);
    cw_put_u32(&w, relay);
    hash(key, job_key, text, w.used);
}

void cw_cred_node_key(uint8_t key[CW_KEY_SIZE], const uint8_t relay_key[CW_KEY_SIZE], uint32_t host)
{
    uint8_t text[4 + 4];
    struct cw_writer w = cw_writer(text, sizeof(text));

    cw_put_bytes(&w, "node", 4);
    cw_put_u32(&w, host);
    hash(key, relay_key, text, w.used);
}

void cw_cred_server_key(uint8_t key[CW_KEY_SIZE], const uint8_t relay_key[CW_KEY_SIZE])
{
    hash(key, relay_key, (const uint8_t *)"images", 6);
}

_Static_assert(CW_SEALED_SIZE ==
                   crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES + CW_KEY_SIZE,
               "a sealed key is a nonce and a box");
_Static_assert(crypto_secretbox_KEYBYTES == CW_KEY_SIZE, "our keys are its keys");

uint64_t cw_cred_mark(const uint8_t relay_key[CW_KEY_SIZE])
{
    uint8_t full[CW_KEY_SIZE];
    uint64_t mark;

    hash(full, relay_key, (const uint8_t *)"log", 3);
    memcpy(&mark, full, sizeof(mark));
    return mark;
}

void cw_cred_seal(uint8_t sealed[CW_SEALED_SIZE], const uint8_t key[CW_KEY_SIZE],
                  const uint8_t under[CW_KEY_SIZE])
{
    randombytes_buf(sealed, crypto_secretbox_NONCEBYTES);
    crypto_secretbox_easy(sealed + crypto_secretbox_NONCEBYTES, key, CW_KEY_SIZE, sealed, under);
}

int cw_cred_open(uint8_t key[CW_KEY_SIZE], const uint8_t sealed[CW_SEALED_SIZE],
                 const uint8_t under[CW_KEY_SIZE])
{
    const uint8_t *box = sealed + crypto_secretbox_NONCEBYTES;

    return crypto_secretbox_open_easy(key, box, CW_SEALED_SIZE - crypto_secretbox_NONCEBYTES,
                                      sealed, under) < 0
               ? CW_EAUTH
               : CW_OK;
}

/* What both MACs cover: which frame it is, the HELLO without its MAC, and the relay's nonce. */
static void put_hello(struct cw_writer *w, const char *by, const struct cw_hello *hello,
                      const uint8_t relay_nonce[CW_NONCE_SIZE])
{
    struct cw_hello bare = *hello;

    memset(bare.mac, 0, sizeof(bare.mac));
    cw_put_bytes(w, by, strlen(by));
    cw_put_bytes(w, &bare, sizeof(bare));
    cw_put_bytes(w, relay_nonce, CW_NONCE_SIZE);
}

void cw_cred_mac_hello(uint8_t mac[CW_MAC_SIZE], const uint8_t key[CW_KEY_SIZE],
                       const struct cw_hello *hello, const uint8_t relay_nonce[CW_NONCE_SIZE])
{
    uint8_t text[6 + CW_HELLO_SIZE + CW_NONCE_SIZE];
    struct cw_writer w = cw_writer(text, sizeof(text));

    put_hello(&w, "client", hello, relay_nonce);
    hash(mac, key, text, w.used);
}

void cw_cred_mac_welcome(uint8_t mac[CW_MAC_SIZE], const uint8_t key[CW_KEY_SIZE],
                         const struct cw_welcome *welcome, const struct cw_hello *hello,
                         const uint8_t relay_nonce[CW_NONCE_SIZE])
{
    uint8_t text[5 + CW_HELLO_SIZE + CW_NONCE_SIZE + CW_WELCOME_SIZE];
    struct cw_welcome bare = *welcome;
    struct cw_writer w = cw_writer(text, sizeof(text));

    memset(bare.mac, 0, sizeof(bare.mac));
    bare.reserved = 0;
    put_hello(&w, "relay", hello, relay_nonce);
    cw_put_bytes(&w, &bare, sizeof(bare));
    hash(mac, key, text, w.used);
}

bool cw_cred_equal(const uint8_t a[CW_MAC_SIZE], const uint8_t b[CW_MAC_SIZE])
{
    return sodium_memcmp(a, b, CW_MAC_SIZE) == 0;
}
