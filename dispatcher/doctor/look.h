/* A look at one host of a job: its report, its version against ours, its clock. Blocks, with a
 * bound on each wait; hosts are looked at in several threads. */
#ifndef DISPATCHER_LOOK_H
#define DISPATCHER_LOOK_H

#include "dispatcher/doctor/visit.h"

#define LOOK_CLOCK_ROUNDS 4u            /* questions for the time, of which the best counts */
#define LOOK_CLOCK_MAX_NS 1000000000ull /* by which a clock may differ */

struct look_config {
    struct visit_config visit;
    const char *directory; /* of a job */
    const char *program;   /* that is to run, an absolute path; NULL: none */
    const char *ssh_keys;  /* of its tunnels, as SSH_KEYS_VARIABLE has them; NULL: none is named */
    const uint8_t *token;  /* of the listeners, TCP_PROBE_TOKEN bytes */
};

struct look {
    const char *name; /* borrowed, as the user gave it */
    struct visit visit;
    struct findings findings; /* beside those of its own report */
    bool there;               /* its report has come */
    bool here;                /* it is this machine */
    uint16_t port;            /* where it listens; 0: it does not */
    bool gone;                /* links.h: since then it answers no more */
};

void look_at(struct look *look, const struct look_config *config);
void look_free(struct look *look);

/* What those that are there differ in, and should not. */
void look_compare(const struct look *looks, uint32_t count, struct findings *findings);

#endif
