/* The end of a process that cannot go on. The dispatcher speaks for all ranks: it is told why, and
 * only without it does the process speak for itself. Any thread. */
#ifndef RDEVICE_FATAL_H
#define RDEVICE_FATAL_H

#include "common/setup.h"

#include <stdint.h>

/* From now on reports go to the dispatcher at `control_fd`, which is borrowed, as those of this
 * rank. */
void fatal_begin(int control_fd, uint32_t rank);

/* Reports and ends the process. `kind`: CW_REPORT_FATAL or CW_REPORT_RELAY_LOST. */
void fatal_exit(uint32_t kind, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn, cold));

/* The same of something that the process bears: it goes on. A dispatcher that is so far behind does
 * without. */
void fatal_tell(uint32_t kind, const char *text);

/* A drill, --fault kill:RANK@event:N: the process kills itself. */
void fatal_drill(void) __attribute__((noreturn));

#endif
