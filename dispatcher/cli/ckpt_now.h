/* `causeway ckpt now`. */
#ifndef DISPATCHER_CKPT_NOW_H
#define DISPATCHER_CKPT_NOW_H

#include "common/err.h"

/* Has an image taken of each rank of a running job, and prints what became of them. `job`: as of
 * status_choose. Returns the exit code: 0 when all are stored, 1 when one is not; or an error. */
int ckpt_now(const char *job, struct cw_err *err);

#endif
