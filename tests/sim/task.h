/* Whatever runs on a stack of its own: a process, the dispatcher, a link that is being opened. It
 * runs until it calls the system. */
#ifndef SIM_TASK_H
#define SIM_TASK_H

#include <poll.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#define TASK_FDS_MAX 2u

struct sim_process;

struct task {
    struct sim_process *process;     /* that this is; NULL: it is something else */
    struct coroutine *coroutine;     /* NULL: it has ended */
    bool ended;                      /* ... or will, when it is dropped */
    bool waiting;                    /* in poll(), for ... */
    struct pollfd fds[TASK_FDS_MAX]; /* ... these descriptors ... */
    uint32_t fds_count;
    uint32_t waiting_since; /* this step */
    bool (*ready)(void);    /* ... or, if not NULL, for this */
    bool sleeping;          /* ... or in futex(2) ... */
    const void *futex;      /* ... there; NULL: it was woken */
    uint64_t wake_ns;       /* ... or for the time */
    uint32_t patience;      /* it gets its turn one time in so many */
};

/* Who runs; NULL while the scheduler does. */
extern struct task *task_now;

void task_start(struct task *task, void (*run)(void *arg), void *arg);
/* The same on this stack, see coroutine.h; one that goes on. */
void task_start_on(struct task *task, uint8_t *stack, void (*run)(void *arg), void *arg);
void task_go_on(struct task *task, uint8_t *stack, const jmp_buf at);
void task_resume(struct task *task);
/* Whether one does now. */
bool task_runs(void);
/* From outside. */
void task_drop(struct task *task);
bool task_is_awake(const struct task *task);
/* What is waited for by time alone. */
uint64_t task_deadline_ns(const struct task *task);

/* --- from inside --- */
void task_yield(void);
/* One that goes on has arrived. */
void task_gone_on(void);
/* Others get their turn, perhaps. */
void task_give_way(void);
/* Waits for what these descriptors tell, at most TASK_FDS_MAX, or for the time; may return early.
 */
void task_wait(const struct pollfd *fds, uint32_t count, uint64_t wake_ns);
void task_wait_for(bool (*ready)(void), uint64_t wake_ns);
/* Until `futex` of the task is NULL. */
void task_sleep_at(const void *futex, uint64_t wake_ns);
void task_end(void) __attribute__((noreturn));

#endif
