#include "common/stranger.h"
#include "common/cred.h"

#include <string.h>

void cw_strangers_init(struct cw_strangers *strangers)
{
    TAILQ_INIT(&strangers->all);
    strangers->count = 0;
}

void *cw_strangers_first(const struct cw_strangers *strangers, uint32_t most)
{
    return strangers->count < most ? NULL : TAILQ_FIRST(&strangers->all)->who;
}

struct cw_challenge cw_stranger_enter(struct cw_strangers *strangers, struct cw_stranger *stranger,
                                      void *who, const uint8_t nonce[CW_NONCE_SIZE])
{
    struct cw_challenge challenge = {.magic = CW_PROTOCOL_MAGIC, .version = CW_PROTOCOL_VERSION};

    stranger->of = strangers;
    stranger->who = who;
    memcpy(stranger->nonce, nonce, CW_NONCE_SIZE);
    memcpy(challenge.nonce, nonce, CW_NONCE_SIZE);
    TAILQ_INSERT_TAIL(&strangers->all, stranger, in_all);
    strangers->count++;
    return challenge;
}

void cw_stranger_leave(struct cw_stranger *stranger)
{
    if (!stranger->of)
        return;
    TAILQ_REMOVE(&stranger->of->all, stranger, in_all);
    stranger->of->count--;
    stranger->of = NULL;
}

int cw_stranger_hello(const uint8_t *body, const char *we, struct cw_hello *hello,
                      struct cw_err *err)
{
    if (!cw_hello_get(body, hello)) {
        cw_err_set(err, CW_EPROTO, "HELLO of something else than Causeway");
        return CW_REFUSED_PROTOCOL;
    }
    if (hello->version == CW_PROTOCOL_VERSION)
        return 0;
    cw_err_set(err, CW_EPROTO, "protocol version %u, the %s speaks %u", hello->version, we,
               CW_PROTOCOL_VERSION);
    return CW_REFUSED_VERSION;
}

bool cw_stranger_proves(const struct cw_stranger *stranger, const struct cw_hello *hello,
                        const uint8_t key[CW_KEY_SIZE])
{
    uint8_t mac[CW_MAC_SIZE];

    cw_cred_mac_hello(mac, key, hello, stranger->nonce);
    return cw_cred_equal(mac, hello->mac);
}
