#include "dispatcher/run/telling.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNPROTECTED_NAMED 8u /* ranks; more are counted */

static void tell(struct telling *t, const char *fmt, va_list ap)
{
    char text[2 * CW_ERR_TEXT_MAX];

    vsnprintf(text, sizeof(text), fmt, ap);
    outputs_say(t->outputs, text);
}

void telling_tell(struct telling *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tell(t, fmt, ap);
    va_end(ap);
}

void telling_say(struct telling *t, const char *fmt, ...)
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

int telling_open_events(struct telling *t, const char *path, uint64_t now_ns,
                        const uint8_t job_id[CW_ID_SIZE], uint32_t ranks, const char *relays,
                        struct cw_err *err)
{
    char id[2 * CW_ID_SIZE + 1];

    if (job_events_open(&t->events, path, now_ns, err) < 0)
        return err->code;
    t->events.say = say_of_events;
    t->events.ctx = t->outputs;
    sodium_bin2hex(id, sizeof(id), job_id, CW_ID_SIZE);
    job_events_write(&t->events, now_ns, JOB_EVENT_JOB_STARTED, JOB_EVENTS_NO_RANK,
                     job_text("job", id), job_number("ranks", ranks),
                     job_number("pid", (uint64_t)getpid()), job_text("relay", relays));
    return CW_OK;
}

void telling_unprotected(struct telling *t, const struct job *job, uint64_t now_ns)
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
        telling_tell(t, "%s (of %u ranks)", text, job->config.ranks);
}

void telling_reason(struct telling *t, const struct job *job)
{
    if (job->reason[0])
        outputs_say(t->outputs, job->reason);
    else if (job->no_mpi)
        telling_tell(t, "note: no rank called MPI_Init; %s ran as %u separate processes",
                     job->rank[0].program, job->config.ranks);
}

void telling_job_ended(struct telling *t, uint64_t now_ns, const struct job *job)
{
    job_events_write(&t->events, now_ns, JOB_EVENT_JOB_ENDED, JOB_EVENTS_NO_RANK,
                     job_number("exit_code", (uint64_t)job->exit_code),
                     job_text("reason", job->reason));
}

void telling_warn(struct telling *t, uint64_t now_ns, uint32_t rank, const char *text,
                  const char *cause)
{
    job_events_write(&t->events, now_ns, JOB_EVENT_WARNING, rank, job_text("text", text),
                     job_text("cause", cause));
}

/* --- ranks --- */

void telling_started(struct telling *t, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                     pid_t pid, const char *host)
{
    struct job_field where = job_text("host", host);

    telling_say(t, "rank %u started (pid %d%s%s, %s)", rank, (int)pid, host ? " on " : "",
                host ? host : "", r->program);
    if (!host)
        where.kind = JOB_FIELD_END;
    job_events_write(&t->events, now_ns, JOB_EVENT_RANK_STARTED, rank,
                     job_number("incarnation", r->incarnation), job_number("slot", r->slot),
                     job_number("pid", (uint64_t)pid), where);
}

void telling_host(struct telling *t, uint64_t now_ns, enum job_event event, const char *host,
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

void telling_exit(struct telling *t, uint32_t rank, int status)
{
    if (WIFSIGNALED(status))
        telling_say(t, "rank %u ended (signal %d)", rank, WTERMSIG(status));
    else
        telling_say(t, "rank %u ended (exit code %d)", rank, WEXITSTATUS(status));
}

void telling_ended(struct telling *t, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                   int status)
{
    job_events_write(&t->events, now_ns, JOB_EVENT_RANK_ENDED, rank,
                     job_number("incarnation", r->incarnation), how_it_ended(status));
}

void telling_down(struct telling *t, uint64_t now_ns, const struct job_order *order, int status)
{
    bool gone = order->remains == JOB_REMAINS_NOTHING;

    if (order->hung)
        job_events_write(&t->events, now_ns, JOB_EVENT_RANK_HUNG, order->rank,
                         job_number("incarnation", order->incarnation));
    job_events_write(&t->events, now_ns, JOB_EVENT_RANK_DOWN, order->rank,
                     job_number("incarnation", order->incarnation), job_text("cause", order->why),
                     gone ? how_it_ended(status) : job_text("remains", "a process"));
}

void telling_up(struct telling *t, uint64_t now_ns, const struct cw_notice_body *notice,
                uint64_t events, bool repeats)
{
    job_events_write(&t->events, now_ns, JOB_EVENT_RANK_UP, notice->rank,
                     job_number("incarnation", notice->incarnation));
    if (repeats)
        job_events_write(&t->events, now_ns, JOB_EVENT_RANK_REPLAYING, notice->rank,
                         job_number("incarnation", notice->incarnation),
                         job_number("events", events), job_number("acts", notice->acts));
}

void telling_back(struct telling *t, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                  uint64_t repeated)
{
    uint64_t took_ns = now_ns - r->up_ns;

    telling_tell(t, "rank %u is back: it repeated %" PRIu64 " events in %.2f s and goes on", rank,
                 repeated, (double)took_ns / 1e9);
    job_events_write(&t->events, now_ns, JOB_EVENT_RANK_LIVE, rank,
                     job_number("incarnation", r->incarnation), job_number("events", repeated),
                     job_seconds("seconds", took_ns));
}

void telling_fault(struct telling *t, uint64_t at_ns, uint32_t rank, uint32_t incarnation,
                   enum fault_kind kind, const char *fault)
{
    if (rank == JOB_NO_RANK) {
        telling_say(t, "drill: %s", fault);
        job_events_write(&t->events, at_ns, JOB_EVENT_FAULT_FIRED, JOB_EVENTS_NO_RANK,
                         job_text("fault", fault), job_text("kind", fault_kind_name(kind)));
        return;
    }
    telling_say(t, "drill: %s: rank %u", fault, rank);
    job_events_write(&t->events, at_ns, JOB_EVENT_FAULT_FIRED, rank, job_text("fault", fault),
                     job_text("kind", fault_kind_name(kind)),
                     job_number("incarnation", incarnation));
}

void telling_relay_down(struct telling *t, uint64_t now_ns, const char *address, int status)
{
    static const char then[] = "starting it again on its log";

    if (WIFSIGNALED(status))
        telling_tell(t, "relay %s was killed by signal %d (%s); %s", address, WTERMSIG(status),
                     strsignal(WTERMSIG(status)), then);
    else
        telling_tell(t, "relay %s ended with code %d; %s", address, WEXITSTATUS(status), then);
    job_events_write(&t->events, now_ns, JOB_EVENT_RELAY_DOWN, JOB_EVENTS_NO_RANK,
                     job_text("relay", address), how_it_ended(status));
}

void telling_relay_reason(char text[TELLING_REASON_MAX], const char *address, uint32_t restarts,
                          int status)
{
    char often[64] = "";

    if (restarts)
        snprintf(often, sizeof(often), " after it was started again %u time%s", restarts,
                 restarts == 1 ? "" : "s");
    if (WIFSIGNALED(status))
        snprintf(text, TELLING_REASON_MAX,
                 "the relay %s was killed by signal %d (%s)%s; the messages in "
                 "it are lost, so the job ends",
                 address, WTERMSIG(status), strsignal(WTERMSIG(status)), often);
    else
        snprintf(text, TELLING_REASON_MAX, "the relay %s ended with code %d%s, so the job ends",
                 address, WEXITSTATUS(status), often);
}

void telling_relay_up(struct telling *t, uint64_t now_ns, const char *address, uint32_t restarts)
{
    telling_say(t, "relay %s listens again", address);
    job_events_write(&t->events, now_ns, JOB_EVENT_RELAY_UP, JOB_EVENTS_NO_RANK,
                     job_text("relay", address), job_number("restarts", restarts));
}

void telling_resumed(struct telling *t, uint64_t now_ns, const char *address)
{
    telling_say(t, "relay %s: the connection broke, and the session goes on over another", address);
    job_events_write(&t->events, now_ns, JOB_EVENT_SESSION_RESUMED, JOB_EVENTS_NO_RANK,
                     job_text("relay", address));
}
