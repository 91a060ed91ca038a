#include "relay/dial_request.h"

#include <stdio.h>
#include <string.h>

/* How often, and how long, an attempt may be repeated. */
static struct cw_dial_request times_of(const struct relay_dial *what)
{
    if (what->resumes)
        return (struct cw_dial_request){
            .hello = {.flags = CW_HELLO_RESUME, .received = what->received},
            .time_ms = (uint32_t)(what->resume_ns / 1000000u),
            .tries = 0,
            .pause_ms = DIAL_RESUME_PAUSE_MS,
            .pause_max_ms = DIAL_RESUME_PAUSE_MAX_MS};
    return (struct cw_dial_request){.time_ms = DIAL_MS,
                                    .tries = DIAL_TRIES,
                                    .pause_ms = DIAL_PAUSE_MS,
                                    .pause_max_ms = DIAL_PAUSE_MS};
}

void dial_request_of(struct cw_dial_request *request, const struct relay_dial *what)
{
    *request = times_of(what);
    request->hello.role = CW_ROLE_RELAY;
    request->hello.rank = what->self;
    request->hello.incarnation = what->incarnation;
    request->hello.event = what->number;
    request->hello.flags |= what->copies ? CW_HELLO_COPY : 0;
    request->tag = (uint64_t)what->asked << 32 | what->peer;
    request->session_ms = DIAL_SESSION_MS;
    memcpy(request->hello.job, what->job, CW_ID_SIZE);
    memcpy(request->key, what->key, CW_KEY_SIZE);
    snprintf(request->address, sizeof(request->address), "%s", what->address);
}

/* The text of an error of connecting names the place itself. */
static void explain(struct relay_dialled *dialled, const struct cw_dial_result *result)
{
    struct cw_err err = result->err;

    if (err.code != CW_ESYS && err.code != CW_EINVAL)
        cw_err_wrap(&err, "%s", result->request->address);
    snprintf(dialled->failure, sizeof(dialled->failure), "%.*s", CW_TEXT_MAX, err.text);
}

struct relay_dialled dial_outcome_of(const struct cw_dial_result *result)
{
    struct relay_dialled dialled = {.peer = (uint32_t)result->request->tag,
                                    .asked = (uint32_t)(result->request->tag >> 32),
                                    .copies = result->request->hello.flags & CW_HELLO_COPY,
                                    .resumed = result->request->hello.flags & CW_HELLO_RESUME,
                                    .received = result->welcome.received,
                                    .session = result->session};

    memcpy(dialled.job, result->request->hello.job, CW_ID_SIZE);
    if (result->fd < 0)
        explain(&dialled, result);
    return dialled;
}
