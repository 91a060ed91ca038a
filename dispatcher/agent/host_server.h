/* The job's own checkpoint server, where it stands on this host: started for the dispatcher, and
 * started again when it dies, as what it has stored is on disk. It listens at a socket in the
 * agent's directory, and for other hosts over TCP. */
#ifndef DISPATCHER_HOST_SERVER_H
#define DISPATCHER_HOST_SERVER_H

#include "dispatcher/loop/loop.h"
#include "dispatcher/mux/agent_frames.h"

#include <sys/types.h>

struct host_server;

/* NULL with *err set: CW_ENOMEM. `dir`: of the agent; `job`: CW_ID_SIZE bytes. All are borrowed,
 * the last two for the call. */
struct host_server *host_server_new(struct loop *loop, struct mux *mux, const char *dir,
                                    const uint8_t *job, struct cw_err *err);
/* It ends, and with it the images; waits for that, for a bounded time. NULL is allowed. */
void host_server_free(struct host_server *server);

/* AGENT_SERVER; what becomes of it is told in frames. Errors: CW_EPROTO. */
int host_server_start(struct host_server *server, const uint8_t *body, size_t size,
                      struct cw_err *err);

/* 0: there is none. */
pid_t host_server_pid(const struct host_server *server);

/* It has ended, with `status` as of waitpid(2); the caller has waited for it. */
void host_server_ended(struct host_server *server, int status);

#endif
