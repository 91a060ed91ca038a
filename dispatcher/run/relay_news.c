#include "dispatcher/run/relay_news.h"
#include "dispatcher/run/copies.h"

#include <stdio.h>

static uint64_t now_of(const struct relay_news *n)
{
    return loop_now_ns(n->parts->loop);
}

/* A relay that will not come back. */
static void relay_failed(struct relay_news *n, uint32_t relay, int status)
{
    const char *address = relays_address(n->parts->relays, relay);
    uint32_t restarts = relays_restarts(n->parts->relays, relay);
    char why[LOG_REASON_MAX];

    if (n->over)
        return;
    log_relay_reason(why, address, restarts, status);
    job_fail(n->job, 1, now_of(n), "%s", why);
}

void relay_news_ended(struct relay_news *n, uint32_t relay, int status)
{
    relays_own_ended(n->parts->relays, relay);
    log_relay_down(&n->parts->log, now_of(n), relays_address(n->parts->relays, relay), status);
}

void relay_news_failed(struct relay_news *n, uint32_t relay, int status, const struct cw_err *err)
{
    if (status == UNIT_NO_STATUS)
        relays_own_failed(n->parts->relays, relay, err);
    else
        relay_failed(n, relay, status);
}

/* The ranks at this relay that were to be started meanwhile are started now. */
static void on_relay_back(void *ctx, uint32_t relay)
{
    struct relay_news *n = ctx;

    log_relay_up(&n->parts->log, now_of(n), relays_address(n->parts->relays, relay),
                 relays_restarts(n->parts->relays, relay));
    copies_relay_back(n->parts->copies, relay);
    starts_relay_back(n->starts, relay);
}

static void on_relays_ready(void *ctx)
{
    struct relay_news *n = ctx;

    copies_begin(n->parts->copies);
    n->ready = copies_are_settled(n->parts->copies);
}

static void on_relays_failed(void *ctx, const struct cw_err *err)
{
    struct relay_news *n = ctx;

    job_fail(n->job, 1, now_of(n), "%s", err->text);
}

/* Its process may be another one, which knows of no COVER that was not answered. */
static void on_relay_resumed(void *ctx, uint32_t relay)
{
    struct relay_news *n = ctx;

    gates_again(n->parts->gates, relay);
    log_session_resumed(&n->parts->log, now_of(n), relays_address(n->parts->relays, relay));
}

static void on_relay_lost(void *ctx, uint32_t relay, const struct cw_err *err)
{
    struct relay_news *n = ctx;

    (void)relay;
    if (!n->over)
        job_relay_lost(n->job, err->text, now_of(n));
}

static void on_stats(void *ctx, const struct cw_stats *stats)
{
    struct relay_news *n = ctx;

    status_source_take(n->parts->status, stats);
    imaging_log(n->parts->imaging, stats->rank, stats->of_rank.log_bytes);
}

static void on_grown(void *ctx, const struct cw_grown *grown)
{
    imaging_log(((struct relay_news *)ctx)->parts->imaging, grown->rank, grown->bytes);
}

static void on_trimmed(void *ctx, const struct cw_trim *trimmed)
{
    imaging_trimmed(((struct relay_news *)ctx)->parts->imaging, trimmed);
}

static void on_covered(void *ctx, uint32_t relay, uint64_t token)
{
    gates_covered(((struct relay_news *)ctx)->parts->gates, relay, token);
}

static void rank_back(struct relay_news *n, uint32_t rank, uint64_t repeated)
{
    if (n->ranks[rank].incarnation > 1 && !n->job->ending)
        log_rank_back(&n->parts->log, now_of(n), rank, &n->ranks[rank], repeated);
}

static void rank_up(struct relay_news *n, const struct cw_notice_body *notice)
{
    bool live;

    /* a process that is there for its relay runs its program, whatever was heard of that */
    if (n->ranks[notice->rank].starting)
        remote_confirm(n->parts->remote, job_process(n->job, notice->rank));
    live = job_rank_up(n->job, notice->rank, notice->incarnation, notice->acts, notice->event,
                       now_of(n));
    log_rank_up(&n->parts->log, now_of(n), notice, n->ranks[notice->rank].to_repeat,
                !live && notice->incarnation > 1);
    if (live)
        rank_back(n, notice->rank, 0);
    imaging_look(n->parts->imaging, notice->rank);
}

static void on_rank_notice(struct relay_news *n, const struct cw_notice_body *notice)
{
    switch (notice->code) {
    case CW_NOTICE_RANK_UP:
        rank_up(n, notice);
        break;
    case CW_NOTICE_RANK_LIVE:
        if (job_rank_live(n->job, notice->rank, notice->incarnation))
            rank_back(n, notice->rank, job_rank_repeats_of(n->job, notice->rank, notice->event));
        imaging_look(n->parts->imaging, notice->rank);
        break;
    case CW_NOTICE_RANK_LOST:
        job_rank_lost(n->job, notice->rank, notice->incarnation, notice->acts, notice->event,
                      notice->text, now_of(n));
        break;
    }
}

static bool is_of_copies(const struct cw_notice_body *notice)
{
    return notice->code == CW_NOTICE_COVERED || notice->code == CW_NOTICE_UNCOVERED;
}

static void on_closed(void *ctx, uint32_t at, const struct cw_copy_closed *closed)
{
    copies_closed(((struct relay_news *)ctx)->parts->copies, at, closed);
}

static void on_notice(void *ctx, uint32_t relay, const struct cw_notice_body *notice)
{
    struct relay_news *n = ctx;
    char text[CW_ADDRESS_MAX + CW_TEXT_MAX + 16];

    if (notice->rank == JOB_NO_RANK || is_of_copies(notice))
        log_verbose(&n->parts->log, "relay: %s", notice->text);
    else
        log_verbose(&n->parts->log, "relay: rank %u: %s", notice->rank, notice->text);
    if (notice->code == CW_NOTICE_FATAL) {
        job_fail(n->job, 1, now_of(n), "%s", notice->text);
    } else if (is_of_copies(notice)) {
        copies_notice(n->parts->copies, notice);
        n->ready |= copies_are_settled(n->parts->copies);
    } else if (notice->code == CW_NOTICE_UNLINKED) {
        /* most likely the other relay has ended, of which there is more to be heard */
        snprintf(text, sizeof(text), "relay %s: %s", relays_address(n->parts->relays, relay),
                 notice->text);
        job_relay_lost(n->job, text, now_of(n));
    } else if (notice->code == CW_NOTICE_UNSYNCED) {
        log_warning(&n->parts->log, now_of(n), JOB_NO_RANK,
                    "a relay's log no longer survives the loss of power", notice->text);
        log_notice(&n->parts->log, "relay %s: its log no longer survives the loss of power: %s",
                   relays_address(n->parts->relays, relay), notice->text);
        state_file_fail(n->parts->state, "its relay's log is not on disk any more");
    } else if (notice->rank < n->parts->options->ranks || notice->rank == JOB_NO_RANK) {
        if (notice->code == CW_NOTICE_UNLOGGED)
            unrestartable_mark(n->unrestartable, notice->rank, notice->text);
        else if (notice->rank != JOB_NO_RANK)
            on_rank_notice(n, notice);
    }
}

const struct relays_events relay_news_events = {.back = on_relay_back,
                                                .ready = on_relays_ready,
                                                .failed = on_relays_failed,
                                                .notice = on_notice,
                                                .stats = on_stats,
                                                .grown = on_grown,
                                                .trimmed = on_trimmed,
                                                .covered = on_covered,
                                                .closed = on_closed,
                                                .resumed = on_relay_resumed,
                                                .lost = on_relay_lost};
