/* A job that is kept in a directory, so that it outlives its dispatcher: what it was started with,
 * its end, and how a dispatcher that takes it up learns where it was. docs/job-state.md. */
#ifndef DISPATCHER_RESUME_H
#define DISPATCHER_RESUME_H

#include "dispatcher/run/starts.h"

/* What a kept job was started with; taken up, it is there to be gone on with. */
struct kept_job {
    struct state_file *state;
    int argc;
    char **argv;            /* of `causeway run`; owned, with all that it points to */
    char **env;             /* likewise */
    char *wdir;             /* likewise */
    uint64_t stdin_file[3]; /* as of JOB_STATE_STDIN, with */
    char *stdin_path;       /* NULL: its standard input is no file. Owned */
    uint64_t input;         /* bytes of that which it was given ... */
    bool input_ended;       /* ... which were all */
};

/* Takes the job up. Errors: as state_file_take; CW_EINVAL: a file that it needs has changed. */
int kept_job_take(struct kept_job *kept, const char *dir, enum state_file_kind kind,
                  struct cw_err *err);
/* This process goes where the job was started, with its environment, and reads the file that was
 * its standard input, if it was one. Errors: CW_ENOTFOUND. */
int kept_job_enter(const struct kept_job *kept, struct cw_err *err);
void kept_job_free(struct kept_job *kept); /* but for `state` */

/* The job gets its name. Of one with a directory: makes that, or reads what parts->state has, that
 * of a dispatcher before us. Errors: as state_file_make. */
int resume_open(struct parts *parts, struct cw_err *err);
/* The hosts have their nodes. */
void resume_name_nodes(struct parts *parts);
/* The job is open at its relay, and no rank has begun. */
void resume_begin(struct parts *parts);

/* What a dispatcher before us knew of the ranks is known to all parts again; none was started by
 * us. To be called before anything is heard of the job's servers. Errors: CW_ENOMEM. */
int resume_replay(struct parts *parts, struct job *job, struct cw_err *err);
/* Waits until it is known what images there are, which it has to be before the first rank is
 * started. Errors: CW_ESYS. */
int resume_await_images(struct parts *parts, const struct job *job, struct cw_err *err);

/* The rank has ended well, and all of its output is out. */
void resume_rank_ended(struct parts *parts, uint32_t rank, bool used_mpi);

/* The job is over, well or not: says how it can be gone on with. */
void resume_end(struct parts *parts, bool well);

#endif
