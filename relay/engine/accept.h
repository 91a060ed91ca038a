/* What every engine does in the same way: connections that begin or end, and what the core asks
 * for beside them. */
#ifndef RELAY_ENGINE_ACCEPT_H
#define RELAY_ENGINE_ACCEPT_H

#include "relay/engine/engine.h"

#define RELAY_ACCEPT_MAX 64 /* connections accepted before others get their turn */

/* A descriptor in reserve, given up for a moment to refuse a connection when descriptors run out:
 * a client that waits for ever in the backlog would know nothing. */
struct relay_spare {
    int fd;
    uint32_t refused; /* connections since that was said */
    uint64_t said_ns; /* 0: never */
};

/* Returns 0 or CW_ESYS (errno says why). */
int relay_spare_open(struct relay_spare *spare);
void relay_spare_close(struct relay_spare *spare);

/* A connection that waited: one that was accepted, or one that our own dialler made. */
struct relay_accepted {
    int fd;        /* negative: our dialler could not make it */
    bool is_local; /* its client is on this machine */
    bool is_dialled;
    struct relay_dialled dialled;
};

/* The next connection that waits; false when there is none now. One that came when the descriptor
 * limit was reached is refused, with a line on stderr: one a second, which counts. */
bool relay_accept(const struct relay_listener *listener, struct relay_spare *spare,
                  struct relay_accepted *accepted);

/* Tells the core of a link that our dialler could not make. Returns false where there is a
 * connection. Under the same rule as the core's functions. */
bool relay_accept_none(struct relay_core *core, const struct relay_accepted *accepted);

/* Refuses an accepted connection because the descriptor limit is reached, likewise. */
void relay_refuse(int fd, struct relay_spare *spare);

/* Registers it with the core. NULL without memory. Under the same rule as the core's functions. */
struct relay_conn *relay_accept_conn(struct relay_core *core, const struct relay_accepted *accepted,
                                     uint64_t now_ns, void *owner);

/* After what there was to write has been written: does what the core put off until then, and what
 * it asks for. True: its disk had results, and there may be more to write. Under the same rule as
 * the core's functions. */
bool relay_settle(const struct relay_engine_config *config);

/* Closes a connection so that what was written last arrives: bytes that nobody read would make TCP
 * reset it. */
void relay_hang_up(int fd);

#endif
