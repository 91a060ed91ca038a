/* A session with a node on a host, without a job: the host is asked things, one after the other,
 * and answers; docs/protocol.md, "Nodes". Blocks, with a bound on each wait; each session is used
 * by one thread at a time. SIGPIPE is to be ignored. */
#ifndef DISPATCHER_SSH_SESSION_H
#define DISPATCHER_SSH_SESSION_H

#include "dispatcher/wire/greeting.h"
#include "dispatcher/wire/node_child.h"
#include "dispatcher/wire/node_states.h"
#include "dispatcher/wire/wire.h"

#include <jansson.h>

#define SSH_SESSION_TIME_NS 1800000000000ull /* without a question, after which the node ends */
#define SSH_SESSION_END_NS 3000000000ull     /* for a process to end that nobody asks any more */

struct ssh_session {
    struct loop *loop; /* NULL: there is none */
    struct node_child child;
    struct wire wire;
    struct greeting greeting;
    bool greeted;
    struct greeting_hello facts; /* of the host, once it has greeted */
    struct mux *mux;
    enum node_state asked;
    json_t *answer;      /* the last one; NULL: none */
    struct cw_err broke; /* why it ended; code CW_OK: it did not */
    uint32_t logins;     /* by ssh -v: gateways and the host, one after the other */
};

/* Starts it, without words as a node, and waits until the host has greeted. Whatever it returns,
 * ssh_session_free is to be called. Errors: CW_EINVAL, CW_ENOTFOUND, CW_ESYS, CW_ENOMEM: its
 * process cannot be started; CW_ETIME, CW_EPROTO; CW_ECLOSED: the process has ended, and
 * ssh_session_why says why. */
int ssh_session_begin(struct ssh_session *session, const struct launch_command_config *how,
                      uint64_t time_ns, struct cw_err *err);

/* Asks, takes the request, and waits for what is then session->answer. Errors: CW_ESYS: the host
 * says that it failed; CW_ENOMEM; CW_ETIME, CW_EPROTO, CW_ECLOSED as above. */
int ssh_session_ask(struct ssh_session *session, json_t *request, uint64_t time_ns,
                    struct cw_err *err);

/* After CW_ECLOSED: what the process said on standard error, or how it ended. Returns `text`. */
const char *ssh_session_why(struct ssh_session *session, char *text, size_t size);

/* Ends it. Of zeros: nothing. */
void ssh_session_free(struct ssh_session *session);

#endif
