#include "tests/sim/coroutine.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define FIBER_START(fake, stack, size) __sanitizer_start_switch_fiber(fake, stack, size)
#define FIBER_FINISH(fake, stack, size) __sanitizer_finish_switch_fiber(fake, stack, size)
#define STACK_CLEAN(stack, size) __asan_unpoison_memory_region(stack, size)
#else
#define FIBER_START(fake, stack, size) ((void)(fake), (void)(stack), (void)(size))
#define FIBER_FINISH(fake, stack, size) ((void)(fake), (void)(stack), (void)(size))
#define STACK_CLEAN(stack, size) ((void)(stack), (void)(size))
#endif

/* Contexts begin a coroutine; after that jumps switch, which spare two system calls. */
struct coroutine {
    struct coroutine *next; /* of those that are free */
    void (*run)(void *arg);
    void *arg;
    bool started;
    ucontext_t context;
    jmp_buf at;
    void *fake;
    const void *caller_stack;
    size_t caller_size;
    uint8_t *stack;
    uint8_t *own; /* its stack, where no other is used */
};

static struct coroutine *free_list;
static struct coroutine *starting;
static jmp_buf resumer;

struct coroutine *coroutine_new_on(uint8_t *stack, void (*run)(void *arg), void *arg)
{
    struct coroutine *c = free_list;

    if (c)
        free_list = c->next;
    else
        c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    c->stack = stack;
    c->run = run;
    c->arg = arg;
    c->started = false;
    c->fake = NULL;
    return c;
}

struct coroutine *coroutine_new(void (*run)(void *arg), void *arg)
{
    struct coroutine *c = coroutine_new_on(NULL, run, arg);

    if (!c->own)
        c->own = malloc(COROUTINE_STACK_BYTES);
    if (!c->own)
        abort();
    c->stack = c->own;
    return c;
}

struct coroutine *coroutine_go_on(uint8_t *stack, const jmp_buf at)
{
    struct coroutine *c = coroutine_new_on(stack, NULL, NULL);

    memcpy(c->at, at, sizeof(c->at));
    c->started = true;
    return c;
}

static void begin(void)
{
    struct coroutine *c = starting;

    FIBER_FINISH(NULL, &c->caller_stack, &c->caller_size);
    c->run(c->arg);
    abort();
}

static void jump_in(struct coroutine *c)
{
    if (c->started)
        _longjmp(c->at, 1);
    c->started = true;
    starting = c;
    getcontext(&c->context);
    c->context.uc_stack.ss_sp = c->stack;
    c->context.uc_stack.ss_size = COROUTINE_STACK_BYTES;
    c->context.uc_link = NULL;
    makecontext(&c->context, begin, 0);
    setcontext(&c->context);
    abort();
}

void coroutine_resume(struct coroutine *c)
{
    void *volatile fake = NULL;

    if (_setjmp(resumer) == 0) {
        FIBER_START((void **)&fake, c->stack, COROUTINE_STACK_BYTES);
        jump_in(c);
    }
    FIBER_FINISH(fake, NULL, NULL);
}

void coroutine_yield(struct coroutine *c)
{
    if (_setjmp(c->at) == 0) {
        FIBER_START(&c->fake, c->caller_stack, c->caller_size);
        _longjmp(resumer, 1);
    }
    FIBER_FINISH(c->fake, &c->caller_stack, &c->caller_size);
}

void coroutine_gone_on(struct coroutine *c)
{
    FIBER_FINISH(NULL, &c->caller_stack, &c->caller_size);
}

void coroutine_drop(struct coroutine *c)
{
    STACK_CLEAN(c->stack, COROUTINE_STACK_BYTES);
    c->stack = NULL;
    c->next = free_list;
    free_list = c;
}

void coroutine_fini(void)
{
    while (free_list) {
        struct coroutine *c = free_list;

        free_list = c->next;
        free(c->own);
        free(c);
    }
}
