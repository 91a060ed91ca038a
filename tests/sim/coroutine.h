/* Coroutines: each runs on a stack of its own until it yields, and can be dropped at any time it
 * does not run. */
#ifndef SIM_COROUTINE_H
#define SIM_COROUTINE_H

#include <stdbool.h>

struct coroutine;

/* `run` must never return: it yields for the last time instead. */
struct coroutine *coroutine_new(void (*run)(void *arg), void *arg);

/* Runs it until it yields. */
void coroutine_resume(struct coroutine *c);

/* From inside: back to who resumed it. */
void coroutine_yield(struct coroutine *c);

/* Its stack is used again; what lies on it is forgotten. */
void coroutine_drop(struct coroutine *c);

/* Frees the stacks that are kept. */
void coroutine_fini(void);

#endif
