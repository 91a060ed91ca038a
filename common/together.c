#include "common/together.h"
#include "common/thread.h"

#include <stdatomic.h>

struct together {
    uint32_t count;
    void (*work)(void *ctx, uint32_t number);
    void *ctx;
    atomic_uint next;
};

static void *take(void *arg)
{
    struct together *c = arg;
    uint32_t number;

    while ((number = atomic_fetch_add(&c->next, 1)) < c->count)
        c->work(c->ctx, number);
    return NULL;
}

void cw_together(uint32_t count, uint32_t threads, void (*work)(void *ctx, uint32_t number),
                 void *ctx)
{
    struct together c = {.count = count, .work = work, .ctx = ctx};
    pthread_t thread[CW_TOGETHER_MAX];
    uint32_t started = 0;

    while (started + 1 < CW_TOGETHER_MAX && started + 1 < threads && started + 1 < count &&
           cw_thread_start(&thread[started], 0, take, &c) == 0)
        started++;
    take(&c);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}
