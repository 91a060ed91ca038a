/* A talk with `causeway service` on a host of a grid: requests and their answers. Blocks, with a
 * bound on each wait; each is used by one thread at a time. */
#ifndef DISPATCHER_HOST_TALK_H
#define DISPATCHER_HOST_TALK_H

#include "common/marker.h"
#include "dispatcher/remote/talk.h"
#include "dispatcher/services/service_format.h"

#define HOST_TALK_HELLO_NS 60000000000ull  /* until it has said which version it is */
#define HOST_TALK_ANSWER_NS 70000000000ull /* until it has answered a request */
#define HOST_TALK_BYTES_MAX 262144u        /* that it says */
#define HOST_TALK_ERRORS_MAX 3u            /* last lines on standard error, that are kept */

struct host_talk {
    struct talk talk;
    struct marker marker;
    bool begun; /* the marker has come */
    size_t bytes;
    size_t used; /* of the line that comes */
    char *line;  /* SERVICE_LINE_MAX of them */
    bool greeted;
    struct service_hello hello;
    uint32_t answers; /* that came */
    uint32_t asked;
    struct service_answer answer; /* the last of them */
    uint32_t logins;              /* by ssh: gateways and the host, one after the other */
    uint32_t errors;              /* lines that came */
    char error[HOST_TALK_ERRORS_MAX][AGENT_CHILD_LINE_MAX + 1];
};

#define HOST_TALK_NONE ((struct host_talk){.talk = TALK_NONE})

/* Starts it, and waits until it has greeted. Whatever it returns, host_talk_free is to be called.
 * Errors: of talk_begin; CW_ETIME, CW_EPROTO; CW_ECLOSED: host_talk_why says why. */
int host_talk_begin(struct host_talk *talk, const struct launch_command_config *how,
                    struct cw_err *err);

/* Asks, and waits for the answer, then in talk->answer. Errors: CW_ETIME, CW_EPROTO, CW_ECLOSED. */
int host_talk_ask(struct host_talk *talk, const json_t *request, struct cw_err *err);

/* After CW_ECLOSED: what was said on standard error, or how it ended. Returns `text`. */
const char *host_talk_why(struct host_talk *talk, char *text, size_t size);

void host_talk_free(struct host_talk *talk);

/* What comes; pure, for host_talk_begin and a fuzzer. `line` is there. Error: CW_EPROTO. */
int host_talk_take(struct host_talk *talk, const void *bytes, size_t size, struct cw_err *err);

/* A line that ssh -v has said. */
void host_talk_hear(struct host_talk *talk, const char *line);

#endif
