/* Threads that the code under test starts, as tasks. */
#ifndef SIM_THREADS_H
#define SIM_THREADS_H

#include "tests/sim/task.h"

struct sim_relay;

struct sim_thread {
    struct sim_thread *next;
    struct task task;
    void *(*run)(void *arg);
    void *arg;
    const struct sim_relay *relay; /* whose it is; NULL: the dispatcher's */
    const void *waits;             /* for this condition; NULL: for none */
};

bool thread_can(const struct sim_thread *thread);
/* The thread is gone after it, if it has ended. */
void thread_step(struct sim_thread *thread);
uint64_t threads_deadline_ns(void);
void threads_fini(void);
/* Whose is the one that runs? */
const struct sim_relay *thread_relay(void);

#endif
