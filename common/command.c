#include "common/command.h"
#include "common/keyfile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void command_init(struct command *c, const char *name)
{
    c->count = c->fd_count = 0;
    c->used = 0;
    c->key_fd = c->out_fd = -1;
    c->death = SIGTERM;
    c->name = name;
    c->program = "/proc/self/exe";
    command_word(c, "causeway");
    command_word(c, name);
}

void command_word(struct command *c, const char *word)
{
    assert(c->count < COMMAND_WORDS_MAX);
    c->words[c->count++] = word;
}

void command_number(struct command *c, const char *option, const char *fmt, ...)
{
    size_t room = sizeof(c->text) - c->used;
    va_list ap;
    int size;

    va_start(ap, fmt);
    size = vsnprintf(c->text + c->used, room, fmt, ap);
    va_end(ap);
    assert(size >= 0 && (size_t)size < room);
    command_word(c, option);
    command_word(c, c->text + c->used);
    c->used += (size_t)size + 1;
}

void command_fd(struct command *c, const char *option, int fd)
{
    if (fd < 0)
        return;
    assert(c->fd_count < COMMAND_FDS_MAX);
    c->fds[c->fd_count++] = fd;
    command_number(c, option, "%d", fd);
}

void command_fds(struct command *c, const char *option, int first, uint32_t count)
{
    if (count == 0)
        return;
    assert(c->fd_count + count <= COMMAND_FDS_MAX);
    for (uint32_t i = 0; i < count; i++)
        c->fds[c->fd_count++] = first + (int)i;
    command_number(c, option, "%d,%u", first, count);
}

int command_key(struct command *c, const uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return cw_err_set(err, CW_ESYS, "starting the %s: pipe: %s", c->name, strerror(errno));
    c->key_fd = fds[0];
    err->code = CW_OK;
    cw_key_write_fd(fds[1], key, err);
    close(fds[1]);
    command_fd(c, "--key-fd", c->key_fd);
    return err->code;
}

static _Noreturn void become(const struct command *c, pid_t parent)
{
    sigset_t none;

    for (uint32_t i = 0; i < c->fd_count; i++)
        fcntl(c->fds[i], F_SETFD, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGTERM, SIG_DFL); /* it is to end, whatever we ignore */
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, c->death);
    if (getppid() == parent && (c->out_fd < 0 || (dup2(c->out_fd, STDOUT_FILENO) >= 0 &&
                                                  dup2(c->out_fd, STDERR_FILENO) >= 0)))
        execvp(c->program, (char *const *)c->words);
    if (write(STDERR_FILENO, c->failed, strlen(c->failed)) < 0)
        _exit(1);
    _exit(1);
}

pid_t command_start(struct command *c, struct cw_err *err)
{
    pid_t parent = getpid();
    pid_t pid;

    c->words[c->count] = NULL;
    snprintf(c->failed, sizeof(c->failed), "causeway: starting %.80s: it cannot be executed\n",
             c->name);
    pid = _Fork();
    if (pid == 0)
        become(c, parent);
    if (pid < 0)
        return cw_err_set(err, CW_ESYS, "starting the %s: fork: %s", c->name, strerror(errno));
    return pid;
}

void command_close(struct command *c)
{
    if (c->key_fd >= 0)
        close(c->key_fd);
    c->key_fd = -1;
}
