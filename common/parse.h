/* Numbers as people write them on a command line. */
#ifndef CW_PARSE_H
#define CW_PARSE_H

#include "common/err.h"

#include <stdint.h>

/* A whole number from min to max. `what` names the option in the error: CW_EINVAL. */
int cw_parse_number(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value,
                    struct cw_err *err);

/* Bytes, with an optional suffix K, M, G or T (powers of 1024). */
int cw_parse_bytes(const char *what, const char *text, uint64_t *value, struct cw_err *err);

/* Seconds, with an optional fraction and an optional suffix ms, s, m or h; gives nanoseconds. */
int cw_parse_duration(const char *what, const char *text, uint64_t *ns, struct cw_err *err);

/* The error for what getopt_long just returned ('?' or ':', with opterr 0): names the option and
 * the help. Returns CW_EINVAL. */
int cw_parse_option_error(int opt, char **argv, const char *command, struct cw_err *err);

#endif
