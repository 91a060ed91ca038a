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
void job_events_put(struct job_events *events, uint64_t at_ns, const char *event, uint32_t rank,
                    const struct job_field *fields);

/* job_events_write(&events, now_ns, "rank_down", 2, job_text("cause", "..."),
 * job_number("signal", 9)): any number of fields. */
#define job_events_write(events, at_ns, event, rank, ...)                                          \
    job_events_put(events, at_ns, event, rank,                                                     \
                   (const struct job_field[]){__VA_ARGS__ __VA_OPT__(, ){.kind = JOB_FIELD_END}})

void job_events_close(struct job_events *events);

#endif
