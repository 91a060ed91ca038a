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
    uint32_t patience; /* it gets its turn one time in so many */
};

struct sim_relay {
    uint32_t number;
    uint64_t tick_ns;
    uint64_t reachable_ns; /* not before */
    struct relay_core *core;
    struct ledger_memory *left; /* what outlives it; NULL: nothing does */
    struct sim_conn *conns;
    struct cw_dial *dial;
    struct fake_disk disk;
    struct relay_journal journal;
};

void cores_open(void);
/* Some connections first, and then all that is left. */
void cores_close(void);

/* The relay of this address, and the address of that one for another, or WAYS_DISPATCHER. Ranks
 * have that of the latter. */
struct sim_relay *relay_at(const char *address, uint32_t *from);
void relay_address(char *to, size_t size, uint32_t number, uint32_t from);

/* Connects to it over this way; returns the client's descriptor. */
int relay_connect(struct sim_relay *relay, const char *name, const struct connection_way *way,
                  bool local);

/* A relay's process is killed, or its machine loses power, and another one takes its place. */
void core_kill(struct sim_relay *relay);
/* The same with the channel memory of its host; no process of its ranks lives. */
void core_lose(struct sim_relay *relay);

/* Whether the home relay of a rank knows this point of it, and hears nothing of the rank. */
bool core_knows_point(uint32_t rank, const struct cw_point *point);

void cores_tick(void);
/* One request to its disk is carried out. */
void core_disk_step(struct sim_relay *relay);
/* Is there something to do for it, and doing it. */
bool conn_can(struct sim_conn *c);
void conn_step(struct sim_conn *c);
/* The earliest time at which something is due. */
uint64_t cores_deadline_ns(void);
/* Nothing moves: nobody sleeps beside bytes, or room, that it waits for. */
void cores_check_sleep(void);
/* What there is for the dispatcher is written, all of it that fits. Returns whether there was any.
 */
bool cores_drain(void);

#endif
