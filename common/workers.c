#include "common/workers.h"
#include "common/thread.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

STAILQ_HEAD(queue, work);

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct queue todo;
    struct queue done;
    bool ending;
    int wakes;
    pthread_t threads[WORKERS_MAX];
    int count;
};

static struct work *dequeue(struct queue *queue)
{
    struct work *work = STAILQ_FIRST(queue);

    if (work)
        STAILQ_REMOVE_HEAD(queue, next);
    return work;
}

static void *body(void *arg)
{
    struct workers *workers = arg;
    struct work *work;

    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (!(work = dequeue(&workers->todo)) && !workers->ending)
            pthread_cond_wait(&workers->more, &workers->lock);
        if (!work)
            break;
        pthread_mutex_unlock(&workers->lock);
        work->run(work);
        pthread_mutex_lock(&workers->lock);
        STAILQ_INSERT_TAIL(&workers->done, work, next);
        eventfd_write(workers->wakes, 1);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

struct workers *workers_new(int count, int wakes, struct cw_err *err)
{
    struct workers *workers = calloc(1, sizeof(*workers));

    if (!workers) {
        cw_err_set(err, CW_ENOMEM, "no memory for threads");
        return NULL;
    }
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->more, NULL);
    STAILQ_INIT(&workers->todo);
    STAILQ_INIT(&workers->done);
    workers->wakes = wakes;
    err->code = CW_OK;
    assert(count <= WORKERS_MAX);
    for (int i = 0; i < count && !err->code; i++) {
        int error = cw_thread_start(&workers->threads[i], 0, body, workers);

        if (error)
            cw_err_set(err, CW_ESYS, "starting a thread: %s; raise 'ulimit -u'", strerror(error));
        else
            workers->count++;
    }
    if (!err->code)
        return workers;
    workers_free(workers);
    return NULL;
}

void workers_free(struct workers *workers)
{
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->more);
    pthread_mutex_unlock(&workers->lock);
    for (int i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->more);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

void workers_add(struct workers *workers, struct work *work)
{
    pthread_mutex_lock(&workers->lock);
    STAILQ_INSERT_TAIL(&workers->todo, work, next);
    pthread_cond_signal(&workers->more);
    pthread_mutex_unlock(&workers->lock);
}

struct work *workers_next(struct workers *workers)
{
    struct work *work;

    pthread_mutex_lock(&workers->lock);
    work = dequeue(&workers->done);
    pthread_mutex_unlock(&workers->lock);
    return work;
}

int workers_fd(const struct workers *workers)
{
    return workers->wakes;
}

void workers_collect(struct workers *workers)
{
    struct work *work;
    eventfd_t count;

    eventfd_read(workers->wakes, &count);
    while ((work = workers_next(workers)))
        work->done(work);
}
