#include "dispatcher/relays/relay_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ARGUMENTS 10
#define LISTEN_ARGUMENTS 2
#define KEPT_ARGUMENTS 4

/* All that execve(2) takes, made before fork: after it there are async-signal-safe calls alone. */
struct command {
    char self[PATH_MAX];
    char listen[CW_TEXT_MAX], key[16], ready[16], spin[32], state[16], disk[16],
        names[RELAY_OPTIONS][32];
    const char *argv[ARGUMENTS + LISTEN_ARGUMENTS + KEPT_ARGUMENTS + 2 * RELAY_OPTIONS + 1];
};

static int add_descriptor(struct command *c, int argc, const char *option, char text[16], int fd)
{
    if (fd < 0)
        return argc;
    snprintf(text, 16, "%d", fd);
    c->argv[argc++] = option;
    c->argv[argc++] = text;
    return argc;
}

static void make_command(struct command *c, const struct relay_child_config *config,
                         const struct relay_pipes *pipes)
{
    const char *const first[ARGUMENTS] = {"causeway", "relay", "--listen",   c->listen,
                                          "--key-fd", c->key,  "--ready-fd", c->ready,
                                          "--spin",   c->spin};
    ssize_t n = readlink("/proc/self/exe", c->self, sizeof(c->self) - 1);
    int argc = ARGUMENTS;

    c->self[n > 0 ? n : 0] = '\0';
    snprintf(c->listen, sizeof(c->listen), "unix:%s", config->socket_path);
    snprintf(c->key, sizeof(c->key), "%d", pipes->key_fd);
    snprintf(c->ready, sizeof(c->ready), "%d", pipes->ready_fd);
    snprintf(c->spin, sizeof(c->spin), "%fms", (double)config->spin_ns / 1e6);
    memcpy(c->argv, first, sizeof(first));
    if (config->listen) {
        c->argv[argc++] = "--listen";
        c->argv[argc++] = config->listen;
    }
    if (config->kept) {
        argc = add_descriptor(c, argc, "--state-fd", c->state, config->kept->state_fd);
        argc = add_descriptor(c, argc, "--disk-fd", c->disk, config->kept->disk_fd);
    }
    for (int i = 0; i < RELAY_OPTIONS; i++)
        if (config->options[i]) {
            snprintf(c->names[i], sizeof(c->names[i]), "--%s", relay_option_names[i]);
            c->argv[argc++] = c->names[i];
            c->argv[argc++] = config->options[i];
        }
    c->argv[argc] = NULL;
}

/* In the child. The descriptors are for the relay. */
static _Noreturn void become_relay(const struct command *c, const struct relay_child_config *config,
                                   const struct relay_pipes *pipes, pid_t parent)
{
    const struct relay_kept *kept = config->kept;
    static const char failed[] = "causeway: starting the relay: it cannot be executed\n";
    sigset_t none;

    fcntl(pipes->key_fd, F_SETFD, 0);
    fcntl(pipes->ready_fd, F_SETFD, 0);
    if (kept) {
        fcntl(kept->state_fd, F_SETFD, 0);
        fcntl(kept->disk_fd, F_SETFD, 0);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, config->outlived ? SIGKILL : SIGTERM);
    if (getppid() == parent)
        execv(c->self, (char *const *)c->argv);
    if (write(STDERR_FILENO, failed, sizeof(failed) - 1) < 0)
        _exit(1);
    _exit(1);
}

pid_t relay_child_start(const struct relay_child_config *config, int *listens_fd,
                        struct cw_err *err)
{
    struct command command;
    struct relay_pipes pipes;
    pid_t parent = getpid();
    pid_t pid;

    if (config->kept && relay_kept_make(config->kept, config->log_dir, err) < 0)
        return err->code;
    if (relay_pipes_open(&pipes, config->key, err) < 0)
        return err->code;
    make_command(&command, config, &pipes);
    pid = _Fork();
    if (pid == 0)
        become_relay(&command, config, &pipes, parent);
    if (pid < 0) {
        cw_err_set(err, CW_ESYS, "starting the relay: fork: %s", strerror(errno));
        relay_pipes_close(&pipes);
        return err->code;
    }
    relay_pipes_pass(&pipes);
    *listens_fd = pipes.listens_fd;
    return pid;
}
