/* The far end of striped tunnels: `causeway tunnel --merge`, which the near end starts on a
 * gateway, once for each connection. */
#ifndef TUNNELS_MERGE_H
#define TUNNELS_MERGE_H

#include "common/err.h"

#define MERGE_GREETING_MS 10000u /* for the greeting to come */
#define MERGE_ENTRY_MS 1000u     /* for a process that joins to say for what */
#define MERGE_BACKLOG 16u        /* of such processes */

/* Standard input and output are the connection. The first process of a tunnel connects to where it
 * leads, and carries bytes until it ends; another one hands its connection over to that, and waits
 * for its end. Errors: why it is refused, which the near end hears, or CW_ECLOSED: a connection
 * broke. */
int merge_run(struct cw_err *err);

#endif
