#include "relay/dial.h"
#include "common/hello.h"
#include "common/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct dial {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    struct relay_dial queue[DIAL_QUEUE_MAX]; /* a ring */
    uint32_t first;
    uint32_t count;
    bool ends;
    int engine_end; /* of a socket pair for messages, each with a connection */
    int thread_end;
};

static bool dial_add(void *ctx, const struct relay_dial *dial)
{
    struct dial *d = ctx;
    bool room;

    pthread_mutex_lock(&d->lock);
    room = d->count < DIAL_QUEUE_MAX;
    if (room)
        d->queue[(d->first + d->count++) % DIAL_QUEUE_MAX] = *dial;
    pthread_cond_signal(&d->wanted);
    pthread_mutex_unlock(&d->lock);
    return room;
}

/* Returns false at the end. */
static bool next_dial(struct dial *d, struct relay_dial *dial)
{
    bool more;

    pthread_mutex_lock(&d->lock);
    while (d->count == 0 && !d->ends)
        pthread_cond_wait(&d->wanted, &d->lock);
    more = !d->ends;
    if (more) {
        *dial = d->queue[d->first++ % DIAL_QUEUE_MAX];
        d->count--;
    }
    pthread_mutex_unlock(&d->lock);
    return more;
}

/* Returns a connection whose session is open, or a negative code. */
static int try_once(const struct relay_dial *dial, struct cw_session *session, struct cw_err *err)
{
    struct cw_hello hello = {.role = CW_ROLE_RELAY, .rank = dial->self, .incarnation = 1};
    struct cw_address address;
    struct cw_welcome welcome;
    int fd;

    memset(session, 0, sizeof(*session));
    memcpy(hello.job, dial->job, CW_ID_SIZE);
    if (cw_address_parse(&address, dial->address, err) < 0)
        return err->code;
    fd = cw_connect(&address, err);
    if (fd < 0)
        return err->code;
    if (cw_hello_open(&(struct cw_wire){.fd = fd}, session, &hello, dial->key, DIAL_SESSION_MS,
                      &welcome, err) == CW_OK)
        return fd;
    close(fd);
    return cw_err_wrap(err, "%s", dial->address);
}

static bool ended(struct dial *d)
{
    bool ends;

    pthread_mutex_lock(&d->lock);
    ends = d->ends;
    pthread_mutex_unlock(&d->lock);
    return ends;
}

/* A connection whose other end is gone already, so that a failure takes the same way. */
static int dead_connection(void)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return -1;
    close(pair[1]);
    return pair[0];
}

static void hand_over(const struct dial *d, const struct relay_dialled *dialled, int fd)
{
    struct iovec iov = {(void *)dialled, sizeof(*dialled)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof(control)};

    control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    if (fd < 0 || sendmsg(d->thread_end, &msg, MSG_NOSIGNAL) < 0)
        dprintf(STDERR_FILENO, "causeway relay: handing over a link: %s\n", strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* What blocks may be cut short by dial_close. */
static int try_often(struct dial *d, const struct relay_dial *dial, struct cw_session *session,
                     struct cw_err *err)
{
    struct timespec pause = {.tv_nsec = DIAL_PAUSE_MS * 1000000};
    int fd;

    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    fd = try_once(dial, session, err);
    for (int i = 1; fd < 0 && i < DIAL_TRIES && !ended(d); i++) {
        nanosleep(&pause, NULL);
        err->code = CW_OK;
        fd = try_once(dial, session, err);
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return fd;
}

static void serve(struct dial *d, const struct relay_dial *dial)
{
    struct relay_dialled dialled = {.peer = dial->peer};
    struct cw_err err = {0};
    int fd = try_often(d, dial, &dialled.session, &err);

    memcpy(dialled.job, dial->job, CW_ID_SIZE);
    if (fd < 0)
        snprintf(dialled.failure, sizeof(dialled.failure), "%.*s", CW_TEXT_MAX, err.text);
    hand_over(d, &dialled, fd < 0 ? dead_connection() : fd);
}

static void *run(void *ctx)
{
    struct relay_dial dial;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    while (next_dial(ctx, &dial))
        serve(ctx, &dial);
    return NULL;
}

struct dial *dial_open(struct cw_err *err)
{
    struct dial *d = calloc(1, sizeof(*d));
    int pair[2];

    if (!d) {
        cw_err_set(err, CW_ENOMEM, "no memory for links to other relays");
        return NULL;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        cw_err_set(err, CW_ESYS, "links to other relays: socketpair: %s", strerror(errno));
        free(d);
        return NULL;
    }
    d->engine_end = pair[0];
    d->thread_end = pair[1];
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->wanted, NULL);
    if (cw_thread_start(&d->thread, 0, run, d) == 0)
        return d;
    cw_err_set(err, CW_ESYS, "links to other relays: no thread can be started");
    close(pair[0]);
    close(pair[1]);
    free(d);
    return NULL;
}

void dial_close(struct dial *d)
{
    pthread_mutex_lock(&d->lock);
    d->ends = true;
    pthread_cond_signal(&d->wanted);
    pthread_mutex_unlock(&d->lock);
    /* it may be waiting for a relay that does not answer */
    pthread_cancel(d->thread);
    pthread_join(d->thread, NULL);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->wanted);
    close(d->engine_end);
    close(d->thread_end);
    free(d);
}

struct relay_listener dial_listener(const struct dial *d)
{
    return (struct relay_listener){.fd = d->engine_end, .dialled = true};
}

struct relay_dialler dial_dialler(struct dial *d)
{
    return (struct relay_dialler){.ctx = d, .dial = dial_add};
}
