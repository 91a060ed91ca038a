/* What the dispatcher tells of its job: lines on stderr, and the events file. */
#ifndef DISPATCHER_JOB_LOG_H
#define DISPATCHER_JOB_LOG_H

#include "common/setup.h"
#include "common/transport.h"
#include "dispatcher/job/fault.h"
#include "dispatcher/job/job.h"
#include "dispatcher/ranks/outputs.h"
#include "dispatcher/run/job_events.h"

#include <sys/types.h>

struct job_log {
    struct outputs *outputs; /* borrowed */
    bool verbose;
    struct job_events events;
};

/* A line on stderr. log_verbose: with `verbose` only. */
void log_notice(struct job_log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_verbose(struct job_log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* `path` is borrowed; NULL: no events are wanted. The job begins now. Errors: as job_events_open.
 */
int log_open_events(struct job_log *log, const char *path, uint64_t now_ns,
                    const uint8_t job_id[CW_ID_SIZE], uint32_t ranks, const char *relays,
                    struct cw_err *err);
/* On stderr, where there were ranks that could not have been restarted in the end. */
void log_unrestartable(struct job_log *log, const struct job *job, uint64_t now_ns);
/* On stderr, why it ended, if not well. */
void log_reason(struct job_log *log, const struct job *job);
void log_job_ended(struct job_log *log, uint64_t now_ns, const struct job *job);

/* To the events file alone. */
void log_warning(struct job_log *log, uint64_t now_ns, uint32_t rank, const char *text,
                 const char *cause);

/* An event of a host; `cause` may be NULL. */
void log_host(struct job_log *log, uint64_t now_ns, const char *event, const char *host,
              const char *cause);

/* What happened to a rank, which is at `r` of the job core. Of processes, with pid and `status` as
 * of waitpid(2), and the host, of a job that has several, or NULL: */
void log_rank_started(struct job_log *log, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                      pid_t pid, const char *host);
void log_rank_exit(struct job_log *log, uint32_t rank, int status); /* on stderr alone */
void log_rank_ended(struct job_log *log, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                    int status); /* ... and to the events file: for good */
void log_rank_down(struct job_log *log, uint64_t now_ns, const struct job_order *order, int status);

/* ... of its session with its relay; `repeats`: it has something to repeat, so many events. */
void log_rank_up(struct job_log *log, uint64_t now_ns, const struct cw_notice_body *notice,
                 uint64_t events, bool repeats);
/* It repeats a message with other contents, and goes on. */
void log_contents_differ(struct job_log *log, uint64_t now_ns, uint32_t rank, const char *text);
void log_rank_back(struct job_log *log, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                   uint64_t repeated);

/* ... and of a drill: `fault`, the text of the option, hit it; JOB_NO_RANK: it hit connections of
 * the job. */
void log_fault(struct job_log *log, uint64_t at_ns, uint32_t rank, uint32_t incarnation,
               enum fault_kind kind, const char *fault);

/* The process of a relay of the job's own has ended, with `status` as of waitpid(2), and is started
 * again; it listens, after so many restarts. */
void log_relay_down(struct job_log *log, uint64_t now_ns, const char *address, int status);
void log_relay_up(struct job_log *log, uint64_t now_ns, const char *address, uint32_t restarts);

/* Why the job ends when one ended so and will not come back. */
#define LOG_REASON_MAX (CW_ADDRESS_MAX + 200)
void log_relay_reason(char text[LOG_REASON_MAX], const char *address, uint32_t restarts,
                      int status);

/* The relay of this number and address has a copy of its log on `host`; has none any more; goes on
 * there, as this incarnation. `cause` may be NULL. */
void log_covered(struct job_log *log, uint64_t now_ns, uint32_t number, const char *address,
                 const char *host);
void log_uncovered(struct job_log *log, uint64_t now_ns, uint32_t number, const char *address,
                   const char *cause);
void log_relay_moved(struct job_log *log, uint64_t now_ns, uint32_t number, const char *address,
                     const char *host, uint32_t incarnation);

/* Our session with the relay of this address goes on over a new connection. */
void log_session_resumed(struct job_log *log, uint64_t now_ns, const char *address);

#endif
