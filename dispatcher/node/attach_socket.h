/* The socket of a node, for connections after its first one. Each has to know the key of the
 * session; one at a time is heard, the newest. */
#ifndef DISPATCHER_ATTACH_SOCKET_H
#define DISPATCHER_ATTACH_SOCKET_H

#include "dispatcher/wire/greeting.h"
#include "dispatcher/wire/wire.h"

#define ATTACH_SOCKET_BACKLOG 8

struct attach_socket;

/* Someone wants to go on with the session. When it returns CW_OK, it has taken the connection of
 * `wire` over; else, with *err set, the other side is told so. */
typedef int attach_socket_take(void *ctx, const struct greeting_attach *attach, struct wire *wire,
                               struct cw_err *err);

/* NULL with *err set: CW_ESYS, CW_ENOMEM. `dir` is of the node. */
struct attach_socket *attach_socket_open(struct loop *loop, const char *dir,
                                         attach_socket_take *attach, void *ctx, struct cw_err *err);
void attach_socket_close(struct attach_socket *attach_socket); /* NULL is allowed */

#endif
