/* The process `causeway node --keep DIR`: keeps a copy of a job's state on a host, in the directory
 * of its node, as the job's dispatcher puts it (dispatcher/state/state_copy.h) over the standard
 * streams. What it has kept outlives it, until the node ends. */
#ifndef DISPATCHER_STATE_KEEPER_H
#define DISPATCHER_STATE_KEEPER_H

#include "common/err.h"

/* Runs until nothing more comes, or another dispatcher has taken the copy over (state_file_take):
 * then nothing is kept or answered any more. Errors: CW_EPROTO, CW_EAUTH: it was taken over;
 * CW_ESYS, CW_ENOMEM. */
int state_keeper_run(const char *dir, struct cw_err *err);

#endif
