#include "dispatcher/run/job_events.h"
#include "dispatcher/ranks/output_file.h"
#include "dispatcher/status/json_value.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS 1000000000
#define DIGITS 12 /* of a number of seconds: microseconds for more than a week */

int job_events_open(struct job_events *events, const char *path, uint64_t now_ns,
                    struct cw_err *err)
{
    *events = (struct job_events){.fd = -1, .path = path, .start_ns = now_ns};
    clock_gettime(CLOCK_REALTIME, &events->start_clock);
    if (!path)
        return CW_OK;
    /* a pipe must stop the job neither when nobody opens it nor when nobody reads it */
    events->fd = output_file_open(path, O_NONBLOCK);
    if (events->fd < 0)
        return cw_err_set(err, CW_ESYS, "--events %s: %s", path,
                          errno == ENXIO ? "nobody reads this pipe" : strerror(errno));
    return CW_OK;
}

static json_t *clock_at(const struct job_events *events, uint64_t at_ns)
{
    int64_t since_ns = (int64_t)(at_ns - events->start_ns);
    struct timespec moment = events->start_clock;

    moment.tv_sec += since_ns / SECOND_NS;
    moment.tv_nsec += since_ns % SECOND_NS;
    if (moment.tv_nsec >= SECOND_NS || moment.tv_nsec < 0) {
        int carry = moment.tv_nsec < 0 ? -1 : 1;

        moment.tv_sec += carry;
        moment.tv_nsec -= carry * SECOND_NS;
    }
    return json_value_time(&moment);
}

static json_t *seconds(int64_t ns)
{
    return json_real((double)ns / SECOND_NS);
}

static json_t *field_value(const struct job_field *field)
{
    switch (field->kind) {
    case JOB_FIELD_NUMBER:
        return json_integer((json_int_t)field->number);
    case JOB_FIELD_SECONDS:
        return seconds((int64_t)field->number);
    case JOB_FIELD_TEXT:
        return json_value_text(field->text);
    case JOB_FIELD_END:
        break;
    }
    return NULL;
}

/* One line, to be freed; NULL without memory. */
static char *line_of(const struct job_events *events, uint64_t at_ns, const char *event,
                     uint32_t rank, const struct job_field *fields)
{
    json_t *object = json_object();
    bool bad = !object;
    char *line = NULL;

    bad |= json_object_set_new(object, "time", clock_at(events, at_ns)) < 0;
    bad |= json_object_set_new(object, "t", seconds((int64_t)(at_ns - events->start_ns))) < 0;
    bad |= json_object_set_new(object, "event", json_string(event)) < 0;
    if (rank != JOB_EVENTS_NO_RANK)
        bad |= json_object_set_new(object, "rank", json_integer(rank)) < 0;
    for (; fields->kind != JOB_FIELD_END; fields++)
        bad |= json_object_set_new(object, fields->key, field_value(fields)) < 0;
    if (!bad)
        line = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    json_decref(object);
    return line;
}

/* False with errno set. Looks first: a copy of our standard error may be one that blocks. */
static bool write_all(int fd, const char *bytes, size_t size)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    while (size) {
        ssize_t n = poll(&p, 1, JOB_EVENTS_WAIT_MS);

        if (n == 0) {
            errno = ETIMEDOUT;
            return false;
        }
        n = write(fd, bytes, size);
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            return false;
        }
    }
    return true;
}

static void give_up(struct job_events *events, const char *cause)
{
    char text[CW_ERR_TEXT_MAX];

    snprintf(text, sizeof(text), "--events %.300s: %s; no more events are written", events->path,
             cause);
    if (events->say)
        events->say(events->ctx, text);
    else
        fprintf(stderr, "causeway: %s\n", text);
    job_events_close(events);
}

void job_events_put(struct job_events *events, uint64_t at_ns, const char *event, uint32_t rank,
                    const struct job_field *fields)
{
    char *line;
    size_t size;

    if (events->fd < 0)
        return;
    line = line_of(events, at_ns, event, rank, fields);
    if (!line) {
        give_up(events, "no memory");
        return;
    }
    size = strlen(line);
    line[size] = '\n'; /* in the terminator's place: what is written needs none */
    if (!write_all(events->fd, line, size + 1))
        give_up(events, strerror(errno));
    free(line);
}

void job_events_close(struct job_events *events)
{
    if (events->fd >= 0)
        close(events->fd);
    events->fd = -1;
}
