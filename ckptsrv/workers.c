#include "ckptsrv/workers.h"
#include "common/thread.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct queue {
    struct work *first;
    struct work *last;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct queue todo;
    struct queue done;
    bool ending;
    int event;
    pthread_t threads[WORKERS_MAX];
    int count;
};

static void enqueue(struct queue *queue, struct work *work)
{
    work->next = NULL;
    if (queue->last)
        queue->last->next = work;
    else
        queue->first = work;
    queue->last = work;
}

static struct work *dequeue(struct queue *queue)
{
    struct work *work = queue->first;

    if (!work)
        return NULL;
    queue->first = work->next;
    if (!queue->first)
        queue->last = NULL;
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
        enqueue(&workers->done, work);
        eventfd_write(workers->event, 1);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

struct workers *workers_new(struct cw_err *err)
{
    struct workers *workers = calloc(1, sizeof(*workers));

    if (!workers) {
        cw_err_set(err, CW_ENOMEM, "no memory for threads");
        return NULL;
    }
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->more, NULL);
    workers->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (workers->event < 0)
        cw_err_set(err, CW_ESYS, "eventfd: %s", strerror(errno));
    for (int i = 0; i < WORKERS_MAX && !err->code; i++) {
        int error = cw_thread_start(&workers->threads[i], 0, body, workers);

        if (error)
            cw_err_set(err, CW_ESYS, "starting a thread: %s", strerror(error));
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
    if (workers->event >= 0)
        close(workers->event);
    pthread_cond_destroy(&workers->more);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

void workers_add(struct workers *workers, struct work *work)
{
    pthread_mutex_lock(&workers->lock);
    enqueue(&workers->todo, work);
    pthread_cond_signal(&workers->more);
    pthread_mutex_unlock(&workers->lock);
}

int workers_fd(const struct workers *workers)
{
    return workers->event;
}

void workers_collect(struct workers *workers)
{
    struct work *work;
    eventfd_t count;

    eventfd_read(workers->event, &count);
    pthread_mutex_lock(&workers->lock);
    work = workers->done.first;
    workers->done = (struct queue){0};
    pthread_mutex_unlock(&workers->lock);
    while (work) {
        struct work *next = work->next;

        work->done(work);
        work = next;
    }
}
