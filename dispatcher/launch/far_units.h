/* The units of a job, on its hosts and on this machine: their nodes start them, and tell what
 * becomes of them. In the job's loop. */
#ifndef DISPATCHER_FAR_UNITS_H
#define DISPATCHER_FAR_UNITS_H

#include "common/unit.h"
#include "dispatcher/launch/nodes.h"

struct far_units;

/* What becomes of one, in the order of struct unit_ops. */
struct units_events {
    /* `place`: of a server its directory; of a relay its socket. */
    void (*started)(void *ctx, uint32_t number, pid_t pid, const char *place);
    /* `tcp`: "": it does not listen there. `in_memory`: what it keeps is. */
    void (*listens)(void *ctx, uint32_t number, const char *local, const char *tcp, bool in_memory);
    void (*ended)(void *ctx, uint32_t number, int status, const char *why);
    void (*failed)(void *ctx, uint32_t number, int status, const struct cw_err *err);
    /* The host that it was on is lost. */
    void (*lost)(void *ctx, uint32_t number, const struct cw_err *err);
};

/* A user of the nodes. NULL with *err set: CW_ENOMEM. */
struct far_units *far_units_new(struct nodes *nodes, const struct units_events *events, void *ctx,
                                struct cw_err *err);
/* After the nodes. NULL is allowed. */
void far_units_free(struct far_units *units);

/* It is started on this host: once. Errors: as nodes_tell. */
int far_units_start(struct far_units *units, uint32_t host, const struct node_unit *order,
                    struct cw_err *err);
/* A drill: SIGKILL. */
void far_units_kill(struct far_units *units, uint32_t number);

#endif
