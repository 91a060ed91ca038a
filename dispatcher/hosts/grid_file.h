/* Grid files: docs/grid.md has the format, which is that of libconfig. */
#ifndef DISPATCHER_GRID_FILE_H
#define DISPATCHER_GRID_FILE_H

#include "dispatcher/hosts/grid.h"

#define GRID_FILE_MAX (1u << 20) /* bytes of a file */

/* The grid that the text says, which ends with a zero byte. `file` is its name, for messages;
 * `home` stands for "~" in names of files that are on this machine. What a file leaves out is as
 * docs/grid.md says; gateways have the user of their site where they name none. On an error
 * nothing is to be freed. No file is opened: @include is refused. Errors: CW_EINVAL, naming file,
 * line, setting, value, and what was expected; CW_ENOMEM. */
int grid_file_parse(struct grid *grid, const char *file, const char *text, const char *home,
                    struct cw_err *err);

/* The same for a file. Errors also: CW_ENOTFOUND, CW_ESYS. */
int grid_file_read(struct grid *grid, const char *file, struct cw_err *err);

#endif
