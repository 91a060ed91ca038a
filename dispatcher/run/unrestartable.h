/* Which ranks can no longer be restarted, and why: said once, on stderr and to the events file. One
 * reason is that they share files, which the ranks report as they open them. */
#ifndef DISPATCHER_UNRESTARTABLE_H
#define DISPATCHER_UNRESTARTABLE_H

#include "dispatcher/run/parts.h"

#define UNRESTARTABLE_TEXT_MAX (CW_PATH_TOLD + 96)

struct files;

struct unrestartable {
    struct parts *parts; /* borrowed, as the next one */
    struct job *job;
    struct files *files; /* owned; NULL: they do not matter in this job */
    bool
        *shares; /* of each rank: others open files that it writes, or the other way round; owned */
    bool told_shared;
};

/* Errors: CW_ENOMEM; unrestartable_close is to be called also then. */
int unrestartable_open(struct unrestartable *unrestartable, struct parts *parts, struct job *job,
                       struct cw_err *err);
void unrestartable_close(struct unrestartable *unrestartable);

/* The rank cannot be restarted any more (JOB_NO_RANK: nor can any). */
void unrestartable_mark(struct unrestartable *unrestartable, uint32_t rank, const char *why);

/* The rank reports that it opens a file: it, and others that have opened it, may not be restartable
 * any more. Ends the job where one repeats what it must not. */
void unrestartable_opens_file(struct unrestartable *unrestartable, uint32_t rank,
                              const struct cw_report *report);
bool unrestartable_shares_files(const struct unrestartable *unrestartable, uint32_t rank);

#endif
