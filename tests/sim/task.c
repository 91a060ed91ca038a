#include "tests/sim/task.h"
#include "tests/sim/coroutine.h"
#include "tests/sim/descriptors.h"
#include "tests/sim/sim.h"

#include <stdlib.h>

#define PATIENCE_MAX 30
#define WAKE_EARLY_ONE_IN 64 /* waits that return though nothing came and it is not time yet */

struct task *task_now;

static void begin(struct task *task, struct coroutine *coroutine)
{
    *task = (struct task){.coroutine = coroutine, .patience = 1};
    if (sim_one_in(4))
        task->patience = 1 + (uint32_t)sim_below(PATIENCE_MAX);
}

void task_start(struct task *task, void (*run)(void *arg), void *arg)
{
    begin(task, coroutine_new(run, arg));
}

void task_start_on(struct task *task, uint8_t *stack, void (*run)(void *arg), void *arg)
{
    begin(task, coroutine_new_on(stack, run, arg));
}

void task_go_on(struct task *task, uint8_t *stack, const jmp_buf at)
{
    begin(task, coroutine_go_on(stack, at));
}

void task_resume(struct task *task)
{
    task_now = task;
    coroutine_resume(task->coroutine);
    task_now = NULL;
}

bool task_runs(void)
{
    return task_now != NULL;
}

void task_drop(struct task *task)
{
    if (task->coroutine)
        coroutine_drop(task->coroutine);
    task->coroutine = NULL;
}

static bool has_news(const struct task *task)
{
    bool any = false;

    if (task->sleeping)
        return !task->futex;
    if (task->ready)
        return task->ready();
    for (uint32_t i = 0; i < task->fds_count; i++)
        any |= descriptor_events(task->fds[i].fd, task->fds[i].events) != 0;
    return any;
}

bool task_is_awake(const struct task *task)
{
    return !task->waiting || sim.now_ns >= task->wake_ns || has_news(task);
}

uint64_t task_deadline_ns(const struct task *task)
{
    return task->waiting ? task->wake_ns : sim.now_ns;
}

void task_yield(void)
{
    coroutine_yield(task_now->coroutine);
}

void task_gone_on(void)
{
    coroutine_gone_on(task_now->coroutine);
}

void task_give_way(void)
{
    if (task_now && sim_one_in(sim.plan.yield_one_in))
        task_yield();
}

static void wait_now(uint64_t wake_ns)
{
    struct task *task = task_now;

    task->waiting = !sim_one_in(WAKE_EARLY_ONE_IN);
    task->wake_ns = wake_ns;
    task->waiting_since = sim.steps;
    task_yield();
    task->waiting = task->sleeping = false;
    task->ready = NULL;
    task->futex = NULL;
    task->fds_count = 0;
}

void task_wait(const struct pollfd *fds, uint32_t count, uint64_t wake_ns)
{
    if (count > TASK_FDS_MAX)
        abort();
    for (uint32_t i = 0; i < count; i++)
        task_now->fds[i] = fds[i];
    task_now->fds_count = count;
    wait_now(wake_ns);
}

void task_wait_for(bool (*ready)(void), uint64_t wake_ns)
{
    task_now->ready = ready;
    wait_now(wake_ns);
}

void task_sleep_at(const void *futex, uint64_t wake_ns)
{
    task_now->sleeping = true;
    task_now->futex = futex;
    wait_now(wake_ns);
}

/* Whoever resumed it drops it: it cannot go on its own stack. */
void task_end(void)
{
    struct task *task = task_now;
    struct coroutine *coroutine = task->coroutine;

    task->ended = true;
    coroutine_yield(coroutine);
    abort();
}
