/* Images on demand: whoever connects to a socket of the job has an image taken of each rank, and
 * gets a document that says what became of them. */
#ifndef DISPATCHER_DEMAND_H
#define DISPATCHER_DEMAND_H

#include "dispatcher/loop/loop.h"
#include "dispatcher/run/imaging.h"

#define DEMAND_LOOK_NS 20000000ull /* between two looks at what has become of them */

struct demand;

/* All borrowed; `dir`: of the job, for the socket. NULL with *err set: CW_ENOMEM, CW_ESYS,
 * CW_EINVAL. */
struct demand *demand_new(struct loop *loop, const char *dir, uint32_t ranks,
                          struct imaging *imaging, struct cw_err *err);
void demand_free(struct demand *demand); /* NULL is allowed */

#endif
