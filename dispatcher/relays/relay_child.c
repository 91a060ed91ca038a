#include "dispatcher/relays/relay_child.h"
#include "common/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_MS 5000 /* for the relay to end */
#define ARGUMENTS 10

/* All that execve(2) takes, made before fork: after it there are async-signal-safe calls alone. */
struct command {
    char self[PATH_MAX];
    char listen[CW_TEXT_MAX], key[16], ready[16], spin[32], names[RELAY_OPTIONS][32];
    const char *argv[ARGUMENTS + 2 * RELAY_OPTIONS + 1];
};

static void make_command(struct command *c, const struct relay_child_config *config, int key_fd,
                         int ready_fd)
{
    const char *const first[ARGUMENTS] = {"causeway", "relay", "--listen",   c->listen,
                                          "--key-fd", c->key,  "--ready-fd", c->ready,
                                          "--spin",   c->spin};
    ssize_t n = readlink("/proc/self/exe", c->self, sizeof(c->self) - 1);
    int argc = ARGUMENTS;

    c->self[n > 0 ? n : 0] = '\0';
    snprintf(c->listen, sizeof(c->listen), "unix:%s", config->socket_path);
    snprintf(c->key, sizeof(c->key), "%d", key_fd);
    snprintf(c->ready, sizeof(c->ready), "%d", ready_fd);
    snprintf(c->spin, sizeof(c->spin), "%fms", (double)config->spin_ns / 1e6);
    memcpy(c->argv, first, sizeof(first));
    for (int i = 0; i < RELAY_OPTIONS; i++)
        if (config->options[i]) {
            snprintf(c->names[i], sizeof(c->names[i]), "--%s", relay_option_names[i]);
            c->argv[argc++] = c->names[i];
            c->argv[argc++] = config->options[i];
        }
    c->argv[argc] = NULL;
}

/* In the child. The two descriptors are for the relay. */
static _Noreturn void become_relay(const struct command *c, int key_fd, int ready_fd, pid_t parent)
{
    static const char failed[] = "causeway: starting the relay: it cannot be executed\n";
    sigset_t none;

    fcntl(key_fd, F_SETFD, 0);
    fcntl(ready_fd, F_SETFD, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent)
        execv(c->self, (char *const *)c->argv);
    if (write(STDERR_FILENO, failed, sizeof(failed) - 1) < 0)
        _exit(1);
    _exit(1);
}

pid_t relay_child_start(const struct relay_child_config *config, int *ready_fd, struct cw_err *err)
{
    struct command command;
    int key[2] = {-1, -1};
    int ready[2] = {-1, -1};
    pid_t parent = getpid();
    pid_t pid = -1;

    err->code = CW_OK;
    if (pipe2(key, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
        cw_err_set(err, CW_ESYS, "starting the relay: pipe: %s", strerror(errno));
    make_command(&command, config, key[0], ready[1]);
    if (err->code == CW_OK && cw_key_write_fd(key[1], config->key, err) == CW_OK &&
        (pid = _Fork()) < 0)
        cw_err_set(err, CW_ESYS, "starting the relay: fork: %s", strerror(errno));
    if (pid == 0)
        become_relay(&command, key[0], ready[1], parent);
    for (int i = 0; i < 2; i++)
        if (key[i] >= 0)
            close(key[i]);
    if (ready[1] >= 0)
        close(ready[1]);
    *ready_fd = ready[0];
    if (err->code && ready[0] >= 0)
        close(ready[0]);
    return err->code ? err->code : pid;
}

bool relay_child_listens(int ready_fd)
{
    char line[CW_TEXT_MAX];

    return read(ready_fd, line, sizeof(line)) > 0;
}

void relay_child_await_end(pid_t pid)
{
    struct timespec t = {.tv_nsec = 1000000};
    int status;

    for (int ms = 0; ms < END_MS; ms++) {
        if (waitpid(pid, &status, WNOHANG) != 0)
            return;
        nanosleep(&t, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}
