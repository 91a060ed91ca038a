#include "dispatcher/relay_child.h"
#include "common/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MS 60000 /* --log-reserve takes its time */
#define ARGUMENTS 10

/* In the child. Both descriptors are inherited. */
static void become_relay(const struct relay_child_config *config, int key_fd, int ready_fd,
                         pid_t parent)
{
    char listen[CW_TEXT_MAX], key[16], ready[16], spin[32], names[RELAY_OPTIONS][32];
    const char *argv[ARGUMENTS + 2 * RELAY_OPTIONS + 1] = {
        "causeway", "relay",      "--listen", listen,   "--key-fd",
        key,        "--ready-fd", ready,      "--spin", spin};
    char self[PATH_MAX];
    int argc = ARGUMENTS;
    sigset_t none;
    ssize_t n;

    snprintf(listen, sizeof(listen), "unix:%s", config->socket_path);
    snprintf(key, sizeof(key), "%d", key_fd);
    snprintf(ready, sizeof(ready), "%d", ready_fd);
    snprintf(spin, sizeof(spin), "%fms", (double)config->spin_ns / 1e6);
    for (int i = 0; i < RELAY_OPTIONS; i++)
        if (config->options[i]) {
            snprintf(names[i], sizeof(names[i]), "--%s", relay_option_names[i]);
            argv[argc++] = names[i];
            argv[argc++] = config->options[i];
        }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    execv(self, (char *const *)argv);
    dprintf(STDERR_FILENO, "causeway: starting the relay: %s\n", strerror(errno));
    _exit(1);
}

static int await_ready(int fd, pid_t pid, struct cw_err *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char line[CW_TEXT_MAX];
    int n;

    do
        n = poll(&p, 1, READY_MS);
    while (n < 0 && errno == EINTR);
    if (n == 1 && read(fd, line, sizeof(line)) > 0)
        return CW_OK;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return cw_err_set(err, CW_ESYS, "the job's own relay did not start%s",
                      n == 0 ? " in time" : "");
}

pid_t relay_child_start(const struct relay_child_config *config, struct cw_err *err)
{
    int key[2] = {-1, -1};
    int ready[2] = {-1, -1};
    pid_t parent = getpid();
    pid_t pid = -1;

    err->code = CW_OK;
    if (pipe(key) < 0 || pipe(ready) < 0)
        cw_err_set(err, CW_ESYS, "starting the relay: pipe: %s", strerror(errno));
    else if (cw_key_write_fd(key[1], config->key, err) == CW_OK && (pid = fork()) < 0)
        cw_err_set(err, CW_ESYS, "starting the relay: fork: %s", strerror(errno));
    if (pid == 0) {
        close(key[1]);
        close(ready[0]);
        become_relay(config, key[0], ready[1], parent);
    }
    close(key[0]);
    close(key[1]);
    close(ready[1]);
    if (pid > 0)
        await_ready(ready[0], pid, err);
    close(ready[0]);
    return err->code ? err->code : pid;
}
