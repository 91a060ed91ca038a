#include "dispatcher/run/job_log.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNPROTECTED_NAMED 8u /* ranks; more are counted */

static void tell(struct job_log *t, const char *fmt, va_list ap)
{
    char text[2 * CW_ERR_TEXT_MAX];

    vsnprintf(text, sizeof(text), fmt, ap);
    outputs_say(t->outputs, text);
}

void log_notice(struct job_log *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tell(t, fmt, ap);
    va_end(ap);
}

void log_verbose(struct job_log *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (t->verbose)
        tell(t, fmt, ap);
    va_end(ap);
}

/* --- the job --- */

static void say_of_events(void *ctx, const char *text)
{
    outputs_say(ctx, text);
}

int log_open_events(struct job_log *t, const char *path, uint64_t now_ns,
                    const uint8_t job_id[CW_ID_SIZE], uint32_t ranks, const char *relays,
                    struct cw_err *err)
{
    char id[2 * CW_ID_SIZE + 1];

    if (job_events_open(&t->events, path, now_ns, err) < 0)
        return err->code;
    t->events.say = say_of_events;
    t->events.ctx = t->outputs;
    sodium_bin2hex(id, sizeof(id), job_id, CW_ID_SIZE);
    job_events_write(&t->events, now_ns, "job_started", JOB_EVENTS_NO_RANK, job_text("job", id),
                     job_number("ranks", ranks), job_number("pid", (uint64_t)getpid()),
                     job_text("relay", relays));
    return CW_OK;
}

void log_unrestartable(struct job_log *t, const struct job *job, uint64_t now_ns)
{
    char text[UNPROTECTED_NAMED * 64 + 128];
    uint32_t count = 0;
    int at = 0;

    for (uint32_t rank = 0; rank < job->config.ranks; rank++) {
        const struct job_rank *r = &job->rank[rank];

        if (!r->unlogged || count++ >= UNPROTECTED_NAMED)
            continue;
        at += sprintf(text + at, "%s rank %u for the last %.1f s",
                      count == 1 ? "note: could not have been restarted:" : ",", rank,
                      (double)(now_ns - r->unlogged_ns) / 1e9);
    }
    if (count > UNPROTECTED_NAMED)
        at += sprintf(text + at, ", and %u more", count - UNPROTECTED_NAMED);
    if (count)
        log_notice(t, "%s (of %u ranks)", text, job->config.ranks);
}

void log_reason(struct job_log *t, const struct job *job)
{
    if (job->reason[0])
        outputs_say(t->outputs, job->reason);
    else if (job->no_mpi)
        log_notice(t, "note: no rank called MPI_Init; %s ran as %u separate processes",
                   job->rank[0].program, job->config.ranks);
}

void log_job_ended(struct job_log *t, uint64_t now_ns, const struct job *job)
{
    job_events_write(&t->events, now_ns, "job_ended", JOB_EVENTS_NO_RANK,
                     job_number("exit_code", (uint64_t)job->exit_code),
                     job_text("reason", job->reason));
}

void log_warning(struct job_log *t, uint64_t now_ns, uint32_t rank, const char *text,
                 const char *cause)
{
    job_events_write(&t->events, now_ns, "warning", rank, job_text("text", text),
                     job_text("cause", cause));
}

/* --- ranks --- */

void log_rank_started(struct job_log *t, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                      pid_t pid, const char *host)
{
    struct job_field where = job_text("host", host);

    log_verbose(t, "rank %u started (pid %d%s%s, %s)", rank, (int)pid, host ? " on " : "",
                host ? host : "", r->program);
    if (!host)
        where.kind = JOB_FIELD_END;
    job_events_write(&t->events, now_ns, "rank_started", rank,
                     job_number("incarnation", r->incarnation), job_number("slot", r->slot),
                     job_number("pid", (uint64_t)pid), where);
}

void log_host(struct job_log *t, uint64_t now_ns, const char *event, const char *host,
              const char *cause)
{
    struct job_field why = job_text("cause", cause);

    if (!cause)
        why.kind = JOB_FIELD_END;
    job_events_write(&t->events, now_ns, event, JOB_EVENTS_NO_RANK, job_text("host", host), why);
}

static struct job_field how_it_ended(int status)
{
    if (WIFSIGNALED(status))
        return job_number("signal", (uint64_t)WTERMSIG(status));
    return job_number("exit_code", (uint64_t)WEXITSTATUS(status));
}

void log_rank_exit(struct job_log *t, uint32_t rank, int status)
{
    if (WIFSIGNALED(status))
        log_verbose(t, "rank %u ended (signal %d)", rank, WTERMSIG(status));
    else
        log_verbose(t, "rank %u ended (exit code %d)", rank, WEXITSTATUS(status));
}

void log_rank_ended(struct job_log *t, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                    int status)
{
    job_events_write(&t->events, now_ns, "rank_ended", rank,
                     job_number("incarnation", r->incarnation), how_it_ended(status));
}

void log_rank_down(struct job_log *t, uint64_t now_ns, const struct job_order *order, int status)
{
    bool gone = order->remains == JOB_REMAINS_NOTHING;

    if (order->hung)
        job_events_write(&t->events, now_ns, "rank_hung", order->process.rank,
                         job_number("incarnation", order->process.incarnation));
    job_events_write(&t->events, now_ns, "rank_down", order->process.rank,
                     job_number("incarnation", order->process.incarnation),
                     job_text("cause", order->why),
                     gone ? how_it_ended(status) : job_text("remains", "a process"));
}

void log_rank_up(struct job_log *t, uint64_t now_ns, const struct cw_notice_body *notice,
                 uint64_t events, bool repeats)
{
    job_events_write(&t->events, now_ns, "rank_up", notice->rank,
                     job_number("incarnation", notice->incarnation));
    if (repeats)
        job_events_write(&t->events, now_ns, "rank_replaying", notice->rank,
                         job_number("incarnation", notice->incarnation),
                         job_number("events", events), job_number("acts", notice->acts));
}

void log_rank_back(struct job_log *t, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                   uint64_t repeated)
{
    uint64_t took_ns = now_ns - r->up_ns;

    log_notice(t, "rank %u is back: it repeated %" PRIu64 " events in %.2f s and goes on", rank,
               repeated, (double)took_ns / 1e9);
    job_events_write(&t->events, now_ns, "rank_live", rank,
                     job_number("incarnation", r->incarnation), job_number("events", repeated),
                     job_seconds("seconds", took_ns));
}

void log_contents_differ(struct job_log *t, uint64_t now_ns, uint32_t rank, const char *text)
{
    log_warning(t, now_ns, rank, "repeats a message with other contents", text);
    log_notice(t,
               "rank %u repeats a message with other contents; unless the program never set "
               "these bytes, the job's result may be wrong: %s",
               rank, text);
}

void log_fault(struct job_log *t, uint64_t at_ns, uint32_t rank, uint32_t incarnation,
               enum fault_kind kind, const char *fault)
{
    if (rank == JOB_NO_RANK) {
        log_verbose(t, "drill: %s", fault);
        job_events_write(&t->events, at_ns, "fault_fired", JOB_EVENTS_NO_RANK,
                         job_text("fault", fault), job_text("kind", fault_kind_name(kind)));
        return;
    }
    log_verbose(t, "drill: %s: rank %u", fault, rank);
    job_events_write(&t->events, at_ns, "fault_fired", rank, job_text("fault", fault),
                     job_text("kind", fault_kind_name(kind)),
                     job_number("incarnation", incarnation));
}

void log_relay_down(struct job_log *t, uint64_t now_ns, const char *address, int status)
{
    static const char then[] = "starting it again on its log";

    if (WIFSIGNALED(status))
        log_notice(t, "relay %s was killed by signal %d (%s); %s", address, WTERMSIG(status),
                   strsignal(WTERMSIG(status)), then);
    else
        log_notice(t, "relay %s ended with code %d; %s", address, WEXITSTATUS(status), then);
    job_events_write(&t->events, now_ns, "relay_down", JOB_EVENTS_NO_RANK,
                     job_text("relay", address), how_it_ended(status));
}

void log_relay_reason(char text[LOG_REASON_MAX], const char *address, uint32_t restarts, int status)
{
    char often[64] = "";

    if (restarts)
        snprintf(often, sizeof(often), " after it was started again %u time%s", restarts,
                 restarts == 1 ? "" : "s");
    if (WIFSIGNALED(status))
        snprintf(text, LOG_REASON_MAX,
                 "the relay %s was killed by signal %d (%s)%s; the messages in "
                 "it are lost, so the job ends",
                 address, WTERMSIG(status), strsignal(WTERMSIG(status)), often);
    else
        snprintf(text, LOG_REASON_MAX, "the relay %s ended with code %d%s, so the job ends",
                 address, WEXITSTATUS(status), often);
}

void log_relay_up(struct job_log *t, uint64_t now_ns, const char *address, uint32_t restarts)
{
    log_verbose(t, "relay %s listens again", address);
    job_events_write(&t->events, now_ns, "relay_up", JOB_EVENTS_NO_RANK, job_text("relay", address),
                     job_number("restarts", restarts));
}

void log_session_resumed(struct job_log *t, uint64_t now_ns, const char *address)
{
    log_verbose(t, "relay %s: the connection broke, and the session goes on over another", address);
    job_events_write(&t->events, now_ns, "session_resumed", JOB_EVENTS_NO_RANK,
                     job_text("relay", address));
}

void log_covered(struct job_log *t, uint64_t now_ns, uint32_t number, const char *address,
                 const char *host)
{
    job_events_write(&t->events, now_ns, "covered", JOB_EVENTS_NO_RANK,
                     job_number("number", number), job_text("relay", address),
                     job_text("host", host));
}

void log_uncovered(struct job_log *t, uint64_t now_ns, uint32_t number, const char *address,
                   const char *cause)
{
    job_events_write(&t->events, now_ns, "uncovered", JOB_EVENTS_NO_RANK,
                     job_number("number", number), job_text("relay", address),
                     job_text("cause", cause ? cause : ""));
}

void log_relay_moved(struct job_log *t, uint64_t now_ns, uint32_t number, const char *address,
                     const char *host, uint32_t incarnation)
{
    job_events_write(&t->events, now_ns, "relay_moved", JOB_EVENTS_NO_RANK,
                     job_number("number", number), job_text("relay", address),
                     job_text("host", host), job_number("incarnation", incarnation));
}
