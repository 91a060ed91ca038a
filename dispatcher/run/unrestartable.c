#include "dispatcher/run/unrestartable.h"
#include "dispatcher/job/files.h"

#include <stdio.h>
#include <stdlib.h>

int unrestartable_open(struct unrestartable *u, struct parts *parts, struct job *job,
                       struct cw_err *err)
{
    const struct run_options *o = parts->options;

    *u = (struct unrestartable){.parts = parts, .job = job};
    if (o->no_log || (o->trust_files && o->images.none))
        return CW_OK;
    u->files = files_new(o->ranks);
    u->shares = calloc(o->ranks, sizeof(*u->shares));
    return u->files && u->shares ? CW_OK
                                 : cw_err_set(err, CW_ENOMEM, "no memory for the files of ranks");
}

void unrestartable_close(struct unrestartable *u)
{
    files_free(u->files);
    free(u->shares);
}

static uint64_t now_of(const struct unrestartable *u)
{
    return loop_now_ns(u->parts->loop);
}

/* Says so to the events file alone. Returns true when that is news. */
static bool mark(struct unrestartable *u, uint32_t rank, const char *why)
{
    char who[CW_ERR_TEXT_MAX] = "the ranks";

    if (u->parts->options->no_log || !job_rank_unlogged(u->job, rank, why, now_of(u)) ||
        u->job->ending)
        return false;
    log_warning(&u->parts->log, now_of(u), rank, "can no longer be restarted", why);
    if (rank != JOB_NO_RANK)
        snprintf(who, sizeof(who), "rank %u (%s)", rank, u->job->rank[rank].program);
    if (u->parts->options->log_lost_ends)
        job_fail(u->job, 1, now_of(u), "%s can no longer be restarted: %s (--log-lost end)", who,
                 why);
    return true;
}

void unrestartable_mark(struct unrestartable *u, uint32_t rank, const char *why)
{
    if (!mark(u, rank, why))
        return;
    if (rank == JOB_NO_RANK)
        log_notice(&u->parts->log, "the ranks can no longer be restarted: %s", why);
    else
        log_notice(&u->parts->log, "rank %u can no longer be restarted: %s", rank, why);
}

/* --- shared files --- */

struct opening {
    struct unrestartable *unrestartable;
    const struct cw_report *report;
    uint32_t rank; /* whose report it is */
};

static void describe(const struct files_unsafe *unsafe, const char *path, char *why, size_t size)
{
    if (unsafe->other == FILES_NO_RANK)
        snprintf(why, size, "it writes to '%.*s', and more files are open than are known",
                 (int)CW_PATH_TOLD, path);
    else if (unsafe->writes)
        snprintf(why, size, "it writes to '%.*s', which rank %u has opened as well",
                 (int)CW_PATH_TOLD, path, unsafe->other);
    else
        snprintf(why, size, "it has opened '%.*s', to which rank %u writes", (int)CW_PATH_TOLD,
                 path, unsafe->other);
}

/* `own`: by what the rank has opened itself just now, which was not open before it had repeated
 * all. */
static void mark_shared(struct unrestartable *u, uint32_t rank, bool own, const char *why)
{
    struct relays *relays = u->parts->relays;

    if (u->job->rank[rank].state == JOB_RANK_ENDED)
        return;
    if (mark(u, rank, why) && !u->told_shared) {
        u->told_shared = true;
        log_notice(&u->parts->log,
                   "rank %u can no longer be restarted: %s; nor can other ranks that share files "
                   "so (if that is safe in this program: --trust-files)",
                   rank, why);
    }
    if (own || !job_rank_repeats(u->job, rank))
        return;
    relays_hear(relays, relays_home(relays, rank));
    if (job_rank_repeats(u->job, rank))
        job_fail(u->job, 1, now_of(u),
                 "rank %u (%s) was restarted, and repeats what it must not: %s", rank,
                 u->job->rank[rank].program, why);
}

static void on_unsafe(void *ctx, const struct files_unsafe *unsafe)
{
    const struct opening *opening = ctx;
    struct unrestartable *u = opening->unrestartable;
    char why[UNRESTARTABLE_TEXT_MAX];

    u->shares[unsafe->rank] = true;
    if (unsafe->other != FILES_NO_RANK)
        u->shares[unsafe->other] = true;
    if (u->parts->options->trust_files)
        return;
    describe(unsafe, opening->report->text, why, sizeof(why));
    mark_shared(u, unsafe->rank, unsafe->rank == opening->rank, why);
}

void unrestartable_opens_file(struct unrestartable *u, uint32_t rank,
                              const struct cw_report *report)
{
    struct opening opening = {u, report, rank};

    if (u->files)
        files_open(u->files, rank, &report->opening, on_unsafe, &opening);
}

bool unrestartable_shares_files(const struct unrestartable *u, uint32_t rank)
{
    return u->shares && u->shares[rank];
}
