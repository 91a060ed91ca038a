/* What the dispatcher tells of its job: lines on stderr, and the events file. */
#ifndef DISPATCHER_TELLING_H
#define DISPATCHER_TELLING_H

#include "common/setup.h"
#include "common/transport.h"
#include "dispatcher/job/fault.h"
#include "dispatcher/job/job.h"
#include "dispatcher/status/job_events.h"
#include "dispatcher/streams/outputs.h"

#include <sys/types.h>

struct telling {
    struct outputs *outputs; /* borrowed */
    bool verbose;
    struct job_events events;
};

/* A line on stderr. telling_say: with `verbose` only. */
void telling_tell(struct telling *telling, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void telling_say(struct telling *telling, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* `path` is borrowed; NULL: no events are wanted. The job begins now. Errors: as job_events_open.
 */
int telling_open_events(struct telling *telling, const char *path, uint64_t now_ns,
                        const uint8_t job_id[CW_ID_SIZE], uint32_t ranks, const char *relays,
                        struct cw_err *err);
/* On stderr, where there were ranks that could not have been restarted in the end. */
void telling_unprotected(struct telling *telling, const struct job *job, uint64_t now_ns);
/* On stderr, why it ended, if not well. */
void telling_reason(struct telling *telling, const struct job *job);
void telling_job_ended(struct telling *telling, uint64_t now_ns, const struct job *job);

/* To the events file alone. */
void telling_warn(struct telling *telling, uint64_t now_ns, uint32_t rank, const char *text,
                  const char *cause);

/* An event of a host; `cause` may be NULL. */
void telling_host(struct telling *telling, uint64_t now_ns, enum job_event event, const char *host,
                  const char *cause);

/* What happened to a rank, which is at `r` of the job core. Of processes, with pid and `status` as
 * of waitpid(2), and the host, of a job that has several, or NULL: */
void telling_started(struct telling *telling, uint64_t now_ns, uint32_t rank,
                     const struct job_rank *r, pid_t pid, const char *host);
void telling_exit(struct telling *telling, uint32_t rank, int status); /* on stderr alone */
void telling_ended(struct telling *telling, uint64_t now_ns, uint32_t rank,
                   const struct job_rank *r, int status); /* ... and to the events file: for good */
void telling_down(struct telling *telling, uint64_t now_ns, const struct job_order *order,
                  int status);

/* ... of its session with its relay; `repeats`: it has something to repeat, so many events. */
void telling_up(struct telling *telling, uint64_t now_ns, const struct cw_notice_body *notice,
                uint64_t events, bool repeats);
void telling_back(struct telling *telling, uint64_t now_ns, uint32_t rank, const struct job_rank *r,
                  uint64_t repeated);

/* ... and of a drill: `fault`, the text of the option, hit it; JOB_NO_RANK: it hit connections of
 * the job. */
void telling_fault(struct telling *telling, uint64_t at_ns, uint32_t rank, uint32_t incarnation,
                   enum fault_kind kind, const char *fault);

/* The process of a relay of the job's own has ended, with `status` as of waitpid(2), and is started
 * again; it listens, after so many restarts. */
void telling_relay_down(struct telling *telling, uint64_t now_ns, const char *address, int status);
void telling_relay_up(struct telling *telling, uint64_t now_ns, const char *address,
                      uint32_t restarts);

/* Why the job ends when one ended so and will not come back. */
#define TELLING_REASON_MAX (CW_ADDRESS_MAX + 200)
void telling_relay_reason(char text[TELLING_REASON_MAX], const char *address, uint32_t restarts,
                          int status);

/* Our session with the relay of this address goes on over a new connection. */
void telling_resumed(struct telling *telling, uint64_t now_ns, const char *address);

#endif
