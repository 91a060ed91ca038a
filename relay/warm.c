#include "relay/warm.h"
#include "common/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define BLOCK_SLACK(bytes)                                                                         \
    ((bytes) / 32) /* a block is a little larger than what is counted for it */
#define NICE 10    /* of the thread: ranks and relay come first */

struct warm {
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    pthread_t thread;
    bool ends;
    uint8_t *mapped;
    size_t mapped_size;
    struct relay_region region;
    uint8_t *next; /* what the thread touches next ... */
    uint8_t *end;  /* ... and until where */
};

static void *touch(void *arg)
{
    struct warm *w = arg;

    setpriority(PRIO_PROCESS, 0, NICE); /* of this thread alone, on Linux */
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        uint8_t *at = w->next;

        if (at >= w->end) {
            pthread_cond_wait(&w->wanted, &w->lock);
            continue;
        }
        w->next += WARM_STEP;
        pthread_mutex_unlock(&w->lock);
        /* an error costs time later, nothing else */
        madvise(at, WARM_STEP, MADV_POPULATE_WRITE);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Requests to touch come in order of their addresses; one that does not follow the last one says
 * that what lies between is in use already. */
static void warm_take(void *ctx, const struct relay_warm *what)
{
    struct warm *w = ctx;
    uint8_t *at = what->at;

    if (what->give_back) {
        madvise(what->at, what->size, MADV_DONTNEED);
        return;
    }
    pthread_mutex_lock(&w->lock);
    if (at != w->end)
        w->next = at;
    w->end = at + what->size;
    pthread_cond_signal(&w->wanted);
    pthread_mutex_unlock(&w->lock);
}

struct relay_region warm_region(const struct warm *warm)
{
    return warm ? warm->region : (struct relay_region){0};
}

struct relay_warmer warm_warmer(struct warm *warm)
{
    return warm ? (struct relay_warmer){.ctx = warm, .take = warm_take} : (struct relay_warmer){0};
}

static uint64_t whole_steps(uint64_t bytes)
{
    return (bytes + WARM_STEP - 1) / WARM_STEP * WARM_STEP;
}

static void touch_reserve(struct relay_region *region, uint64_t reserve)
{
    region->touched = reserve < region->size ? whole_steps(reserve) : region->size;
    if (region->touched)
        madvise(region->start, region->touched, MADV_POPULATE_WRITE);
}

struct warm *warm_open(uint64_t bytes, uint64_t reserve)
{
    struct warm *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wanted, NULL);
    w->region.size = whole_steps(bytes + BLOCK_SLACK(bytes));
    w->mapped_size = w->region.size + WARM_STEP;
    w->mapped = mmap(NULL, w->mapped_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->mapped != MAP_FAILED) {
        w->region.start = (uint8_t *)whole_steps((uintptr_t)w->mapped);
        madvise(w->region.start, w->region.size, MADV_HUGEPAGE);
        touch_reserve(&w->region, reserve);
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
