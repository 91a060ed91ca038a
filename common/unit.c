#include "common/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_of(const struct unit *u)
{
    return loop_now_ns(u->loop);
}

static void fail(struct unit *u, int status, const struct cw_err *err)
{
    u->over = true;
    u->ops->failed(u->ctx, status, err);
}

void unit_listens(struct unit *u)
{
    loop_timer_set(&u->timer, LOOP_NEVER);
    u->listened = true;
    u->ops->listens(u->ctx);
}

/* It says where it listens, a line for each place, or, after a '!', why it does not: then it ends
 * by itself, or is killed when its time is up. Its end is heard of by its parent. */
static void on_ready(void *ctx)
{
    struct unit *u = ctx;
    char line[CW_ERR_TEXT_MAX + 2];
    ssize_t n = read(u->ready.fd, line, sizeof(line) - 1);

    if (n <= 0)
        loop_close(u->loop, &u->ready);
    if (n <= 0 || u->heard)
        return;
    u->heard = true;
    if (line[0] == '!') {
        line[n] = '\0';
        line[strcspn(line, "\n")] = '\0';
        snprintf(u->why, sizeof(u->why), "%.*s", (int)sizeof(u->why) - 1, line + 1);
    }
    if (line[0] != '!')
        unit_listens(u);
}

/* With a pipe on which it says that it listens. */
static int run_and_hear(struct unit *u, struct command *command, struct cw_err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return cw_err_set(err, CW_ESYS, "starting the %s: pipe: %s", u->name, strerror(errno));
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    command_fd(command, "--ready-fd", fds[1]);
    u->pid = command_start(command, err);
    close(fds[1]);
    if (u->pid > 0)
        loop_watch(u->loop, &u->ready, fds[0], EPOLLIN, on_ready, u);
    else
        close(fds[0]);
    return err->code;
}

static int start(struct unit *u, struct cw_err *err)
{
    struct command command;
    uint64_t max_ns = u->restarts.count ? RELAY_RETURN_NS_MAX : UNIT_READY_NS;

    if (u->ready_ns)
        max_ns = u->ready_ns;
    err->code = CW_OK;
    u->why[0] = '\0';
    u->heard = false;
    command_init(&command, u->name);
    if (u->ops->command(u->ctx, &command, err) == CW_OK && !u->silent)
        run_and_hear(u, &command, err);
    else if (err->code == CW_OK)
        u->pid = command_start(&command, err);
    command_close(&command);
    if (err->code) {
        u->pid = 0;
        return err->code;
    }
    loop_timer_set(&u->timer, now_of(u) + max_ns);
    u->ops->started(u->ctx, u->pid);
    return CW_OK;
}

static bool again(struct unit *u)
{
    uint64_t at_ns;

    if (u->always)
        u->restarts.in_row = 0;
    if (!(u->returns || u->always) || !relay_restarts_next(&u->restarts, now_of(u), &at_ns))
        return false;
    loop_timer_set(&u->timer, at_ns);
    return true;
}

/* The time of the next start has come, or it took too long to listen. */
static void on_timer(void *ctx)
{
    struct unit *u = ctx;
    struct cw_err err;

    if (u->pid > 0) {
        snprintf(u->why, sizeof(u->why), "it did not listen in time");
        unit_kill(u);
    } else if (start(u, &err) < 0 && !again(u)) {
        cw_err_wrap(&err, "after it was started again %u times", u->restarts.count);
        fail(u, UNIT_NO_STATUS, &err);
    } else if (err.code && u->ops->not_started) {
        u->ops->not_started(u->ctx, &err);
    }
}

void unit_start(struct unit *u)
{
    struct cw_err err;

    u->begun = true;
    u->status = UNIT_NO_STATUS;
    u->ready.fd = -1;
    loop_timer_add(u->loop, &u->timer, on_timer, u);
    if (start(u, &err) < 0)
        fail(u, UNIT_NO_STATUS, &err);
}

void unit_kill(const struct unit *u)
{
    if (u->pid > 0)
        kill(u->pid, SIGKILL);
}

void unit_ended(struct unit *u, int status)
{
    /* who was asked to end has ended what it served, and left nothing to go on with */
    bool asked = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    struct cw_err err;

    if (u->ready.fd >= 0) /* its end may be heard of before what it has said */
        on_ready(u);
    loop_close(u->loop, &u->ready);
    u->pid = 0;
    u->status = status;
    loop_timer_set(&u->timer, LOOP_NEVER);
    if ((u->always || !WIFEXITED(status) || (u->listened && !asked)) && again(u)) {
        u->ops->ended(u->ctx, status, u->why);
        return;
    }
    cw_err_set(&err, CW_ESYS, "%s%s%s", u->listened ? u->no_more : u->not_once,
               u->why[0] ? ": " : "", u->why);
    fail(u, u->listened ? status : UNIT_NO_STATUS, &err);
}

void unit_end(struct unit *u, int signal)
{
    if (!u->begun)
        return;
    loop_close(u->loop, &u->ready);
    loop_timer_remove(&u->timer);
    u->over = true;
    if (u->pid > 0)
        kill(u->pid, signal);
}

void unit_await_end(struct unit *u)
{
    struct timespec t = {.tv_nsec = 1000000};
    int status;

    if (u->pid <= 0)
        return;
    for (int ms = 0; ms < UNIT_END_MS; ms++) {
        if (waitpid(u->pid, &status, WNOHANG) != 0)
            return;
        nanosleep(&t, NULL);
    }
    kill(u->pid, SIGKILL);
    waitpid(u->pid, &status, 0);
}
