/* What every engine does alike with connections that begin or end. */
#ifndef RELAY_ENGINE_ACCEPT_H
#define RELAY_ENGINE_ACCEPT_H

#include "relay/engine/engine.h"

/* A descriptor in reserve, given up for a moment to refuse a connection when descriptors run out:
 * a client that waits for ever in the backlog would know nothing. */
struct relay_spare {
    int fd;
};

/* Returns 0 or CW_ESYS (errno says why). */
int relay_spare_open(struct relay_spare *spare);
void relay_spare_close(struct relay_spare *spare);

/* The next connection that waits, or -1 when there is none now. One that came when the descriptor
 * limit was reached is refused, with a line on stderr. */
int relay_accept(const struct relay_listener *listener, struct relay_spare *spare);

/* Registers an accepted connection with the core. NULL without memory. Under the same rule as the
 * core's functions. */
struct relay_conn *relay_accept_conn(struct relay_core *core, uint64_t now_ns, void *owner);

/* Closes a connection so that what was written last arrives: bytes that nobody read would make TCP
 * reset it. */
void relay_hang_up(int fd);

#endif
