#include "dispatcher/launch/children.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 2000 /* a millisecond each */

void children_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void children_reap(void (*ended)(void *ctx, pid_t pid, int status), void *ctx)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (ended)
            ended(ctx, pid, status);
}

/* Returns how many there were. */
static int kill_all(bool (*spared)(void *ctx, pid_t pid), void *ctx)
{
    char path[64];
    FILE *f;
    int count = 0;
    int pid;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    f = fopen(path, "re");
    while (f && fscanf(f, "%d", &pid) == 1) {
        if (spared(ctx, pid) || waitpid(pid, NULL, WNOHANG) != 0)
            continue;
        kill(pid, SIGKILL);
        count++;
    }
    if (f)
        fclose(f);
    return count;
}

void children_kill(bool (*spared)(void *ctx, pid_t pid), void *ctx)
{
    struct timespec pause = {.tv_nsec = 1000000};

    /* a process that is killed leaves us its own children */
    for (int i = 0; i < ROUNDS && kill_all(spared, ctx) > 0; i++)
        nanosleep(&pause, NULL);
}
