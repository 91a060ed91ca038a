/* The socket of a node, for connections after its first one: of the session's dispatcher, or of
 * another one of the job. One at a time is heard, the newest. */
#ifndef DISPATCHER_ATTACH_SOCKET_H
#define DISPATCHER_ATTACH_SOCKET_H

#include "dispatcher/wire/greeting.h"
#include "dispatcher/wire/wire.h"

#define ATTACH_SOCKET_BACKLOG 8

struct attach_socket;

/* Someone of this user greets (enum greeting_type). When it returns CW_OK, it has taken the
 * connection of `wire` over, or answered; else, with *err set, the other side is told so. */
typedef int attach_socket_take(void *ctx, uint32_t type, const uint8_t *body, size_t size,
                               struct wire *wire, struct cw_err *err);

/* NULL with *err set: CW_ESYS, CW_ENOMEM. `dir` is of the node. */
struct attach_socket *attach_socket_open(struct loop *loop, const char *dir,
                                         attach_socket_take *attach, void *ctx, struct cw_err *err);
void attach_socket_close(struct attach_socket *attach_socket); /* NULL is allowed */

#endif
