/* What a host answers to `causeway doctor`, `up`, `down` and `status -f` elsewhere, which ask it by
 * its agent. */
#ifndef DISPATCHER_HOST_ANSWERS_H
#define DISPATCHER_HOST_ANSWERS_H

#include "common/err.h"

#include <jansson.h>

/* As of agent_answer. */
json_t *host_answer(const json_t *request, struct cw_err *err);

#endif
