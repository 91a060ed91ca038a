/* How the restorer ends when it cannot restore: one report to the dispatcher. */
#ifndef RESTORER_REPORT_H
#define RESTORER_REPORT_H

#include <stdint.h>

void report_to(int control_fd);

/* What every report begins with, once the header is there. */
void report_name(uint32_t rank, uint32_t number);

/* A report's text: `what` may hold %s, %d (int64_t), %x (uint64_t) and %e (a negative errno, long).
 * Does not return. */
void report_end(const char *what, ...) __attribute__((noreturn));
/* Likewise, where the image has not come whole: it may be fetched again. */
void report_break(const char *what, ...) __attribute__((noreturn));

#endif
