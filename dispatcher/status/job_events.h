/* The job's events in a file: one line of JSON for each, {"time": "2026-01-31T23:59:59.123456Z",
 * "t": 0.052871, "event": "rank_down", "rank": 2, ...}. "t" is seconds since the job began; both
 * are by the monotonic clock, so that they never jump. docs/operations.md lists them. */
#ifndef DISPATCHER_JOB_EVENTS_H
#define DISPATCHER_JOB_EVENTS_H

#include "common/err.h"

#include <stdint.h>
#include <time.h>

#define JOB_EVENTS_NO_RANK UINT32_MAX /* the event is about the job */
#define JOB_EVENTS_WAIT_MS 100        /* for a reader of a pipe that is full; then it is given up */

/* Beside each: the members that it has by job_events_write(); that of a rank has `incarnation`. */
enum job_event {
    JOB_EVENT_JOB_STARTED,     /* job, ranks, relay */
    JOB_EVENT_RANK_STARTED,    /* its process runs: pid, slot; of a job on several hosts, host */
    JOB_EVENT_RANK_UP,         /* it has connected to its relay */
    JOB_EVENT_RANK_REPLAYING,  /* events */
    JOB_EVENT_RANK_LIVE,       /* it has caught up: events (that it repeated) */
    JOB_EVENT_RANK_DOWN,       /* cause; signal or exit_code */
    JOB_EVENT_RANK_HUNG,       /* no sign of life */
    JOB_EVENT_RANK_ENDED,      /* well */
    JOB_EVENT_FAULT_FIRED,     /* fault (as the user gave it) */
    JOB_EVENT_WARNING,         /* text */
    JOB_EVENT_SESSION_RESUMED, /* ours with a relay: relay */
    JOB_EVENT_RELAY_DOWN,      /* one of the job's own has ended: relay, signal or exit_code */
    JOB_EVENT_RELAY_UP,        /* ... and listens again: relay, restarts */
    JOB_EVENT_HOST_SUSPENDED,  /* the connection with its agent broke: host, cause */
    JOB_EVENT_HOST_RESUMED,    /* ... and goes on: host */
    JOB_EVENT_HOST_LOST,       /* host, cause */
    JOB_EVENT_HOST_BACK,       /* it has another agent: host */
    JOB_EVENT_IMAGE_TAKEN,     /* a rank is being copied: image, incarnation */
    JOB_EVENT_IMAGE_COPIED,    /* the copy has sent it: image, sent_bytes, stall (of the program) */
    JOB_EVENT_IMAGE_STORED, /* ... and can be restarted from it: image, bytes, stored_bytes, seconds
                             */
    JOB_EVENT_IMAGE_FAILED, /* ... or not: image, cause */
    JOB_EVENT_RANK_RESTORED, /* it goes on from an image: image */
    JOB_EVENT_JOB_ENDED,     /* exit_code, reason */
    JOB_EVENT_COUNT
};

struct job_events {
    int fd; /* -1: nobody asked for events, or writing them failed */
    const char *path;
    void (*say)(void *ctx, const char *text); /* told that; NULL: standard error is */
    void *ctx;
    uint64_t start_ns;           /* of the monotonic clock */
    struct timespec start_clock; /* the same moment of CLOCK_REALTIME */
};

enum job_field_kind { JOB_FIELD_END, JOB_FIELD_NUMBER, JOB_FIELD_SECONDS, JOB_FIELD_TEXT };

/* One more member of an event. */
struct job_field {
    enum job_field_kind kind;
    const char *key;
    uint64_t number; /* a number, or nanoseconds that are to be written as seconds */
    const char *text;
};

static inline struct job_field job_number(const char *key, uint64_t number)
{
    return (struct job_field){.kind = JOB_FIELD_NUMBER, .key = key, .number = number};
}

static inline struct job_field job_seconds(const char *key, uint64_t ns)
{
    return (struct job_field){.kind = JOB_FIELD_SECONDS, .key = key, .number = ns};
}

static inline struct job_field job_text(const char *key, const char *text)
{
    return (struct job_field){.kind = JOB_FIELD_TEXT, .key = key, .text = text};
}

/* `path` is borrowed; NULL: no events are wanted, and the other functions do nothing. A file is
 * emptied. `now_ns` is when the job began. Errors: CW_ESYS, naming the path. */
int job_events_open(struct job_events *events, const char *path, uint64_t now_ns,
                    struct cw_err *err);

/* Writes one line at once. `fields` ends with JOB_FIELD_END. The first failure is told on stderr
 * and ends the writing, never the job. `at_ns` may lie before what was written last. */
void job_events_put(struct job_events *events, uint64_t at_ns, enum job_event event, uint32_t rank,
                    const struct job_field *fields);

/* job_events_write(&events, now_ns, JOB_EVENT_RANK_DOWN, 2, job_text("cause", "..."),
 * job_number("signal", 9)): any number of fields. */
#define job_events_write(events, at_ns, event, rank, ...)                                          \
    job_events_put(events, at_ns, event, rank,                                                     \
                   (const struct job_field[]){__VA_ARGS__ __VA_OPT__(, ){.kind = JOB_FIELD_END}})

void job_events_close(struct job_events *events);

#endif
