/* What is covered: COVER of dispatchers, and when it may be answered. docs/protocol.md, "Copies".
 */
#ifndef RELAY_COVER_H
#define RELAY_COVER_H

#include "relay/core/job.h"

/* COVER came. */
void cover_ask(struct relay_job *job, uint64_t token);
/* Some are to be answered once all that ranks have said by now was read. */
bool cover_is_due(const struct job_set *set);
/* It was. */
void cover_answer(struct job_set *set);

#endif
