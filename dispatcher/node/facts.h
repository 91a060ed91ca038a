/* What a node tells of its host. */
#ifndef DISPATCHER_FACTS_H
#define DISPATCHER_FACTS_H

#include "dispatcher/wire/greeting.h"

/* `dir`: of the node. */
void facts_get(struct greeting_hello *hello, const char *dir);

#endif
