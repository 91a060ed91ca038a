/* dispatcher/servers/opener.h without a pipe: what threads have opened waits here. */
#ifndef SIM_OPENER_H
#define SIM_OPENER_H

#include "dispatcher/servers/opener.h"

#include <stdbool.h>

bool opener_can(void);
/* Tells of one that was opened, or failed. */
void opener_step(void);

#endif
