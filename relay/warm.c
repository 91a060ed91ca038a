#include "relay/warm.h"
#include "common/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define HUGE (2ull << 20) /* bytes touched in one step */
#define PAGE 4096ull
#define SLOT ((sizeof(struct relay_block) + PAGE - 1) / PAGE * PAGE)
#define SLACK(bytes) ((bytes) / 32) /* a block is a little larger than what is counted for it */
#define NICE 10                     /* of the thread: ranks and relay come first */

struct warm {
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    pthread_t thread;
    bool ends;
    uint8_t *mapped;
    size_t mapped_size;
    uint8_t *start; /* of the region, aligned to huge pages */
    uint64_t size;
    uint64_t carved;           /* bytes that have been blocks */
    uint64_t touched;          /* bytes from the start that have memory */
    struct relay_block *spare; /* given back, with their memory */
    struct relay_block *bare;  /* given back, all but their first page given up */
    uint64_t spare_count;
    uint64_t spare_max;
    uint64_t in_use; /* bytes */
};

static uint64_t ahead(const struct warm *w)
{
    uint64_t bytes = w->in_use / WARM_AHEAD_SHARE;

    if (w->in_use < WARM_BEGIN)
        return 0;
    return bytes < WARM_AHEAD_MAX ? bytes : WARM_AHEAD_MAX;
}

static bool should_touch(const struct warm *w)
{
    return w->touched < w->carved + ahead(w) && w->touched + HUGE <= w->size;
}

static void *touch(void *arg)
{
    struct warm *w = arg;

    setpriority(PRIO_PROCESS, 0, NICE); /* of this thread alone, on Linux */
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        uint8_t *at;

        if (!should_touch(w)) {
            pthread_cond_wait(&w->wanted, &w->lock);
            continue;
        }
        if (w->touched < w->carved)
            w->touched = w->carved / HUGE * HUGE;
        at = w->start + w->touched;
        w->touched += HUGE;
        pthread_mutex_unlock(&w->lock);
        /* an error costs time later, nothing else */
        madvise(at, HUGE, MADV_POPULATE_WRITE);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static struct relay_block *take(void *ctx)
{
    struct warm *w = ctx;
    struct relay_block *block;

    pthread_mutex_lock(&w->lock);
    block = w->spare ? w->spare : w->bare;
    if (w->spare) {
        w->spare = block->next;
        w->spare_count--;
    } else if (w->bare) {
        w->bare = block->next;
    } else if (w->size - w->carved >= SLOT) {
        block = (struct relay_block *)(w->start + w->carved);
        w->carved += SLOT;
    }
    if (block)
        w->in_use += SLOT;
    if (should_touch(w))
        pthread_cond_signal(&w->wanted);
    pthread_mutex_unlock(&w->lock);
    return block;
}

static void give(void *ctx, struct relay_block *block)
{
    struct warm *w = ctx;

    pthread_mutex_lock(&w->lock);
    w->in_use -= SLOT;
    if (w->spare_count < w->spare_max) {
        block->next = w->spare;
        w->spare = block;
        w->spare_count++;
    } else {
        madvise((uint8_t *)block + PAGE, SLOT - PAGE, MADV_DONTNEED);
        block->next = w->bare;
        w->bare = block;
    }
    pthread_mutex_unlock(&w->lock);
}

struct relay_supply warm_supply(struct warm *warm)
{
    if (!warm)
        return (struct relay_supply){0};
    return (struct relay_supply){.ctx = warm, .take = take, .give = give};
}

static void touch_reserve(struct warm *w, uint64_t reserve)
{
    w->touched = reserve < w->size ? (reserve + HUGE - 1) / HUGE * HUGE : w->size;
    if (w->touched)
        madvise(w->start, w->touched, MADV_POPULATE_WRITE);
}

struct warm *warm_open(uint64_t bytes, uint64_t reserve)
{
    struct warm *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wanted, NULL);
    w->size = (bytes + SLACK(bytes) + HUGE - 1) / HUGE * HUGE;
    w->mapped_size = w->size + HUGE;
    w->mapped = mmap(NULL, w->mapped_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->mapped != MAP_FAILED) {
        w->start = (uint8_t *)(((uintptr_t)w->mapped + HUGE - 1) / HUGE * HUGE);
        madvise(w->start, w->size, MADV_HUGEPAGE);
        touch_reserve(w, reserve);
        w->spare_max = reserve / SLOT > WARM_SPARE_MIN ? reserve / SLOT : WARM_SPARE_MIN;
        if (cw_thread_start(&w->thread, 0, touch, w) == 0)
            return w;
        munmap(w->mapped, w->mapped_size);
    }
    free(w);
    return NULL;
}

void warm_close(struct warm *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_signal(&w->wanted);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->wanted);
    munmap(w->mapped, w->mapped_size);
    free(w);
}
