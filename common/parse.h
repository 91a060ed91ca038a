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

/* An option of a command: `text` is set to its value, or, where it has none, `flag`. */
struct cw_option {
    const char *name;
    char letter; /* '\0': it has only a name */
    const char **text;
    bool *flag;
};

/* Takes the options, of which an empty one is the last; `command` is for messages. What else is
 * there begins at optind then. Error: CW_EINVAL. */
#define CW_OPTIONS_MAX 8
int cw_parse_options(int argc, char **argv, const char *command, const struct cw_option *options,
                     struct cw_err *err);

/* Sets the error for an `opt` of '?' or ':' that getopt_long returned (with opterr 0). The text
 * names the option and the --help of `command`. Returns CW_EINVAL. */
int cw_parse_option_error(int opt, char **argv, const char *command, struct cw_err *err);

#endif
