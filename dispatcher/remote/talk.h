/* A talk with a process on a host that a launcher starts: what it says is handed on as it comes,
 * and waited for with a bound. Blocks; each is used by one thread at a time. SIGPIPE is to be
 * ignored. */
#ifndef DISPATCHER_TALK_H
#define DISPATCHER_TALK_H

#include "dispatcher/remote/agent_child.h"

#include <stdbool.h>

#define TALK_END_NS 3000000000ull /* for a process to end that has nothing to say any more */
#define TALK_SAY_MS 20000         /* for it to take what it is told */

/* Who talks. */
struct talk_side {
    /* Bytes have come. Error: they are not as they should be, and nothing more is read. */
    int (*take)(void *ctx, const void *bytes, size_t size, struct cw_err *err);
    /* A line has come on its standard error; NULL: it is only kept. */
    void (*said)(void *ctx, const char *line);
    void *ctx;
};

struct talk {
    struct loop *loop;
    struct agent_child child;
    struct loop_watch output;
    int in_fd; /* to it; -1: closed */
    struct talk_side side;
    struct cw_err wrong; /* with what came; code CW_OK: nothing */
};

/* There is none: talk_free has nothing to do. */
#define TALK_NONE ((struct talk){.in_fd = -1, .output.fd = -1})

/* Starts the process. Errors: CW_EINVAL, CW_ENOTFOUND, CW_ESYS, CW_ENOMEM. Whatever it returns,
 * talk_free is to be called. */
int talk_begin(struct talk *talk, const struct launch_command_config *how,
               const struct talk_side *side, struct cw_err *err);

/* Says all of it. Errors: CW_ECLOSED, CW_ETIME. */
int talk_say(struct talk *talk, const void *bytes, size_t size, struct cw_err *err);

/* Waits until there(ctx) is true. Errors: CW_ETIME; CW_ECLOSED: the process says no more, and
 * talk_why says why; those of take. */
int talk_await(struct talk *talk, bool (*there)(void *ctx), uint64_t time_ns, struct cw_err *err);

/* Tells it that no more will be said, waits for its end, and returns `text`: what it said on
 * standard error, or how it ended. */
const char *talk_why(struct talk *talk, char *text, size_t size);

/* Ends it. */
void talk_free(struct talk *talk);

#endif
