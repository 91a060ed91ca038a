#include "dispatcher/node/children.h"
#include "common/tree.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 2000 /* a millisecond each */

/* A process is known by its number and when it started, in ticks since the machine did. */
struct elder {
    pid_t pid;
    unsigned long long since;
};

static struct elder elders[CHILDREN_ELDERS_MAX];
static uint32_t elder_count;
static bool elders_are_known = true;

/* 0: there is no such process. */
static unsigned long long since(pid_t pid)
{
    unsigned long long ticks = 0;
    char path[64];
    char text[512];
    const char *at;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    at = strrchr(text, ')'); /* the name may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        sscanf(at, "%llu", &ticks);
    return ticks;
}

static void add_elder(pid_t pid)
{
    struct elder elder = {.pid = pid, .since = since(pid)};

    if (!elder.since)
        return;
    if (elder_count < CHILDREN_ELDERS_MAX)
        elders[elder_count++] = elder;
    else
        elders_are_known = false;
}

static void add_children_of(pid_t pid)
{
    char path[288];
    struct cw_names threads;
    const char *thread;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    threads = cw_names(path, "");
    while ((thread = cw_names_next(&threads))) {
        int child;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, thread);
        f = fopen(path, "re");
        while (f && fscanf(f, "%d", &child) == 1)
            add_elder(child);
        if (f)
            fclose(f);
    }
}

static bool is_elder(pid_t pid)
{
    for (uint32_t i = 0; i < elder_count; i++)
        if (elders[i].pid == pid)
            return elders[i].since == since(pid);
    return false;
}

void children_adopt(void)
{
    elder_count = 0;
    elders_are_known = true;
    add_children_of(getpid());
    for (uint32_t i = 0; i < elder_count; i++)
        add_children_of(elders[i].pid);
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
        if (spared(ctx, pid) || is_elder(pid) || waitpid(pid, NULL, WNOHANG) != 0)
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
    for (int i = 0; elders_are_known && i < ROUNDS && kill_all(spared, ctx) > 0; i++)
        nanosleep(&pause, NULL);
}
