/* The directory of a service on its host, $XDG_STATE_HOME/causeway/GRID/SITE.SERVICE: a lock, which
 * the process that keeps the service holds as long as it lives, so that no number of a process has
 * to be trusted; what was started ("info"), its log, and files that it was given. Of the user
 * alone. */
#ifndef DISPATCHER_SERVICE_DIR_H
#define DISPATCHER_SERVICE_DIR_H

#include "dispatcher/wire/service_format.h"

#include <limits.h>
#include <sys/types.h>

#define SERVICE_DIR_TRIES_MAX 5u /* to lock a directory that others remove */

/* Its path. Errors: of grid_state_path. */
int service_dir_path(const json_t *request, char path[PATH_MAX], struct cw_err *err);

/* The process that holds the lock; 0: nobody does. */
pid_t service_dir_holder(const char *path);

/* Takes the lock, until this process ends or closes the descriptor, which is returned. Files that a
 * former holder has left are removed, but its log. Errors: CW_EBUSY: another process has it;
 * CW_ESYS. */
int service_dir_lock(const char *path, struct cw_err *err);

/* Writes a file, for the user alone. Error: CW_ESYS. */
int service_dir_write(const char *path, const char *file, const char *text, struct cw_err *err);

/* What was written as "info"; NULL: nothing that is such. */
json_t *service_dir_info(const char *path);

/* Removes it with all files in it, and the directories above that are empty then. */
void service_dir_remove(const char *path);

#endif
