/* Parsers of options and numbers on a command line. `what` names the option in the error text.
 * Error: CW_EINVAL. */
#ifndef CW_PARSE_H
#define CW_PARSE_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

/* A whole number from min to max. */
int cw_parse_number(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value,
                    struct cw_err *err);

/* A number of bytes, at least 1, with an optional suffix K, M, G or T (powers of 1024). */
int cw_parse_bytes(const char *what, const char *text, uint64_t *value, struct cw_err *err);

/* A time in seconds, with an optional fraction and an optional suffix ms, s, m or h. Sets *ns in
 * nanoseconds. */
int cw_parse_duration(const char *what, const char *text, uint64_t *ns, struct cw_err *err);

/* The number of a descriptor that is open here; programs that this one starts do not have it. */
int cw_parse_descriptor(const char *text, int *fd, struct cw_err *err);

#endif
