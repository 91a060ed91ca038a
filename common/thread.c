#include "common/thread.h"

#include <signal.h>

int cw_thread_start(pthread_t *thread, size_t stack_bytes, void *(*body)(void *), void *arg)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    int failed;

    pthread_attr_init(&attr);
    if (stack_bytes)
        pthread_attr_setstacksize(&attr, stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(thread, &attr, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}
