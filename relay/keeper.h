/* Keeps a relay: runs it as a child process, and what its log is in outlives that process; when it
 * dies, another one goes on with that. This process listens as well, so the place stays the same,
 * and who connects meanwhile waits. */
#ifndef RELAY_KEEPER_H
#define RELAY_KEEPER_H

#include "common/err.h"
#include "relay/options.h"
#include "relay/place.h"

struct keeper_config {
    const struct relay_settings *settings;
    const struct relay_place *place; /* open */
    int argc;                        /* the words of the command that we are */
    char **argv;
    void *ctx;
    /* The first child listens. */
    void (*listens)(void *ctx);
};

/* Returns when SIGTERM, SIGINT or SIGHUP came, or the relay ended for good; no child is left then.
 * Returns an exit code, and *err says why if nobody has said it yet: CW_ESYS, CW_EINVAL. */
int keeper_run(const struct keeper_config *config, struct cw_err *err);

#endif
