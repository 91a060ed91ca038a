#ifndef RELAY_MAIN_H
#define RELAY_MAIN_H

#include "common/err.h"

#include <stdint.h>

/* `causeway relay ...`; argv[0] is "relay". Returns the exit code. */
int cmd_relay(int argc, char **argv);

/* Whether these values of --engine and --memory-max are possible. Errors: CW_EINVAL. */
int relay_check_engine(const char *name, struct cw_err *err);
int relay_check_memory(const char *text, uint64_t *bytes, struct cw_err *err);

#endif
