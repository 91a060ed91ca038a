/* The command that starts causeway on a host, as a node or to report. Pure. */
#ifndef DISPATCHER_LAUNCH_COMMAND_H
#define DISPATCHER_LAUNCH_COMMAND_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAUNCH_COMMAND_ARGS_MAX 64    /* of a command */
#define LAUNCH_COMMAND_TEXT_MAX 16384 /* bytes of them */

struct launch_command_config {
    const char *launcher; /* "ssh", "srun", or a command: COMMAND [ARGS] HOST CAUSEWAY WORD... */
    const char *args;     /* its further arguments, with blanks between; NULL: none */
    const char *host;     /* its name */
    const char *own_host; /* of this machine, on which ssh is not needed; NULL: unknown */
    const char *causeway; /* path on the host */
    const char *const *words; /* what follows it, as "node"; NULL-terminated */
    uint32_t connect_s;       /* for ssh to connect */
};

struct launch_command {
    char *argv[LAUNCH_COMMAND_ARGS_MAX + 1]; /* NULL-terminated */
    int argc;
    size_t used;
    char text[LAUNCH_COMMAND_TEXT_MAX];
    bool full;
};

/* Errors: CW_EINVAL: a bound is reached. */
int launch_command_make(struct launch_command *command, const struct launch_command_config *config,
                        struct cw_err *err);

#endif
