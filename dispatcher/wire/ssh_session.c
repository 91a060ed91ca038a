#include "dispatcher/wire/ssh_session.h"
#include "dispatcher/status/json_value.h"
#include "dispatcher/wire/node_frames.h"
#include "dispatcher/wire/ssh_says.h"

#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SSH_LOOK_MS 10 /* between two looks whether a process has ended */

/* --- what comes --- */

/* Each ssh on the way, and the last one, says when it is logged in. */
static bool on_said(void *ctx, const char *line)
{
    struct ssh_session *s = ctx;
    enum ssh_said said = ssh_says(line);

    s->logins += said == SSH_SAID_LOGIN;
    return said == SSH_SAID_OTHER;
}

static int on_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct ssh_session *s = ctx;

    if (node_state_take(&s->asked, type, err) < 0)
        return err->code;
    s->answer = json_object_read(body, size, err);
    return s->answer ? CW_OK : err->code;
}

static void on_output(void *ctx)
{
    wire_flush_soon(&((struct ssh_session *)ctx)->wire);
}

static const struct mux_ops mux_ops = {on_frame, on_output};

static long on_greeting(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct ssh_session *s = ctx;
    enum greeting_type type;
    size_t body_size;
    long used = greeting_take(&s->greeting, bytes, size, &type, &body_size, err);

    if (used < 0 || type == GREETING_NONE)
        return used;
    if (s->greeted || type != GREETING_HELLO ||
        !greeting_get_hello(s->greeting.bytes + GREETING_HEADER, body_size, &s->facts))
        return cw_err_set(err, CW_EPROTO, "it greets with something that makes no sense");
    s->greeted = true;
    if (!greeting_is_ours(&s->facts))
        return used;
    if (mux_connect(s->mux, 0, err) < 0)
        return err->code;
    wire_begin(&s->wire);
    return used;
}

static void on_broke(void *ctx, const struct cw_err *err)
{
    struct ssh_session *s = ctx;

    s->broke = *err;
    if (err->code == CW_ESYS)
        s->broke.code = CW_ECLOSED;
}

static const struct wire_ops wire_ops = {on_greeting, on_broke};

/* --- the session --- */

static int await(struct ssh_session *s, bool (*there)(const struct ssh_session *), uint64_t time_ns,
                 struct cw_err *err)
{
    uint64_t until_ns = loop_look(s->loop) + time_ns;

    while (!there(s)) {
        if (s->broke.code != CW_OK) {
            *err = s->broke;
            return err->code;
        }
        if (loop_look(s->loop) >= until_ns)
            return cw_err_set(err, CW_ETIME, "it does not answer within %d s",
                              (int)(time_ns / 1000000000));
        loop_turn(s->loop, until_ns);
    }
    return CW_OK;
}

static bool has_greeted(const struct ssh_session *s)
{
    return s->greeted;
}

static bool has_answered(const struct ssh_session *s)
{
    return s->answer;
}

static int start(struct ssh_session *s, const struct launch_command_config *how, struct cw_err *err)
{
    const struct greeting_open open = {.protocol = GREETING_PROTOCOL,
                                       .version = CAUSEWAY_VERSION,
                                       .timeout_ns = SSH_SESSION_TIME_NS,
                                       .alive_period_ns = SSH_SESSION_TIME_NS};
    static const char *const words[] = {"node", NULL};
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct launch_command_config config = *how;
    struct launch_command command;
    int in_fd, out_fd;

    if (!config.words)
        config.words = words;
    if (launch_command_make(&command, &config, err) < 0 ||
        node_child_start(&s->child, &command, &in_fd, &out_fd, err) < 0 ||
        wire_open(&s->wire, out_fd, in_fd, err) < 0)
        return err->code;
    return wire_greet(&s->wire, bytes, greeting_put_open(bytes, &open), err);
}

int ssh_session_begin(struct ssh_session *s, const struct launch_command_config *how,
                      uint64_t time_ns, struct cw_err *err)
{
    *s = (struct ssh_session){.loop = loop_new(err)};
    if (!s->loop)
        return err->code;
    wire_init(&s->wire, s->loop, &wire_ops, s);
    node_child_init(&s->child, s->loop, on_said, s);
    greeting_init(&s->greeting, true);
    s->mux = s->wire.mux = mux_new(&mux_ops, s, err);
    if (!s->mux || start(s, how, err) < 0)
        return err->code;
    return await(s, has_greeted, time_ns, err);
}

/* The text may have a key in it. */
static int send_request(struct ssh_session *s, const json_t *request, struct cw_err *err)
{
    char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;

    if (!text)
        return cw_err_set(err, CW_ENOMEM, "no memory for a request");
    mux_send(s->mux, NODE_ASK, text, strlen(text), err);
    sodium_memzero(text, strlen(text));
    free(text);
    return err->code;
}

int ssh_session_ask(struct ssh_session *s, json_t *request, uint64_t time_ns, struct cw_err *err)
{
    const char *failed;

    err->code = CW_OK;
    json_decref(s->answer);
    s->answer = NULL;
    s->asked = NODE_IS_ORDERED;
    send_request(s, request, err);
    json_decref(request);
    if (err->code != CW_OK || await(s, has_answered, time_ns, err) < 0)
        return err->code;
    failed = json_string_value(json_object_get(s->answer, "failed"));
    if (!failed)
        return CW_OK;
    json_text_copy(err->text, CW_ERR_TEXT_MAX, failed);
    return err->code = CW_ESYS;
}

/* --- its end --- */

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == pid;
}

/* Until then, or not at all: then it is killed, and in any case what it has started: ssh leaves the
 * one behind by which it passes a gateway. */
static void await_process(struct ssh_session *s, uint64_t until_ns)
{
    pid_t pid = s->child.pid;
    int status = 0;

    if (pid <= 0)
        return;
    while (!has_ended(pid) && loop_look(s->loop) < until_ns)
        poll(NULL, 0, SSH_LOOK_MS);
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    node_child_ended(&s->child, status);
}

const char *ssh_session_why(struct ssh_session *s, char *text, size_t size)
{
    wire_close(&s->wire);
    await_process(s, loop_look(s->loop) + SSH_SESSION_END_NS);
    return node_child_why(&s->child, text, size);
}

void ssh_session_free(struct ssh_session *s)
{
    uint64_t until_ns;

    if (!s->loop)
        return;
    until_ns = loop_look(s->loop) + SSH_SESSION_END_NS;
    wire_finish(&s->wire);
    while (s->wire.open && loop_look(s->loop) < until_ns)
        loop_turn(s->loop, until_ns);
    wire_end(&s->wire);
    await_process(s, until_ns);
    node_child_kill(&s->child);
    mux_free(s->mux);
    json_decref(s->answer);
    loop_free(s->loop);
    *s = (struct ssh_session){0};
}
