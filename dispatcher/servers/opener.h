/* Sessions that are being opened, for a loop: common/dial.h works in threads, and what comes of it
 * is told in the loop. */
#ifndef DISPATCHER_OPENER_H
#define DISPATCHER_OPENER_H

#include "common/dial.h"
#include "common/loop.h"

struct opener;

/* The connection is the callee's; `result` is gone after the call. */
typedef void opener_opened(void *ctx, const struct cw_dial_result *result);

/* NULL with *err set: CW_ESYS, CW_ENOMEM. */
struct opener *opener_new(struct loop *loop, opener_opened *opened, void *ctx, struct cw_err *err);
void opener_free(struct opener *opener); /* NULL is allowed; nothing is told any more */

/* False: there is no room for it. */
bool opener_add(struct opener *opener, const struct cw_dial_request *request);

#endif
