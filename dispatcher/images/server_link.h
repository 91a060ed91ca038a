/* The dispatcher's session with a checkpoint server, over one connection: docs/protocol.md,
 * "Checkpoint servers". Never blocks. */
#ifndef DISPATCHER_SERVER_LINK_H
#define DISPATCHER_SERVER_LINK_H

#include "common/frame.h"

#define SERVER_LINK_FRAME (CW_FRAME_HEADER + CW_FRAME_BODY_MAX)
#define SERVER_LINK_ROOM 65536u /* bytes that it is told before it takes any */

struct server_link {
    int fd; /* non-blocking, owned; -1: there is no connection */
    struct cw_session session;
    uint32_t used;  /* of a frame that has not come whole */
    uint32_t first; /* of `out`: sent before this ... */
    uint32_t end;   /* ... and filled up to this */
    uint8_t in[SERVER_LINK_FRAME];
    uint8_t out[SERVER_LINK_ROOM];
};

struct server_link_ops {
    void (*held)(void *ctx, const struct cw_stored *held);
    void (*held_end)(void *ctx);
    void (*stored)(void *ctx, const struct cw_stored *stored);
    void (*image)(void *ctx); /* the bytes of a stream follow; nothing more is read here */
};

/* The session is open on this connection, which is the link's from now on. */
void server_link_begin(struct server_link *link, int fd, const struct cw_session *session);

/* Takes what has come, up to a stream: reads no byte of that. Errors: CW_ECLOSED; CW_EAUTH
 * (refused, the text says why), CW_EPROTO. */
int server_link_input(struct server_link *link, const struct server_link_ops *ops, void *ctx,
                      struct cw_err *err);

/* FETCH or DROP, now or as soon as it can take it. Errors: CW_ELIMIT: it takes nothing. */
int server_link_tell(struct server_link *link, uint8_t type, const struct cw_image_ref *ref,
                     struct cw_err *err);

/* Sends what it can take. Returns whether there is more. */
bool server_link_flush(struct server_link *link);

/* Gives the connection away. */
int server_link_release(struct server_link *link);
void server_link_close(struct server_link *link);

#endif
