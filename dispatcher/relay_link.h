/* The dispatcher's session with a relay: it opens the job there, and hears what the relay has to
 * say. */
#ifndef DISPATCHER_RELAY_LINK_H
#define DISPATCHER_RELAY_LINK_H

#include "common/frame.h"

#define RELAY_LINK_BUFFER 65536

struct relay_link {
    int fd; /* non-blocking; -1 when closed */
    struct cw_session session;
    size_t used;
    uint8_t buffer[RELAY_LINK_BUFFER];
};

struct relay_link_ops {
    void (*notice)(void *ctx, const struct cw_notice_body *notice);
    void (*stats)(void *ctx, const struct cw_stats *stats);
};

/* Connects and opens the job; `flags`: enum cw_hello_flag. Blocks. Errors: CW_ESYS, CW_EAUTH,
 * CW_EPROTO, CW_ECLOSED; `address` is named. */
int relay_link_open(struct relay_link *link, const char *address, const uint8_t job[CW_ID_SIZE],
                    uint32_t ranks, uint32_t flags, const uint8_t relay_key[CW_KEY_SIZE],
                    struct cw_err *err);

/* Takes what has come, without waiting. Errors: CW_ECLOSED, CW_EPROTO. */
int relay_link_input(struct relay_link *link, const struct relay_link_ops *ops, void *ctx,
                     struct cw_err *err);

/* Tells it something. Blocks while the relay is behind, at most as long as for opening. Errors:
 * CW_ECLOSED. */
int relay_link_tell(struct relay_link *link, uint8_t type, const uint8_t *body, uint32_t size,
                    struct cw_err *err);

/* Asks for one STATS of every rank. */
int relay_link_ask_stats(struct relay_link *link, struct cw_err *err);
void relay_link_close(struct relay_link *link);

#endif
