/* Makes jobs, mailboxes and sessions again from what a killed relay left: states in the ledger, and
 * logs. Each mailbox is the function of its log's stream that it was before: what came is matched
 * again, in the same order, and what it led to is compared with what the log says. Pure. */
#ifndef RELAY_REMAKE_H
#define RELAY_REMAKE_H

#include "relay/core/core.h"
#include "relay/core/saved.h"

struct remake;

/* NULL without memory. */
struct remake *remake_new(struct job_set *set);
void remake_free(struct remake *remake);
/* Goes on as far as that is possible. False: something is being read from disk. */
bool remake_step(struct remake *remake, struct relay_returned *returned);

#endif
