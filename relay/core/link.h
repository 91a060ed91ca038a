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

/* All links are there that the job is to have: tells the dispatcher, once. */
void link_tell(struct relay_job *job);

/* LINK: where relay what->peer of the job is, a process of this incarnation. `opens`: the link to
 * it is to be opened, unless it was; else that relay does so, and we know where it is for copies. A
 * session with an earlier process goes on there. Returns 0 or CW_ENOMEM. */
int link_told(struct relay_job *job, const struct relay_dial *what, uint32_t incarnation,
              bool opens);
/* A session for copies with this relay, of which LINK came; and that it is not wanted. */
void link_want_copy(struct relay_job *job, uint32_t peer);
void link_want_no_copy(struct relay_job *job, uint32_t peer);
/* The connection of a link, or for copies, broke, and its session is suspended: where we opened it,
 * it is to be opened again. */
void link_want_again(struct relay_conn *conn);
/* The next link that is to be opened, or job whose links are not to be opened any more. False:
 * there is none. */
bool link_next_dial(struct job_set *set, struct relay_dial *dial);
/* The job that wanted what was opened or could not be; it waits for it no more. NULL: the job has
 * ended, or was linked meanwhile, or has given the session up that was to be resumed, or has asked
 * for it once more. */
struct relay_job *link_dialled(struct job_set *set, const struct relay_dialled *dialled);
/* Its session that is suspended; NULL: none is. */
struct relay_conn *link_suspended(const struct relay_job *job, const struct relay_dialled *dialled);
/* There will be none: tells the dispatcher. */
void link_failed(struct relay_job *job, uint32_t relay, const char *why);

#endif
