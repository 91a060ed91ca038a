/* `causeway node --attach DIR`: another connection to the node that has this directory. It copies
 * bytes between our standard streams and the node's socket. */
#ifndef DISPATCHER_ATTACH_H
#define DISPATCHER_ATTACH_H

#include "common/err.h"

#define ATTACH_BUFFER 65536u

/* Until either side closes it. Errors: CW_ENOTFOUND: there is no such node; CW_ESYS; CW_EINVAL. */
int attach_run(const char *dir, struct cw_err *err);

#define ATTACH_LOOK_MS 10000 /* for a node to answer */

/* Whether the node of this directory, on this machine, hears of no dispatcher, and another one may
 * take its job over. Errors: CW_ENOTFOUND: there is no such node; CW_EBUSY: why not; CW_ESYS. */
int attach_look(const char *dir, struct cw_err *err);

#endif
