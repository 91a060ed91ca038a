/* Finds the running jobs of this user, and asks their dispatchers how they stand. What comes back
 * is somebody else's word: bounded, parsed and checked here. */
#ifndef DISPATCHER_STATUS_CLIENT_H
#define DISPATCHER_STATUS_CLIENT_H

#include "common/err.h"
#include "dispatcher/status/rundir.h"

#include <jansson.h>
#include <sys/types.h>

#define STATUS_WAIT_MS 2000          /* for a whole answer */
#define STATUS_BYTES_MAX (64u << 20) /* of an answer; 65536 ranks have about 20 MiB */
#define STATUS_JOBS_MAX 64           /* further ones are not looked at */

/* One directory of a job. */
struct status_found {
    char dir[RUNDIR_MAX];
    pid_t pid;        /* of the dispatcher; 0: not known */
    json_t *document; /* owned; NULL: see `err` */
    struct cw_err err;
};

/* The document of the job in `dir`: an object with an array "ranks" of objects. Waits for
 * STATUS_WAIT_MS at most. A new reference, or NULL. *pid is set when a dispatcher is there. Errors:
 * CW_ENOTFOUND (no job is there, or none yet), CW_ECLOSED (its dispatcher has ended or was killed),
 * CW_ELIMIT (no answer in time, or too long a one), CW_EPROTO, CW_ESYS, CW_ENOMEM. */
json_t *status_ask(const char *dir, pid_t *pid, struct cw_err *err);

/* Has images taken of the ranks of the job in `dir`: the document that says what became of them.
 * Waits as long as the job does for that. Errors: as above. */
json_t *status_ask_images(const char *dir, struct cw_err *err);

/* Asks all jobs of this user, in every place where causeway run may have made a directory. Returns
 * how many directories were found, at most STATUS_JOBS_MAX; the caller calls status_forget. */
int status_find(struct status_found found[STATUS_JOBS_MAX]);
void status_forget(struct status_found *found, int count);

/* The job that is meant: with `job` NULL the only one that runs, else that whose dispatcher has
 * this pid, or whose identifier begins so. Returns its index, or an error: CW_ENOTFOUND, CW_EINVAL
 * (it could be several), or that of the job that is meant. */
int status_choose(const struct status_found *found, int count, const char *job, struct cw_err *err);

#endif
