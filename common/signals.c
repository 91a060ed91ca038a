#include "common/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

void cw_signals_begin(void)
{
    sigset_t none;

    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

bool cw_signal_ignored(int signal_number)
{
    struct sigaction action;

    return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void cw_signals_add(sigset_t *set, const int *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!cw_signal_ignored(numbers[i]))
            sigaddset(set, numbers[i]);
}

void cw_signals_ignore_writes(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static void read_signals(void *ctx)
{
    struct signals *s = ctx;
    struct signalfd_siginfo info;

    while (read(s->watch.fd, &info, sizeof(info)) == sizeof(info))
        s->got(s->ctx, (int)info.ssi_signo);
}

int signals_open(struct signals *s, struct loop *loop, void (*got)(void *ctx, int number),
                 void *ctx, struct cw_err *err)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
    sigset_t set;
    int fd;

    *s = (struct signals){.loop = loop, .watch.fd = -1, .got = got, .ctx = ctx};
    sigemptyset(&set);
    cw_signals_add(&set, numbers, sizeof(numbers) / sizeof(*numbers));
    sigprocmask(SIG_BLOCK, &set, NULL);
    cw_signals_ignore_writes();
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd >= 0 && loop_watch(loop, &s->watch, fd, EPOLLIN, read_signals, s) == 0)
        return CW_OK;
    cw_err_set(err, CW_ESYS, "signalfd: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return err->code;
}

void signals_close(struct signals *s)
{
    if (s->loop)
        loop_close(s->loop, &s->watch);
}
