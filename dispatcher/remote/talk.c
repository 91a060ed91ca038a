#include "dispatcher/remote/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TALK_LOOK_MS 10 /* between two looks whether a process has ended */

static void on_said(void *ctx, const char *line)
{
    struct talk *t = ctx;

    if (t->side.said)
        t->side.said(t->side.ctx, line);
}

static void close_input(struct talk *t)
{
    if (t->in_fd >= 0)
        close(t->in_fd);
    t->in_fd = -1;
}

static void on_output(void *ctx)
{
    struct talk *t = ctx;
    char bytes[4096];
    ssize_t n = read(t->output.fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || t->side.take(t->side.ctx, bytes, (size_t)n, &t->wrong) < 0)
        loop_close(t->loop, &t->output);
}

int talk_begin(struct talk *t, const struct launch_command_config *how,
               const struct talk_side *side, struct cw_err *err)
{
    struct launch_command command;
    int out_fd;

    *t = TALK_NONE;
    t->side = *side;
    t->loop = loop_new(err);
    if (!t->loop)
        return err->code;
    agent_child_init(&t->child, t->loop, on_said, t);
    if (launch_command_make(&command, how, err) < 0 ||
        agent_child_start(&t->child, &command, &t->in_fd, &out_fd, err) < 0)
        return err->code;
    fcntl(t->in_fd, F_SETFL, O_NONBLOCK);
    fcntl(out_fd, F_SETFL, O_NONBLOCK);
    if (loop_watch(t->loop, &t->output, out_fd, EPOLLIN, on_output, t) == 0)
        return CW_OK;
    cw_err_set(err, CW_ESYS, "watching what comes from it: %s", strerror(errno));
    close(out_fd);
    return err->code;
}

int talk_say(struct talk *t, const void *bytes, size_t size, struct cw_err *err)
{
    const char *at = bytes;

    while (size > 0) {
        struct pollfd p = {.fd = t->in_fd, .events = POLLOUT};
        ssize_t n = write(t->in_fd, at, size);

        if (n >= 0) {
            at += n;
            size -= (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            return cw_err_set(err, CW_ECLOSED, "asking it: %s", strerror(errno));
        } else if (poll(&p, 1, TALK_SAY_MS) == 0) {
            return cw_err_set(err, CW_ETIME, "it reads nothing for %d s", TALK_SAY_MS / 1000);
        }
    }
    return CW_OK;
}

int talk_await(struct talk *t, bool (*there)(void *ctx), uint64_t time_ns, struct cw_err *err)
{
    uint64_t until_ns = loop_look(t->loop) + time_ns;

    while (!there(t->side.ctx)) {
        if (t->wrong.code != CW_OK) {
            *err = t->wrong;
            return err->code;
        }
        if (t->output.fd < 0)
            return cw_err_set(err, CW_ECLOSED, "its connection was closed");
        if (loop_look(t->loop) >= until_ns)
            return cw_err_set(err, CW_ETIME, "it does not answer within %d s",
                              (int)(time_ns / 1000000000));
        loop_turn(t->loop, until_ns);
    }
    return CW_OK;
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == pid;
}

/* Until then, or not at all: then it is killed, and in any case what it has started: ssh leaves the
 * one behind by which it passes a gateway. */
static void await_process(struct talk *t, uint64_t until_ns)
{
    pid_t pid = t->child.pid;
    int status = 0;

    if (pid <= 0)
        return;
    while (!has_ended(pid) && loop_look(t->loop) < until_ns)
        poll(NULL, 0, TALK_LOOK_MS);
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    agent_child_ended(&t->child, status);
}

const char *talk_why(struct talk *t, char *text, size_t size)
{
    close_input(t);
    await_process(t, loop_look(t->loop) + TALK_END_NS);
    return agent_child_why(&t->child, text, size);
}

void talk_free(struct talk *t)
{
    close_input(t);
    if (t->loop) {
        uint64_t until_ns = loop_look(t->loop) + TALK_END_NS;

        while (t->output.fd >= 0 && loop_look(t->loop) < until_ns)
            loop_turn(t->loop, until_ns);
        loop_close(t->loop, &t->output);
        await_process(t, until_ns);
        agent_child_kill(&t->child);
    }
    loop_free(t->loop);
    *t = TALK_NONE;
}
