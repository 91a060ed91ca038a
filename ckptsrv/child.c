#include "ckptsrv/imgdir.h"
#include "ckptsrv/server.h"
#include "common/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX (14 + 2 * CKPTSRV_LISTENERS_MAX)

/* What goes down to the server, and what stays here. */
struct pipes {
    int key[2], ready[2], life[2];
};

/* All that execve(2) takes, made before fork: after it there are async-signal-safe calls alone. */
struct command {
    char self[PATH_MAX];
    char max[32], key[16], ready[16], life[16], job[IMGDIR_JOB_TEXT];
    const char *argv[ARGUMENTS_MAX];
    int argc;
};

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0)
            close(pair[i]);
        pair[i] = -1;
    }
}

static int open_pipes(struct pipes *pipes, const uint8_t *key, struct cw_err *err)
{
    *pipes = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    if (pipe2(pipes->key, O_CLOEXEC) < 0 || pipe2(pipes->ready, O_CLOEXEC) < 0 ||
        pipe2(pipes->life, O_CLOEXEC) < 0)
        return cw_err_set(err, CW_ESYS, "starting the checkpoint server: pipe: %s",
                          strerror(errno));
    return cw_key_write_fd(pipes->key[1], key, err);
}

static void close_pipes(struct pipes *pipes)
{
    close_pair(pipes->key);
    close_pair(pipes->ready);
    close_pair(pipes->life);
}

static void add(struct command *c, const char *option, const char *value)
{
    c->argv[c->argc++] = option;
    if (value)
        c->argv[c->argc++] = value;
}

static void make_command(struct command *c, const struct ckptsrv_config *config,
                         const struct pipes *pipes)
{
    ssize_t n = readlink("/proc/self/exe", c->self, sizeof(c->self) - 1);

    c->self[n > 0 ? n : 0] = '\0';
    c->argc = 0;
    snprintf(c->max, sizeof(c->max), "%llu", (unsigned long long)config->max_bytes);
    snprintf(c->key, sizeof(c->key), "%d", pipes->key[0]);
    snprintf(c->ready, sizeof(c->ready), "%d", pipes->ready[1]);
    snprintf(c->life, sizeof(c->life), "%d", pipes->life[0]);
    add(c, "causeway", "ckptsrv");
    add(c, "--dir", config->dir);
    add(c, "--key-fd", c->key);
    add(c, "--ready-fd", c->ready);
    add(c, "--life-fd", c->life);
    if (config->max_bytes)
        add(c, "--max", c->max);
    if (config->ephemeral && config->job) {
        imgdir_job_text(c->job, config->job);
        add(c, "--ephemeral-job", c->job);
    } else if (config->ephemeral) {
        add(c, "--ephemeral", NULL);
    }
    for (int i = 0; i < config->address_count && i < CKPTSRV_LISTENERS_MAX; i++)
        add(c, "--listen", config->addresses[i]);
    c->argv[c->argc] = NULL;
}

static _Noreturn void become_server(const struct command *c, const struct pipes *pipes)
{
    static const char failed[] =
        "causeway: starting the checkpoint server: it cannot be executed\n";
    sigset_t none;

    fcntl(pipes->key[0], F_SETFD, 0);
    fcntl(pipes->ready[1], F_SETFD, 0);
    fcntl(pipes->life[0], F_SETFD, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    execv(c->self, (char *const *)c->argv);
    if (write(STDERR_FILENO, failed, sizeof(failed) - 1) < 0)
        _exit(1);
    _exit(1);
}

int ckptsrv_child_start(const struct ckptsrv_config *config, struct ckptsrv_child *child,
                        struct cw_err *err)
{
    struct command command;
    struct pipes pipes;

    *child = (struct ckptsrv_child){.pid = -1, .listens_fd = -1, .life_fd = -1};
    if (open_pipes(&pipes, config->key, err) < 0) {
        close_pipes(&pipes);
        return err->code;
    }
    make_command(&command, config, &pipes);
    child->pid = _Fork();
    if (child->pid == 0)
        become_server(&command, &pipes);
    if (child->pid < 0) {
        cw_err_set(err, CW_ESYS, "starting the checkpoint server: fork: %s", strerror(errno));
    } else {
        child->listens_fd = pipes.ready[0];
        child->life_fd = pipes.life[1];
        pipes.ready[0] = pipes.life[1] = -1;
    }
    close_pipes(&pipes);
    return err->code;
}

bool ckptsrv_child_listens(int listens_fd, char *why, size_t size)
{
    char line[CW_ERR_TEXT_MAX + 2];
    ssize_t n = read(listens_fd, line, sizeof(line) - 1);

    why[0] = '\0';
    if (n <= 0 || line[0] != '!')
        return n > 0;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    snprintf(why, size, "%s", line + 1);
    return false;
}
