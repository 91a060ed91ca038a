#include "dispatcher/wire/node_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void node_child_init(struct node_child *c, struct loop *loop,
                     bool (*said)(void *ctx, const char *line), void *ctx)
{
    *c = (struct node_child){
        .loop = loop, .errors.fd = -1, .kept_fds = {-1, -1, -1}, .said = said, .ctx = ctx};
}

/* --- what it says --- */

static char *present_line(struct node_child *c)
{
    return c->line[c->lines % NODE_CHILD_LINES];
}

static void end_line(struct node_child *c)
{
    char *line = present_line(c);

    line[c->used] = '\0';
    if (c->used == 0)
        return;
    c->used = 0;
    c->lines += c->said(c->ctx, line);
}

static void take_byte(struct node_child *c, char byte)
{
    if (byte == '\n') {
        end_line(c);
        return;
    }
    if (c->used < NODE_CHILD_LINE_MAX && byte != '\r')
        present_line(c)[c->used++] = byte >= ' ' && byte <= '~' ? byte : '?';
}

static void read_errors(void *ctx)
{
    struct node_child *c = ctx;
    char bytes[1024];
    ssize_t n = c->errors.fd >= 0 ? read(c->errors.fd, bytes, sizeof(bytes)) : -1;

    for (ssize_t i = 0; i < n; i++)
        take_byte(c, bytes[i]);
    if (n == 0 || (n < 0 && c->errors.fd >= 0 && errno != EAGAIN && errno != EINTR)) {
        end_line(c);
        loop_close(c->loop, &c->errors);
    }
}

/* --- the process --- */

static void close_both(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* A session, or a group, of its own: what a terminal sends is for the dispatcher. Returns 0 or an
 * error number. */
static int spawn(struct node_child *c, const struct launch_command *command, int in_fd, int out_fd,
                 int err_fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, standard;
    int error;

    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, in_fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
    for (int i = 0; i < NODE_KEPT_FDS; i++)
        if (c->kept_fds[i] >= 0)
            posix_spawn_file_actions_adddup2(&actions, c->kept_fds[i], c->kept_fds[i]);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &standard);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                 (c->here ? POSIX_SPAWN_SETPGROUP : POSIX_SPAWN_SETSID));
    error = posix_spawnp(&c->pid, command->argv[0], &actions, &attributes, command->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error)
        c->pid = 0;
    return error;
}

int node_child_start(struct node_child *c, const struct launch_command *command, int *in_fd,
                     int *out_fd, struct cw_err *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, errors[2] = {-1, -1};
    int error = 0;

    loop_close(c->loop, &c->errors);
    c->lines = 0;
    c->used = 0;
    c->status = 0;
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
        (!c->here && pipe2(errors, O_CLOEXEC) < 0))
        error = errno;
    if (error == 0)
        error = spawn(c, command, in[0], out[1], c->here ? STDERR_FILENO : errors[1]);
    if (error) {
        close_both(in);
        close_both(out);
        close_both(errors);
        return cw_err_set(err, error == ENOENT ? CW_ENOTFOUND : CW_ESYS, "starting %s: %s",
                          command->argv[0], strerror(error));
    }
    close(in[0]);
    close(out[1]);
    *in_fd = in[1];
    *out_fd = out[0];
    if (c->here)
        return CW_OK;
    close(errors[1]);
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    if (loop_watch(c->loop, &c->errors, errors[0], EPOLLIN, read_errors, c) < 0)
        close(errors[0]);
    return CW_OK;
}

void node_child_kill(struct node_child *c)
{
    loop_close(c->loop, &c->errors);
    if (c->pid > 0)
        kill(c->pid, SIGKILL);
    c->pid = 0;
}

void node_child_ended(struct node_child *c, int status)
{
    c->pid = 0;
    c->status = status;
    while (c->errors.fd >= 0) {
        uint32_t lines = c->lines;
        size_t used = c->used;

        read_errors(c);
        if (lines == c->lines && used == c->used)
            break;
    }
}

bool node_child_was_dropped(const struct node_child *c)
{
    static const char *const signs[] = {"kex_exchange_identification", "banner exchange",
                                        "Connection closed by", "Connection reset by"};

    for (uint32_t i = 0; i < c->lines && i < NODE_CHILD_LINES; i++)
        for (size_t j = 0; j < sizeof(signs) / sizeof(*signs); j++)
            if (strstr(c->line[i], signs[j]))
                return true;
    return false;
}

const char *node_child_why(struct node_child *c, char *text, size_t size)
{
    uint32_t first = c->lines > NODE_CHILD_LINES ? c->lines - NODE_CHILD_LINES : 0;
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = first; i < c->lines && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "; " : "",
                                 c->line[i % NODE_CHILD_LINES]);
    if (c->lines == 0 && c->pid == 0 && WIFEXITED(c->status))
        snprintf(text, size, "it ended with code %d", WEXITSTATUS(c->status));
    else if (c->lines == 0 && c->pid == 0)
        snprintf(text, size, "it was killed by signal %d", WTERMSIG(c->status));
    return text;
}
