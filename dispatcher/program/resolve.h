/* Where the file of a program is. Thread rule: no thread changes the environment meanwhile. */
#ifndef DISPATCHER_RESOLVE_H
#define DISPATCHER_RESOLVE_H

#include "common/err.h"

#include <stddef.h>

/* Finds `name` as execvp would from the directory `wdir` (NULL: the current one) and puts its
 * absolute path, symbolic links kept, into `path` (`path_size` bytes). Errors: CW_ENOTFOUND;
 * CW_EINVAL (a directory, not executable, too long); CW_ESYS. The text is fit for the user as it
 * is. */
int program_resolve(const char *name, const char *wdir, char *path, size_t path_size,
                    struct cw_err *err);

#endif
