/* What an agent tells of its host. */
#ifndef DISPATCHER_FACTS_H
#define DISPATCHER_FACTS_H

#include "dispatcher/mux/greeting.h"

/* `dir`: of the agent. */
void facts_get(struct greeting_hello *hello, const char *dir);

#endif
