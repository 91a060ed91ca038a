#include "tests/sim/threads.h"
#include "common/clock.h"
#include "tests/sim/sim.h"
#include "tests/sim/system_shim.h"

#include <errno.h>

static void thread_main(void *arg)
{
    struct sim_thread *thread = arg;

    thread->run(thread->arg);
    task_end();
}

int sim_thread_start(pthread_t *to, size_t stack_bytes, void *(*run)(void *arg), void *arg)
{
    struct sim_thread *thread = calloc(1, sizeof(*thread));

    (void)stack_bytes;
    if (!thread)
        abort();
    *to = 0;
    thread->run = run;
    thread->arg = arg;
    thread->relay = relay_dialler();
    task_start(&thread->task, thread_main, thread);
    thread->next = sim.threads;
    sim.threads = thread;
    return 0;
}

static void forget(struct sim_thread *thread)
{
    struct sim_thread **at = &sim.threads;

    while (*at != thread)
        at = &(*at)->next;
    *at = thread->next;
    task_drop(&thread->task);
    free(thread);
}

bool thread_can(const struct sim_thread *thread)
{
    return task_is_awake(&thread->task);
}

void thread_step(struct sim_thread *thread)
{
    task_resume(&thread->task);
    if (thread->task.ended)
        forget(thread);
}

uint64_t threads_deadline_ns(void)
{
    uint64_t first = UINT64_MAX;

    for (const struct sim_thread *t = sim.threads; t; t = t->next)
        if (task_deadline_ns(&t->task) < first)
            first = task_deadline_ns(&t->task);
    return first;
}

void threads_fini(void)
{
    while (sim.threads)
        forget(sim.threads);
}

/* --- conditions ----------------------------------------------------------------------------------
 */

static struct sim_thread *thread_now(void)
{
    for (struct sim_thread *t = sim.threads; t; t = t->next)
        if (&t->task == task_now)
            return t;
    return NULL;
}

const struct sim_relay *thread_relay(void)
{
    return thread_now()->relay;
}

int sim_cond_timedwait(pthread_cond_t *condition, const struct timespec *until)
{
    struct sim_thread *thread = thread_now();
    uint64_t until_ns = cw_timespec_ns(until);

    thread->waits = condition;
    task_wait(NULL, 0, until_ns);
    thread->waits = NULL;
    return sim.now_ns >= until_ns ? ETIMEDOUT : 0;
}

/* By who is no thread of these: all of them go on until it changes. */
int sim_cond_wait(pthread_cond_t *condition)
{
    (void)condition;
    for (struct sim_thread *t = sim.threads, *next; t; t = next) {
        next = t->next;
        if (thread_can(t))
            thread_step(t);
    }
    sim.now_ns += 1000000;
    return 0;
}

int sim_cond_broadcast(pthread_cond_t *condition)
{
    for (struct sim_thread *t = sim.threads; t; t = t->next)
        if (t->waits == condition)
            t->task.waiting = false;
    return 0;
}
