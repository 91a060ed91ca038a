/* The programs of the job that are sent to this host (stage_dir.h): looked for, received when
 * they are not there, and removed with this node. */
#ifndef DISPATCHER_STAGER_H
#define DISPATCHER_STAGER_H

#include "common/loop.h"
#include "dispatcher/wire/node_frames.h"

#define STAGER_READ_BYTES (1u << 20) /* of a program that are compared in one turn of the loop */

struct stager;

/* NULL with *err set: CW_ENOMEM. Both are borrowed. */
struct stager *stager_new(struct loop *loop, struct mux *mux, struct cw_err *err);
/* What has come is removed. NULL is allowed. */
void stager_free(struct stager *stager);

/* NODE_STAGE; what becomes of it is told in frames. Errors: CW_EPROTO, CW_ENOMEM. */
int stager_take(struct stager *stager, const uint8_t *body, size_t size, struct cw_err *err);

#endif
