/* What one thread observes in poll(): a set that it makes anew before each wait, from what it may
 * see to now. Others change connections meanwhile and interrupt the wait. */
#ifndef RELAY_ENGINE_OBSERVED_H
#define RELAY_ENGINE_OBSERVED_H

#include "relay/engine/shared.h"

#include <poll.h>
#include <stdatomic.h>

struct observed {
    int wake_fd;
    atomic_bool woken; /* there is something new to see to */
    bool asleep;       /* in a poll() that wake_fd must interrupt */
    bool held;         /* a connection is left out, to be looked at again soon */
    int count;         /* entries in use, wake_fd's the first */
    int size;
    struct pollfd *fds;
    struct shared_conn **conns; /* parallel to fds */
    uint64_t begun_ns;          /* when it was made */
    uint64_t active_ns;         /* when there was last something to do */
    struct cw_spin spin;
};

/* Returns 0 or a negative code. */
int observed_open(struct observed *o, struct cw_err *err);
void observed_close(struct observed *o);

/* Begins a set anew: empty. [lock] */
void observed_begin(struct observed *o);
/* The connection is to be told of when it can be read or written; it stays meanwhile. [lock] */
void observed_add(struct observed *o, struct shared_conn *c, short events);
/* The same for one that is to be read: not now when it is held. [lock] */
void observed_add_input(struct shared *s, struct observed *o, struct shared_conn *c, short events);

/* Looks, for the engine's time to spin and then asleep, until something can be done or it is
 * interrupted. Returns how many connections are ready: those with fds[i].revents, i from 1 on.
 * [lock, lets go] */
int observed_wait(struct shared *s, struct observed *o);
/* [lock] */
void observed_interrupt(struct shared *s, struct observed *o);

#endif
