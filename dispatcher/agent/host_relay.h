/* The relay of this host: started for the dispatcher, and, where its log outlives it, started again
 * when it dies. It listens at a socket in the agent's directory, and for other hosts over TCP. */
#ifndef DISPATCHER_HOST_RELAY_H
#define DISPATCHER_HOST_RELAY_H

#include "dispatcher/loop/loop.h"
#include "dispatcher/mux/agent_frames.h"

#include <sys/types.h>

struct host_relay;

/* NULL with *err set: CW_ENOMEM. `dir`: of the agent. All are borrowed. */
struct host_relay *host_relay_new(struct loop *loop, struct mux *mux, const char *dir,
                                  struct cw_err *err);
/* It ends; waits for that, for a bounded time. NULL is allowed. */
void host_relay_free(struct host_relay *relay);

/* AGENT_RELAY; what becomes of it is told in frames. Errors: CW_EPROTO. */
int host_relay_start(struct host_relay *relay, const uint8_t *body, size_t size,
                     struct cw_err *err);

/* A drill: SIGKILL. */
void host_relay_kill(struct host_relay *relay);

/* 0: there is none. */
pid_t host_relay_pid(const struct host_relay *relay);

/* It has ended, with `status` as of waitpid(2); the caller has waited for it. */
void host_relay_ended(struct host_relay *relay, int status);

#endif
