/* Copies of the job's state on its hosts, so that another dispatcher can go on with the job should
 * this machine be lost: of a job whose hosts go on alone for a time (--orphan-timeout). Where one
 * is lost, another one is made. */
#ifndef DISPATCHER_STATE_COPIES_H
#define DISPATCHER_STATE_COPIES_H

#include "dispatcher/run/parts.h"

#define STATE_COPIES_START_NS 30000000000ull /* for the keeper of a copy to greet */
#define STATE_COPIES_PAUSE_NS 1000000000ull  /* until another copy is tried */
#define STATE_COPIES_WAIT_SHARE 2u /* of the time of silence that a keeper has for an answer */

struct state_copies;

/* Begins to make them, where parts->state is copied: the hosts are there, and ranks have their
 * places. NULL with *err set: CW_ENOMEM. */
struct state_copies *state_copies_new(struct parts *parts, struct cw_err *err);
/* NULL is allowed, here and below. */
void state_copies_free(struct state_copies *state_copies);

/* Whether all of them are there; or none can be made: *err says why. */
bool state_copies_are_there(const struct state_copies *state_copies, struct cw_err *err);

/* A process of theirs has ended; the caller has waited for it. False: it is none. */
bool state_copies_child_ended(struct state_copies *state_copies, pid_t pid, int status);
bool state_copies_have_child(const struct state_copies *state_copies, pid_t pid);

#endif
