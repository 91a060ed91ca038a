/* What a tool of the system says. */
#ifndef DISPATCHER_TOOL_H
#define DISPATCHER_TOOL_H

#include "common/err.h"

#define TOOL_OUTPUT_MAX (256u << 10) /* bytes that are taken of its output */

/* Runs a tool without a shell, argv[0] being its path, and returns its exit code (128 + signal when
 * killed). `output` (TOOL_OUTPUT_MAX bytes) gets what it wrote to stdout and stderr, terminated.
 * Errors: CW_ESYS (could not start), CW_ELIMIT (wrote more). */
int tool_read(char *const argv[], char *output, struct cw_err *err);

#endif
