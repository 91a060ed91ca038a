/* The job's own checkpoint server where it stands on one of the job's hosts: started through the
 * agent there, which tells what becomes of it. When that host is lost there is none any more. */
#ifndef DISPATCHER_FAR_SERVER_H
#define DISPATCHER_FAR_SERVER_H

#include "dispatcher/images/servers.h"
#include "dispatcher/mux/agent_states.h"
#include "dispatcher/remote/agents.h"
#include "dispatcher/run/server_news.h"

/* Everything borrowed; a caller sets all but the last three. */
struct far_server {
    struct agents *agents; /* NULL: the server is on this machine, and nothing here is of use */
    uint32_t host;
    const char *listen; /* where other hosts reach it, the port left out (0); "": they need not */
    const char *dir;    /* of its images; NULL: one is made there */
    uint64_t bytes_max; /* 0: a share of what is free there */
    struct servers *servers;
    struct server_news *news;
    /* Once it was settled: it will not be there any more. */
    void (*failed)(void *ctx, const struct cw_err *err);
    void *ctx;
    enum agent_state state;
    bool settled;      /* it listens; or never will: */
    struct cw_err why; /* its code is 0, or says so */
};

/* Hears of it from the agents. Ranks are told its address at their start: that is to wait until it
 * is settled. */
void far_server_open(struct far_server *server);

/* Starts it; with a struct far_server as `ctx`. */
extern const struct servers_elsewhere far_server_ops;

#endif
