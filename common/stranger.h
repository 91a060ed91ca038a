/* Those who have connected and have not proved who they are: how many there may be, how they are
 * challenged, and how their HELLO is answered; at relays and at checkpoint servers.
 * docs/protocol.md, "Opening a session" and "Credentials". No I/O. */
#ifndef CW_STRANGER_H
#define CW_STRANGER_H

#include "common/frame.h"

#include <sys/queue.h>

#define CW_STRANGERS_MAX 1024u        /* at a time */
#define CW_STRANGER_NS 10000000000ull /* until HELLO has come */
/* What the one that has to go is told, with LIMIT. */
#define CW_STRANGER_GOES                                                                           \
    "too many connections have not said who they are, and this one has had the most time; try "    \
    "again"

/* Those that there are, the first that came first. */
TAILQ_HEAD(cw_stranger_list, cw_stranger);
struct cw_strangers {
    struct cw_stranger_list all;
    uint32_t count;
};

struct cw_stranger {
    TAILQ_ENTRY(cw_stranger) in_all;
    struct cw_strangers *of; /* NULL: it is none any more */
    void *who;               /* the caller's */
    uint8_t nonce[CW_NONCE_SIZE];
};

void cw_strangers_init(struct cw_strangers *strangers);

/* Who has to go before another one comes, having had the most time; NULL: there are less than
 * `most`. */
void *cw_strangers_first(const struct cw_strangers *strangers, uint32_t most);

/* `nonce`: fresh random bytes. Returns what it is to be sent. */
struct cw_challenge cw_stranger_enter(struct cw_strangers *strangers, struct cw_stranger *stranger,
                                      void *who, const uint8_t nonce[CW_NONCE_SIZE]);

/* It has proved who it is, or ends. Nothing happens where it is none. */
void cw_stranger_leave(struct cw_stranger *stranger);

/* Reads the body of HELLO, to what is called `we`. Returns 0, or an enum cw_refusal with the text
 * of *err set. */
int cw_stranger_hello(const uint8_t *body, const char *we, struct cw_hello *hello,
                      struct cw_err *err);

/* Whether who says this knows the key. */
bool cw_stranger_proves(const struct cw_stranger *stranger, const struct cw_hello *hello,
                        const uint8_t key[CW_KEY_SIZE]);

#endif
