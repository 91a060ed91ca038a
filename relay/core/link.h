/* The links of a job: connections to its other relays, which this relay opens or they do. */
#ifndef RELAY_LINK_H
#define RELAY_LINK_H

#include "relay/core/job.h"

/* Whether this relay of the job is another one, and was never linked. */
bool link_may_come(const struct relay_job *job, uint32_t relay);
/* The connection is the link to that relay. */
void link_up(struct relay_conn *conn, struct relay_job *job, uint32_t relay);
/* It is one no more: that relay does not come back, and does not send the rest of what its ranks
 * were sending. */
void link_down(struct relay_conn *conn);

/* The link to dial->peer is to be opened; `dial` is the pool's, and the job's from now on. */
void link_want(struct relay_job *job, struct relay_dial *dial);
/* The link's connection broke, and its session is suspended: where we opened it, it is to be opened
 * again. */
void link_want_again(struct relay_conn *conn);
/* The next link that is to be opened, or job whose links are not to be opened any more. False:
 * there is none. */
bool link_next_dial(struct job_set *set, struct relay_dial *dial);
/* The job that wanted what was opened or could not be; it waits for it no more. NULL: the job has
 * ended, or was linked meanwhile, or has given the session up that was to be resumed. */
struct relay_job *link_dialled(struct job_set *set, const struct relay_dialled *dialled);
/* The link's session that is suspended; NULL: none is. */
struct relay_conn *link_suspended(const struct relay_job *job, uint32_t relay);
/* There will be none: tells the dispatcher. */
void link_failed(struct relay_job *job, uint32_t relay, const char *why);

#endif
