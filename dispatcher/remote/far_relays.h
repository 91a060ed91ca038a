/* The relays of the hosts of a job, one on each that has any: their agents start them, and tell
 * what becomes of them. In the job's loop. */
#ifndef DISPATCHER_FAR_RELAYS_H
#define DISPATCHER_FAR_RELAYS_H

#include "dispatcher/remote/agents.h"

struct far_relays;

/* Of the relay of a host: its process has started; where it listens, over a Unix socket and, "" if
 * not wanted, over TCP; it has ended, and is started `again` or not; it cannot be started. In this
 * order, and none of a host whose relay was not ordered. */
struct far_relays_events {
    void (*started)(void *ctx, uint32_t host, pid_t pid);
    void (*listens)(void *ctx, uint32_t host, const char *local, const char *tcp);
    void (*ended)(void *ctx, uint32_t host, bool again, int status);
    void (*failed)(void *ctx, uint32_t host, const struct cw_err *err);
};

/* A user of the agents. NULL with *err set: CW_ENOMEM. */
struct far_relays *far_relays_new(struct agents *agents, const struct far_relays_events *events,
                                  void *ctx, struct cw_err *err);
/* After the agents. NULL is allowed. */
void far_relays_free(struct far_relays *relays);

/* The host's relay is started: once. Errors: as agents_tell. */
int far_relays_start(struct far_relays *relays, uint32_t host, const struct agent_relay *relay,
                     struct cw_err *err);
/* A drill: SIGKILL. */
void far_relays_kill(struct far_relays *relays, uint32_t host);

#endif
