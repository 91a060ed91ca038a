/* A relay: its core, and in place of an engine the scheduler, which serves one connection a step.
 */
#ifndef SIM_RELAY_H
#define SIM_RELAY_H

#include "common/dial.h"
#include "common/wire.h"
#include "relay/core/core.h"
#include "tests/lib/fake_disk.h"
#include "tests/sim/descriptors.h"
#include "tests/sim/task.h"

/* One of a relay's connections. */
struct sim_conn {
    struct sim_conn *next;
    struct sim_relay *relay;
    struct relay_conn *conn; /* NULL: it has not been accepted; or it is closed */
    bool accepted;
    bool local; /* its client is on the same machine */
    struct cw_wire wire;
    bool ready;        /* there is something to write, or it is to be closed */
    bool full;         /* ... but there was no room */
    bool told_rings;   /* the core knows that it has rings */
    bool asleep;       /* its rings are not looked at until the socket says something */
    bool looked;       /* COVER came, and since then there was nothing to be read here */
    uint32_t patience; /* it gets its turn one time in so many */
};

/* A process of a relay. */
struct sim_relay {
    struct sim_relay *next; /* of all that there were */
    uint32_t number;
    uint32_t incarnation; /* on another host than those before */
    uint32_t host;
    uint64_t tick_ns;
    uint64_t reachable_ns;                       /* not before */
    struct relay_core *core;                     /* NULL: its host is gone */
    struct ledger_memory *left;                  /* what outlives it; NULL: nothing does */
    struct ledger_memory *copies[CW_RELAYS_MAX]; /* of others' logs; NULL: there are none */
    struct sim_conn *conns;
    struct cw_dial *dial;
    struct fake_disk disk;
    struct relay_journal journal;
};

void cores_open(void);
/* Some connections first, and then all that is left. */
void cores_close(void);

static inline struct socket *conn_socket(const struct sim_conn *c)
{
    return descriptor_of(c->wire.fd)->socket;
}
static inline bool conn_has_rings(const struct sim_conn *c)
{
    return c->wire.mode == CW_WIRE_RINGS;
}

/* The process of a relay that has this address, or NULL; and where the one of now is. */
struct sim_relay *relay_at(const char *address);
void relay_address(char *to, size_t size, uint32_t number);

/* Connects to it over this way; returns the client's descriptor. */
int relay_connect(struct sim_relay *relay, const char *name, const struct connection_way *way,
                  bool local);
/* Whose thread is being started; NULL: the dispatcher's. */
const struct sim_relay *relay_dialler(void);

/* A relay's process is killed, or its machine loses power, and another one takes its place. */
void core_kill(struct sim_relay *relay);
/* The same with the channel memory of its host; no process of its ranks lives. */
void core_move(struct sim_relay *relay);

/* It is gone, with its host. */
void core_lose(struct sim_relay *relay);
/* Another process of relay `number` takes its place where it was copied to: at relay `at`. */
void core_succeed(uint32_t number, uint32_t at);

/* Whether the home relay of a rank knows this point of it, and hears nothing of the rank. */
bool core_knows_point(uint32_t rank, const struct cw_point *point);

/* All relays that there are. */
#define each_core(relay)                                                                           \
    struct sim_relay *relay = relays_next(sim.relays);                                             \
    relay;                                                                                         \
    relay = relays_next(relay->next)
/* The first one from here on that is there. */
struct sim_relay *relays_next(struct sim_relay *relay);

void cores_tick(void);
/* One request to its disk is carried out. */
void core_disk_step(struct sim_relay *relay);
/* Is there something to do for it, and doing it. */
bool conn_can(struct sim_conn *c);
void conn_step(struct sim_conn *c);
/* The earliest time at which something is due. */
uint64_t cores_deadline_ns(void);
/* sleepers.c: nothing moves, so nobody sleeps beside bytes, or room, that it waits for. */
void cores_check_sleep(void);
/* What there is for the dispatcher is written, all of it that fits. Returns whether there was any.
 */
bool cores_drain(void);

#endif
