/* A connection between a client and the relay's core: both ends' sockets, and what the engine does
 * at the relay's. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "relay/core/core.h"
#include "tests/sim/pipe.h"

#include <stdbool.h>
#include <sys/types.h>

struct sim_link {
    struct sim_link *next;
    char name[24];
    struct pipe up;   /* to the relay */
    struct pipe down; /* from it */
    struct relay_conn *conn;
    bool accepted;
    bool ready;       /* the core has said that there is something to write or to close */
    bool client_gone; /* its end is closed: the relay hears of it at gone_ns */
    bool relay_gone;
    uint64_t gone_ns;
    uint32_t patience; /* its turn at the relay is skipped unless one in so many */
};

struct sim_link *link_new(const char *name, size_t pipe_size);
void links_fini(void);

/* The client's socket: as send() and recv(), non-blocking; -1 with errno. */
ssize_t link_send(struct sim_link *link, const void *bytes, size_t size);
ssize_t link_recv(struct sim_link *link, void *to, size_t size);
bool link_readable(const struct sim_link *link);
bool link_writable(const struct sim_link *link);

/* The client's end closes; or its process dies: of what it wrote, the last may be lost. The link is
 * the relay's alone from now on. */
void link_close(struct sim_link *link);
void link_die(struct sim_link *link, uint64_t news_delay_ns);
/* The connection breaks while both ends live. */
void link_break(struct sim_link *link);

/* The relay's end: is there something to do, and doing it. */
bool link_relay_can(struct sim_link *link);
void link_relay_step(struct sim_link *link);
/* UINT64_MAX: no time is waited for. */
uint64_t link_deadline_ns(const struct sim_link *link);

/* After every call of the core. */
void links_collect(void);

#endif
