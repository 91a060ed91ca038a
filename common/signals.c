#include "common/signals.h"

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
