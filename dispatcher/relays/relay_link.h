/* The dispatcher's session with a relay, in which the job is open: what the relay says, and what it
 * is told. It outlives its connection: docs/protocol.md, "Sessions". Never blocks. */
#ifndef DISPATCHER_RELAY_LINK_H
#define DISPATCHER_RELAY_LINK_H

#include "common/frame.h"
#include "common/kept.h"

#define RELAY_LINK_BUFFER 65536

struct relay_link {
    int fd; /* non-blocking; -1: there is no connection */
    struct cw_session session;
    struct cw_kept kept; /* what the relay is told; its bytes are owned */
    size_t used;
    uint8_t buffer[RELAY_LINK_BUFFER];
};

struct relay_link_ops {
    void (*notice)(void *ctx, const struct cw_notice_body *notice);
    void (*stats)(void *ctx, const struct cw_stats *stats);
    void (*grown)(void *ctx, const struct cw_grown *grown);
    void (*trimmed)(void *ctx, const struct cw_trim *trimmed);
};

/* Without a connection; `room`: bytes that the relay can be told before it acknowledges any.
 * Errors: CW_ENOMEM. */
int relay_link_init(struct relay_link *link, size_t room, struct cw_err *err);
void relay_link_free(struct relay_link *link);

/* The session is open on this connection, which is the link's from now on. */
void relay_link_begin(struct relay_link *link, int fd, const struct cw_session *session);

/* The same session goes on over another connection, the link's from now on: the relay has received
 * all before this position. Errors: CW_EPROTO: it cannot have; the connection is closed. */
int relay_link_resume(struct relay_link *link, int fd, uint64_t received, struct cw_err *err);

/* Takes what has come. Errors: CW_ECLOSED: the connection broke, and the session can be resumed;
 * CW_EAUTH (refused) and CW_EPROTO: the session is over. */
int relay_link_input(struct relay_link *link, const struct relay_link_ops *ops, void *ctx,
                     struct cw_err *err);

/* Tells it something, now or as soon as it can take it. Errors: CW_ELIMIT: there is no room, and it
 * is not told. */
int relay_link_tell(struct relay_link *link, uint8_t type, const void *body, uint32_t size,
                    struct cw_err *err);

/* Sends what the relay can take. Returns whether there is more to be sent over this connection,
 * once it is writable. */
bool relay_link_flush(struct relay_link *link);

/* Closes the connection; the session can be resumed. */
void relay_link_break(struct relay_link *link);

#endif
