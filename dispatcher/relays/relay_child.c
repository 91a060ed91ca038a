#include "dispatcher/relays/relay_child.h"
#include "common/keyfile.h"
#include "relay/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_MS 5000 /* for the relay to end */
#define ARGUMENTS 10
#define KEPT_ARGUMENTS 4

/* All that execve(2) takes, made before fork: after it there are async-signal-safe calls alone. */
struct command {
    char self[PATH_MAX];
    char listen[CW_TEXT_MAX], key[16], ready[16], spin[32], state[16], disk[16],
        names[RELAY_OPTIONS][32];
    const char *argv[ARGUMENTS + KEPT_ARGUMENTS + 2 * RELAY_OPTIONS + 1];
};

/* Where the file cannot be made, the relay says why: it tries as well. */
static int make_kept(struct relay_child_kept *kept, const char *log_dir, struct cw_err *err)
{
    if (kept->state_fd >= 0)
        return CW_OK;
    kept->state_fd = memfd_create("causeway-log", MFD_CLOEXEC);
    if (kept->state_fd < 0)
        return cw_err_set(err, CW_ESYS, "starting the relay: memfd_create: %s", strerror(errno));
    if (log_dir)
        kept->disk_fd = disk_make_file(log_dir);
    return CW_OK;
}

static int add_descriptor(struct command *c, int argc, const char *option, char text[16], int fd)
{
    if (fd < 0)
        return argc;
    snprintf(text, 16, "%d", fd);
    c->argv[argc++] = option;
    c->argv[argc++] = text;
    return argc;
}

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
static _Noreturn void become_relay(const struct command *c, const struct relay_child_kept *kept,
                                   int key_fd, int ready_fd, pid_t parent)
{
    static const char failed[] = "causeway: starting the relay: it cannot be executed\n";
    sigset_t none;

    fcntl(key_fd, F_SETFD, 0);
    fcntl(ready_fd, F_SETFD, 0);
    if (kept) {
        fcntl(kept->state_fd, F_SETFD, 0);
        fcntl(kept->disk_fd, F_SETFD, 0);
    }
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
    else if (config->kept)
        make_kept(config->kept, config->log_dir, err);
    make_command(&command, config, key[0], ready[1]);
    if (err->code == CW_OK && cw_key_write_fd(key[1], config->key, err) == CW_OK &&
        (pid = _Fork()) < 0)
        cw_err_set(err, CW_ESYS, "starting the relay: fork: %s", strerror(errno));
    if (pid == 0)
        become_relay(&command, config->kept, key[0], ready[1], parent);
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
