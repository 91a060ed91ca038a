/* A visit to a host: starts causeway there by the launcher, reads its report, and asks further
 * questions. Blocks, with a bound on each wait; each visit is used by one thread at a time. */
#ifndef DISPATCHER_VISIT_H
#define DISPATCHER_VISIT_H

#include "dispatcher/doctor/report.h"
#include "dispatcher/doctor/request.h"
#include "dispatcher/remote/talk.h"

#define VISIT_ASK_NS 30000000000ull /* for an answer */

struct visit_config {
    const char *launcher; /* as of struct launch_command_config, like the next ones */
    const char *launcher_args;
    const char *own_host;
    const char *causeway;
    uint64_t time_ns; /* until it has reported, and a part of it to connect; 0: as for agents */
};

struct visit {
    struct talk talk;
    uint64_t time_ns;
    struct report report;
    uint32_t answered; /* answers before the one that is waited for */
};

/* There is none: visit_free has nothing to do. */
#define VISIT_NONE ((struct visit){.talk = TALK_NONE})

/* Starts "causeway WORD..." there. Errors: CW_EINVAL, CW_ENOTFOUND, CW_ESYS, CW_ENOMEM. Whatever
 * it returns, visit_free is to be called. */
int visit_begin(struct visit *visit, const struct visit_config *config, const char *host,
                const char *const *words, struct cw_err *err);

/* Waits until the report is ready. Errors: CW_ETIME, CW_EPROTO; CW_ECLOSED: the process has ended,
 * and visit_why says why. */
int visit_await_report(struct visit *visit, struct cw_err *err);

/* Waits until the process has no more to say. Error: CW_ETIME. */
int visit_await_end(struct visit *visit, struct cw_err *err);

/* Asks, and waits for the answer, then in visit->report.answer. Errors: CW_ESYS: the host says that
 * it failed; CW_ETIME, CW_EPROTO, CW_ECLOSED as above. */
int visit_ask(struct visit *visit, const struct request *request, struct cw_err *err);

/* After CW_ECLOSED: what the process said on standard error, or how it ended. Returns `text`. */
const char *visit_why(struct visit *visit, char *text, size_t size);

/* Ends it; its report is gone. */
void visit_free(struct visit *visit);

#endif
