/* The services of all sites of a grid are started, ended or looked at: their hosts are asked over
 * ssh, all at once, each with a bound on its time. */
#ifndef DISPATCHER_SERVICE_BATCH_H
#define DISPATCHER_SERVICE_BATCH_H

#include "dispatcher/hosts/grid_state.h"
#include "dispatcher/hosts/plan.h"
#include "dispatcher/wire/service_format.h"

#define BATCH_WHY_MAX 1024u                  /* bytes of why a host cannot be asked */
#define BATCH_HOSTS_MAX (2 * GRID_SITES_MAX) /* asked at a time: relays' and servers' hosts */
#define BATCH_ROWS_MAX (PLAN_SERVICES * GRID_SITES_MAX)
#define BATCH_HELLO_NS 60000000000ull  /* until a host has said which version it is */
#define BATCH_ANSWER_NS 70000000000ull /* until it has answered a request */

struct service_batch {
    struct grid_place place;
    struct plan plan;        /* of its grid */
    const char *op;          /* "start", "stop" or "look" */
    uint32_t site;           /* GRID_OUTSIDE: all sites */
    bool publish_only;       /* no other service */
    const char *file;        /* of the grid, for what is to be typed */
    char causeway[PATH_MAX]; /* this program, where a site names no other */
};

struct service_row {
    uint32_t site, host; /* of the site */
    enum plan_service service;
    bool reached; /* the host has answered; else why not: */
    char why[BATCH_WHY_MAX];
    struct service_answer answer;
};

/* Asks for all services, and fills the rows, BATCH_ROWS_MAX of them, in the order of sites and
 * services. Returns how many. Blocks. Errors: CW_ENOMEM. */
int service_batch_run(const struct service_batch *batch, struct service_row *rows,
                      struct cw_err *err);

#endif
