/* The options of a command, from tables: an entry says how an option is called, what its value is,
 * where that goes, and what --help says of it. */
#ifndef CW_OPTIONS_H
#define CW_OPTIONS_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CW_OPTIONS_MAX 80u /* of a command, second names counted */

enum cw_option_kind {
    CW_OPTION_FLAG,   /* bool; has no value */
    CW_OPTION_TEXT,   /* const char *, borrowed */
    CW_OPTION_NUMBER, /* uint32_t from min to max */
    CW_OPTION_BYTES,  /* uint64_t, at least min; "0" is one with a min of 0 */
    CW_OPTION_TIME,   /* uint64_t ns, from min to max, which `range` says; no range: any */
    CW_OPTION_WORD,   /* uint32_t or an enum: which of the words of `argument`, counted from 0 */
    CW_OPTION_FD,     /* int: a descriptor that is open */
    CW_OPTION_CALL,   /* what `take` makes of it */
};

/* Names of one or two letters have one dash, others two. */
struct cw_option {
    const char *name;
    const char *also;     /* a second name; NULL: none */
    const char *argument; /* as --help calls it: "FILE", "on|off"; NULL: it has none */
    enum cw_option_kind kind;
    size_t at; /* of what it sets, in the struct of its group */
    uint64_t min, max;
    const char *range;
    int (*take)(void *to, const char *value, struct cw_err *err);
    const char *help; /* NULL: it is not for users */
};

struct cw_option_group {
    const char *title;            /* for --help; NULL: none */
    const struct cw_option *list; /* an empty one is the last; NULL: no more groups */
    size_t at;                    /* of its struct, in that of the command */
};

struct cw_options {
    const char *command; /* for messages */
    const char *usage;   /* before the options in --help */
    const struct cw_option_group *groups;
    const char *end; /* after them; NULL: nothing */
    bool program;    /* a program with words of its own follows; and long names may have one dash */
};

/* Takes them; what else is there begins at optind then. `given`, NULL or CW_OPTIONS_MAX zeroed
 * entries: the value of each that was given, "" of a flag. Errors: CW_EINVAL, naming the option,
 * the value and what was expected; of `take`. */
int cw_options_parse(const struct cw_options *options, int argc, char **argv, void *into,
                     const char **given, struct cw_err *err);

/* The number of its entry of `given`; there is an option of that name. */
int cw_option_number(const struct cw_options *options, const char *name);

/* The first of these names, which a NULL ends, whose option was given; NULL: none was. */
const char *cw_option_first(const struct cw_options *options, const char *const *given,
                            const char *const *names);

/* --help. */
void cw_options_help(const struct cw_options *options, FILE *to);

#endif
