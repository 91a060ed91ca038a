/* Hosts, each with a relay and the ranks at home there: one may be lost with all that is on it, or
 * be cut off, and go on for a while. */
#ifndef SIM_HOSTS_H
#define SIM_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_HOSTS 5u
#define SIM_HOST_DISPATCHER (SIM_HOSTS - 1) /* which is not lost */

struct connection;

struct sim_host {
    uint32_t cut;      /* bits: the hosts that it does not reach, nor they it ... */
    uint64_t cut_ns;   /* ... until then */
    uint64_t known_ns; /* when the dispatcher takes it for lost; 0: never */
    uint64_t dies_ns;  /* when all that is on it ends, likewise */
    bool known;        /* it does */
    bool dead;
};

/* It is lost; false: it was before. */
bool hosts_lose(uint32_t host);
/* Whether bytes come from one to the other. */
bool hosts_reach(uint32_t from, uint32_t to);
/* The connection is between these. */
void hosts_connect(struct connection *connection, uint32_t from, uint32_t to);

/* One step has passed. */
void hosts_step(void);
/* One more is known to be lost; false: none is. */
bool hosts_next_known(uint32_t *host);
bool hosts_has_known(void);
uint64_t hosts_deadline_ns(void);

#endif
