#include "common/dial.h"
#include "common/clock.h"
#include "common/hello.h"
#include "common/thread.h"
#include "common/transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES                                                                                \
    (512u << 10)         /* of a thread, most of it never touched; resolving a name wants some */
#define LEFT_MS_MIN 1000 /* less is not worth a try to open a session */

/* A session that is being opened, by a thread of its own. */
struct one {
    struct one *next;
    struct cw_dial *of;
    struct cw_dial_request what;
    uint64_t until_ns;
    int fd;         /* what the thread waits for; -1: not for a connection */
    bool resolving; /* ... but for getaddrinfo, which nothing interrupts */
    bool cancelled;
};

struct cw_dial {
    cw_dial_done *done;
    void *ctx;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct one *all;
    uint32_t count;
    bool closed; /* the last thread frees it */
};

/* --- one session --- */

/* Returns whether it is still wanted. */
static bool set_waiting(struct one *o, int fd, bool resolving)
{
    bool wanted;

    pthread_mutex_lock(&o->of->lock);
    o->fd = fd;
    o->resolving = resolving;
    wanted = !o->cancelled;
    pthread_cond_broadcast(&o->of->changed);
    pthread_mutex_unlock(&o->of->lock);
    return wanted;
}

static int left_ms(const struct one *o)
{
    uint64_t now_ns = cw_clock_ns();

    return now_ns < o->until_ns ? (int)((o->until_ns - now_ns) / 1000000) : 0;
}

static bool is_resuming(const struct one *o)
{
    return o->what.hello.flags & CW_HELLO_RESUME;
}

/* Whether there is time for one more try. */
static bool is_time_left(const struct one *o)
{
    return left_ms(o) >= (is_resuming(o) ? 1 : LEFT_MS_MIN);
}

static int open_session(struct one *o, int fd, struct cw_dial_result *result)
{
    int session_ms = (int)o->what.session_ms;
    int timeout_ms = left_ms(o) < session_ms ? left_ms(o) : session_ms;
    struct cw_hello hello = o->what.hello;

    memset(&result->session, 0, sizeof(result->session));
    if (is_resuming(o))
        return cw_hello_resume(&(struct cw_wire){.fd = fd}, hello.received, &hello, o->what.key,
                               timeout_ms, &result->welcome, &result->err);
    return cw_hello_open(&(struct cw_wire){.fd = fd}, &result->session, &hello, o->what.key,
                         timeout_ms, &result->welcome, &result->err);
}

/* Returns a connection whose session is open, or a negative code. */
static int try_place(struct one *o, const struct cw_address *address, int place,
                     struct cw_dial_result *result)
{
    int fd = cw_connect_begin(address, place, &result->err);
    bool open;

    if (fd < 0)
        return fd;
    open = set_waiting(o, fd, false) &&
           cw_connect_end(fd, address, left_ms(o), &result->err) == CW_OK &&
           open_session(o, fd, result) == CW_OK;
    set_waiting(o, -1, false);
    if (open)
        return fd;
    close(fd);
    return CW_ESYS;
}

static int try_once(struct one *o, struct cw_dial_result *result)
{
    struct cw_address address;
    bool known;
    int fd = CW_ESYS;

    set_waiting(o, -1, true);
    known = cw_address_parse(&address, o->what.address, &result->err) == CW_OK;
    if (!set_waiting(o, -1, false) || !known)
        return CW_ESYS;
    for (int i = 0; i < address.count && fd < 0 && is_time_left(o); i++)
        fd = try_place(o, &address, i, result);
    return fd;
}

/* Returns whether it is still wanted. */
static bool pause_between(struct one *o, uint32_t ms)
{
    uint64_t until = cw_clock_ns() + ms * 1000000ull;
    struct timespec at = {.tv_sec = (time_t)(until / 1000000000ull),
                          .tv_nsec = (long)(until % 1000000000ull)};
    bool wanted;

    pthread_mutex_lock(&o->of->lock);
    while (!o->cancelled && pthread_cond_timedwait(&o->of->changed, &o->of->lock, &at) == 0)
        ;
    wanted = !o->cancelled;
    pthread_mutex_unlock(&o->of->lock);
    return wanted;
}

/* Whether another connection may do better; see cw_hello_resume. */
static bool is_final(const struct one *o, const struct cw_err *err)
{
    return o->what.tries == 0 && err->code != CW_ESYS && err->code != CW_ECLOSED &&
           err->code != CW_ETIME && err->code != CW_EBUSY;
}

static int try_often(struct one *o, struct cw_dial_result *result)
{
    uint32_t pause_ms = o->what.pause_ms;
    int fd = try_once(o, result);

    for (uint32_t i = 1; fd < 0 && i != o->what.tries && !is_final(o, &result->err); i++) {
        if (!is_time_left(o) || !pause_between(o, pause_ms) || !is_time_left(o))
            break;
        pause_ms = 2 * pause_ms < o->what.pause_max_ms ? 2 * pause_ms : o->what.pause_max_ms;
        fd = try_once(o, result);
    }
    return fd;
}

/* The last that a thread does with it. [lock] */
static void forget(struct one *o)
{
    struct one **at = &o->of->all;

    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    o->of->count--;
    pthread_cond_broadcast(&o->of->changed);
    explicit_bzero(o, sizeof(*o));
    free(o);
}

static void destroy(struct cw_dial *d)
{
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->changed);
    free(d);
}

static void *run(void *arg)
{
    struct one *o = arg;
    struct cw_dial *d = o->of;
    struct cw_dial_result result = {.request = &o->what};
    bool last;

    result.fd = try_often(o, &result);
    if (set_waiting(o, -1, false))
        d->done(d->ctx, &result);
    else if (result.fd >= 0)
        close(result.fd);
    pthread_mutex_lock(&d->lock);
    forget(o);
    last = d->closed && d->count == 0;
    pthread_mutex_unlock(&d->lock);
    if (last)
        destroy(d);
    return NULL;
}

/* --- all of them --- */

/* Its thread wakes at once, unless it resolves a name. [lock] */
static void cancel(struct one *o)
{
    o->cancelled = true;
    if (o->fd >= 0)
        shutdown(o->fd, SHUT_RDWR);
    pthread_cond_broadcast(&o->of->changed);
}

/* Returns whether its thread runs. [lock] */
static bool start(struct cw_dial *d, const struct cw_dial_request *what)
{
    struct one *o = calloc(1, sizeof(*o));
    pthread_t thread;

    if (!o)
        return false;
    *o = (struct one){.next = d->all, .of = d, .what = *what, .fd = -1};
    o->until_ns = cw_clock_ns() + what->time_ms * 1000000ull;
    d->all = o;
    d->count++;
    if (cw_thread_start(&thread, STACK_BYTES, run, o) == 0) {
        pthread_detach(thread);
        return true;
    }
    forget(o);
    return false;
}

/* A relay that answers byte by byte may go on for long: until others want the place. */
bool cw_dial_add(struct cw_dial *d, const struct cw_dial_request *what)
{
    bool started;

    pthread_mutex_lock(&d->lock);
    for (struct one *o = d->all; o; o = o->next)
        if (left_ms(o) == 0)
            cancel(o);
    started = d->count < CW_DIALS_MAX && start(d, what);
    pthread_mutex_unlock(&d->lock);
    return started;
}

void cw_dial_cancel(struct cw_dial *d, const uint8_t job[CW_ID_SIZE])
{
    pthread_mutex_lock(&d->lock);
    for (struct one *o = d->all; o; o = o->next)
        if (memcmp(o->what.hello.job, job, CW_ID_SIZE) == 0)
            cancel(o);
    pthread_mutex_unlock(&d->lock);
}

struct cw_dial *cw_dial_open(cw_dial_done *done, void *ctx)
{
    struct cw_dial *d = calloc(1, sizeof(*d));
    pthread_condattr_t attr;

    if (!d)
        return NULL;
    d->done = done;
    d->ctx = ctx;
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&d->changed, &attr);
    pthread_condattr_destroy(&attr);
    return d;
}

/* [lock] */
static bool any_ends_soon(const struct cw_dial *d)
{
    for (const struct one *o = d->all; o; o = o->next)
        if (!o->resolving)
            return true;
    return false;
}

void cw_dial_close(struct cw_dial *d)
{
    bool all_ended;

    pthread_mutex_lock(&d->lock);
    for (struct one *o = d->all; o; o = o->next)
        cancel(o);
    while (any_ends_soon(d))
        pthread_cond_wait(&d->changed, &d->lock);
    d->closed = true;
    all_ended = d->count == 0;
    pthread_mutex_unlock(&d->lock);
    if (all_ended) /* else a thread resolves a name: it frees this, or ends with the process */
        destroy(d);
}
