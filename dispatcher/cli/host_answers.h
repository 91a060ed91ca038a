/* What a host answers to `causeway doctor`, `up`, `down` and `status -f` elsewhere, which ask it by
 * its node. */
#ifndef DISPATCHER_HOST_ANSWERS_H
#define DISPATCHER_HOST_ANSWERS_H

#include "common/err.h"

#include <jansson.h>

/* As of node_answer. */
json_t *host_answer(const json_t *request, struct cw_err *err);

#endif
