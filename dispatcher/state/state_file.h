/* A job's directory on disk: the lock, the journal of its dispatcher, what was printed. Blocks
 * where the disk does. docs/job-state.md. */
#ifndef DISPATCHER_STATE_FILE_H
#define DISPATCHER_STATE_FILE_H

#include "common/err.h"
#include "dispatcher/state/counts.h"
#include "dispatcher/state/job_state.h"
#include "dispatcher/state/state_link.h"

#include <limits.h>

#define STATE_DIR_MAX 4032 /* PATH_MAX, less what names there take */
#define STATE_NAME "state" /* the journal */
#define STATE_LOCK_NAME "lock"
#define STATE_KEEPER_HOLDS "keeper" /* what the lock of a copy says, while it is kept */
#define STATE_COPIES_MAX 2u         /* of the state, on other hosts */
#define STATE_RELAY_NAME "relay.0"  /* the log of its relay */
#define STATE_IMAGES_NAME "images"
#define STATE_WAIT_MS 15000 /* for what is left of the job's processes to end */

struct state_file;

enum state_file_kind {
    STATE_FILE_ON_DISK, /* the user's, with all of the job: it outlives the machine */
    STATE_FILE_HELD,    /* a process's own: other hosts have copies of it */
};

/* Makes the directory where there is none, takes its lock, and begins a journal there. Errors:
 * CW_EINVAL: what is there is in the way, or is in memory; CW_EBUSY: a job runs there; CW_ESYS. */
struct state_file *state_file_make(const char *dir, enum state_file_kind kind, struct cw_err *err);

/* Takes up the journal that is there, to be read by state_file_read and appended to; of one that is
 * held, nobody else keeps it from now on. Waits for processes of the job that are just ending, at
 * most STATE_WAIT_MS. Errors: CW_ENOTFOUND: there is no job; CW_EBUSY: it runs; CW_EINVAL: another
 * version or user, or damage; CW_ESYS, CW_ENOMEM. */
struct state_file *state_file_take(const char *dir, enum state_file_kind kind, struct cw_err *err);

/* From now on the state is copied there, too, beginning with what it is; the link, borrowed, is not
 * used any more once lost(ctx, link, why) was called, which may be inside any function below. At
 * most STATE_COPIES_MAX at a time. Errors: as of state_link_put; without a copy then. */
int state_file_copy_to(struct state_file *state, struct state_link *link,
                       void (*lost)(void *ctx, struct state_link *link, const struct cw_err *why),
                       void *ctx, struct cw_err *err);
void state_file_copy_no_more(struct state_file *state, struct state_link *link);

/* NULL is allowed, here and in all functions below: nothing happens. `remove`: the job is over, its
 * directory goes. */
void state_file_close(struct state_file *state, bool remove);

/* Called once, when no more can be kept: the job cannot be resumed any more. */
void state_file_on_failure(struct state_file *state, void (*failed)(void *ctx, const char *why),
                           void *ctx);

const char *state_file_dir(const struct state_file *state);
/* The descriptor of the lock, which is held as long as anybody has it open; -1 of NULL, and of one
 * that is held. */
int state_file_lock_fd(const struct state_file *state);

/* The next record of a journal that was taken up. False: that was the last. */
bool state_file_read(struct state_file *state, struct job_state_record *record);
/* Begins with the first record again, or lets go of the memory. */
void state_file_rewind(struct state_file *state);
void state_file_forget(struct state_file *state);

/* Appends a record: it outlives this process. */
void state_file_put(struct state_file *state, const struct job_state_record *record);
/* What was appended outlives the machine, once this returns. */
void state_file_sync(struct state_file *state);

/* The job has ended well: nobody can go on with it, also after the loss of power, and its relay may
 * forget it. */
void state_file_over(struct state_file *state);

/* No more can be kept. */
void state_file_fail(struct state_file *state, const char *why);
bool state_file_is_whole(const struct state_file *state);

/* The files of its relay's log with --log-safety file, which is memory in no file elsewhere: made,
 * or those that are there. They are the caller's. Waits for a relay that is just ending, at most
 * STATE_WAIT_MS. Errors: CW_ESYS. */
int state_file_open_log(struct state_file *state, int *memory_fd, int *disk_fd, struct cw_err *err);

/* What was printed, of so many ranks from state_file_count_ranks on; NULL of NULL. Outlives this
 * process. `same_boot`: the job does not survive the loss of power. Errors: CW_EINVAL: what is
 * there cannot be used; CW_ESYS. */
int state_file_count_ranks(struct state_file *state, uint32_t ranks, bool same_boot,
                           struct cw_err *err);
struct counts *state_file_counts(struct state_file *state);
/* What was settled there holds after the loss of power too, once this returns. */
void state_file_sync_printed(struct state_file *state);

/* Whether the counts that were found say all that was printed. */
enum state_file_doubt {
    STATE_FILE_SURE,
    STATE_FILE_PRINTING, /* but for what was just being printed, of this rank */
    STATE_FILE_REBOOTED, /* but for what was printed after it was settled last */
};
enum state_file_doubt state_file_doubt(const struct state_file *state, uint32_t *rank);

#endif
