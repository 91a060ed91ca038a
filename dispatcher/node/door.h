/* The socket of a node, for connections after its first one. Each has to know the key of the
 * session; one at a time is heard, the newest. */
#ifndef DISPATCHER_DOOR_H
#define DISPATCHER_DOOR_H

#include "dispatcher/wire/greeting.h"
#include "dispatcher/wire/wire.h"

#define DOOR_BACKLOG 8

struct door;

/* Someone wants to go on with the session. When it returns CW_OK, it has taken the connection of
 * `wire` over; else, with *err set, the other side is told so. */
typedef int door_attach(void *ctx, const struct greeting_attach *attach, struct wire *wire,
                        struct cw_err *err);

/* NULL with *err set: CW_ESYS, CW_ENOMEM. `dir` is of the node. */
struct door *door_open(struct loop *loop, const char *dir, door_attach *attach, void *ctx,
                       struct cw_err *err);
void door_close(struct door *door); /* NULL is allowed */

#endif
