/* What this machine keeps of a grid: the directory $XDG_STATE_HOME/causeway/GRID, or
 * ~/.local/state/causeway/GRID, of the user alone (XDG Base Directory Specification). */
#ifndef DISPATCHER_GRID_STATE_H
#define DISPATCHER_GRID_STATE_H

#include "common/cred.h"
#include "dispatcher/hosts/grid.h"

#include <limits.h>

#define GRID_STATE_KEY "key"               /* of its relays and checkpoint servers */
#define GRID_STATE_SSH_CONFIG "ssh_config" /* for ssh -F */

/* The name of `file` there; the directory is made where it is missing. Errors: CW_ESYS, CW_EINVAL:
 * it belongs to somebody else, or others can write to it. */
int grid_state_path(const struct grid *grid, const char *file, char path[PATH_MAX],
                    struct cw_err *err);

/* Writes a file for the user alone: it is whole then, or the one that was there. Error: CW_ESYS. */
int grid_state_write(const char *path, const char *text, struct cw_err *err);

/* The grid's key, which is made where there is none. Errors: as above, and of cw_key_load. */
int grid_state_key(const struct grid *grid, uint8_t key[CW_KEY_SIZE], struct cw_err *err);

/* Writes the configuration for ssh, which each command on this grid does, and says where it is: "-F
 * PATH", as words with blanks between. It is in that directory, as long as a job runs, or, with
 * NULL, with what is kept of the grid. Errors: as above, CW_ENOMEM; CW_EINVAL: PATH has a blank. */
#define GRID_SSH_ARGS_BYTES (PATH_MAX + 3)
int grid_state_ssh_args(const struct grid *grid, uint32_t here, const char *dir,
                        char args[GRID_SSH_ARGS_BYTES], struct cw_err *err);

/* What a command on a grid begins with. */
struct grid_place {
    struct grid grid; /* of grid_free; keys for logins have the names that they have at the sites */
    uint32_t here;    /* of this machine, or GRID_OUTSIDE */
    char own_host[HOST_NAME_MAX + 1];
    char ssh_args[GRID_SSH_ARGS_BYTES];
};

/* `here`: as the user says; NULL: by the name of the machine. Errors: of grid_file_read, grid_here,
 * and as above. */
int grid_place_open(struct grid_place *place, const char *file, const char *here,
                    struct cw_err *err);

/* The name of a file below the home directory as "~/...", for machines where that is another one;
 * others stay as they are. */
void grid_place_at_home(char path[GRID_PATH_MAX + 1], const char *home);

#endif
