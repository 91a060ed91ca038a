/* What this machine keeps of a grid: the directory $XDG_STATE_HOME/causeway/GRID, or
 * ~/.local/state/causeway/GRID, of the user alone (XDG Base Directory Specification). */
#ifndef DISPATCHER_GRID_STATE_H
#define DISPATCHER_GRID_STATE_H

#include "common/cred.h"
#include "dispatcher/grid/grid.h"

#include <limits.h>

#define GRID_STATE_KEY "key"               /* of its relays and checkpoint servers */
#define GRID_STATE_SSH_CONFIG "ssh_config" /* for ssh -F */

/* The name of `file` there; the directory is made where it is missing. Errors: CW_ESYS, CW_EINVAL:
 * it belongs to somebody else, or others can write to it. */
int grid_state_path(const struct grid *grid, const char *file, char path[PATH_MAX],
                    struct cw_err *err);

/* The grid's key, which is made where there is none. Errors: as above, and of cw_key_load. */
int grid_state_key(const struct grid *grid, uint8_t key[CW_KEY_SIZE], struct cw_err *err);

/* Writes the configuration for ssh, which each command on this grid does, and says where it is: "-F
 * PATH", as words with blanks between. It is in that directory, as long as a job runs, or, with
 * NULL, with what is kept of the grid. Errors: as above, CW_ENOMEM; CW_EINVAL: PATH has a blank. */
#define GRID_SSH_ARGS_BYTES (PATH_MAX + 3)
int grid_state_ssh_args(const struct grid *grid, uint32_t here, const char *dir,
                        char args[GRID_SSH_ARGS_BYTES], struct cw_err *err);

#endif
