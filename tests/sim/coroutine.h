/* Coroutines: each runs on a stack of its own until it yields, and can be dropped at any time it
 * does not run. */
#ifndef SIM_COROUTINE_H
#define SIM_COROUTINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define COROUTINE_STACK_BYTES (512u << 10)
#else
#define COROUTINE_STACK_BYTES (128u << 10)
#endif

struct coroutine;

/* `run` must never return: it yields for the last time instead. */
struct coroutine *coroutine_new(void (*run)(void *arg), void *arg);
/* The same on this stack of COROUTINE_STACK_BYTES, which stays the caller's. */
struct coroutine *coroutine_new_on(uint8_t *stack, void (*run)(void *arg), void *arg);
/* One that goes on on such a stack where setjmp() was called. */
struct coroutine *coroutine_go_on(uint8_t *stack, const jmp_buf at);

/* Runs it until it yields. */
void coroutine_resume(struct coroutine *c);

/* From inside: back to who resumed it. */
void coroutine_yield(struct coroutine *c);

/* From inside of one that goes on: it has arrived. */
void coroutine_gone_on(struct coroutine *c);

/* Its stack is used again; what lies on it is forgotten. */
void coroutine_drop(struct coroutine *c);

/* Frees the stacks that are kept. */
void coroutine_fini(void);

#endif
