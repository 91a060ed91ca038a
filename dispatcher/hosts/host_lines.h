/* The lines of a hostfile or rankfile. */
#ifndef DISPATCHER_HOST_LINES_H
#define DISPATCHER_HOST_LINES_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_LINE_BYTES_MAX 1024 /* of a line, and a NUL */

struct host_lines {
    const char *file; /* its name, for messages; borrowed */
    const char *at;   /* borrowed, `left` bytes */
    size_t left;
    uint32_t number; /* of the last line, from 1 on */
};

/* The next line that says something, without its comment ('#' to the end) and without spaces around
 * '='. Returns 1 and the line, 0 at the end, or an error: CW_EINVAL, naming file and line. */
int host_lines_next(struct host_lines *lines, char line[HOST_LINE_BYTES_MAX], struct cw_err *err);

/* Splits a line at its spaces: the next word, or NULL. `rest` begins as the line. */
char *host_lines_word(char **rest);

/* Puts file and line before an error about this line. Returns err->code. */
int host_lines_wrap(const struct host_lines *lines, struct cw_err *err);

#endif
