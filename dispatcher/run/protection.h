/* Which ranks can no longer be restarted, and why: said once, on stderr and to the events file. */
#ifndef DISPATCHER_PROTECTION_H
#define DISPATCHER_PROTECTION_H

#include "dispatcher/run/parts.h"

struct protection {
    struct parts *parts; /* borrowed, as the next one */
    struct job *job;
    bool told_shared; /* that ranks share files */
};

/* The rank cannot be restarted any more (JOB_NO_RANK: nor can any). */
void protection_lost(struct protection *protection, uint32_t rank, const char *why);

/* The same, because of a file that it shares; `own`: by what it has opened itself just now. Ends
 * the job where it repeats what it must not. */
void protection_unsafe(struct protection *protection, uint32_t rank, bool own, const char *why);

/* That relay's log does not survive the loss of power any more. */
void protection_unsynced(struct protection *protection, const char *relay, const char *why);

#endif
