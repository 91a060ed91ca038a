#include "dispatcher/node/hosted.h"
#include "dispatcher/node/blobs.h"
#include "dispatcher/node/process.h"
#include "dispatcher/wire/stream_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* When bytes were written into the standard input of a rank: so how much it had been given when it
 * looked, a moment ago, how much of it was unread. */
struct input_log {
    uint64_t count; /* of writes until now */
    struct {
        uint64_t from_ns; /* two times around it */
        uint64_t until_ns;
        uint64_t all; /* bytes after it */
    } write[INPUT_LOG_WRITES_MAX];
};

/* A stream of a start. */
struct end {
    struct start *of;
    struct stream_fd fd;
};

/* A process of a rank, from the order to start it until nothing of it passes any more. */
struct start {
    struct hosted *of;
    struct start *next;
    uint32_t number;
    bool present;  /* its dispatcher waits for its end, or has not left it to itself */
    uint32_t over; /* NODE_ENDED or NODE_LOST, to be told once all is read that it said; 0 */
    int status;
    struct process process;
    struct input_log input;
    struct end end[NODE_STREAMS];
};

struct hosted {
    struct hosted_config config;
    struct blobs blobs;
    bool ended; /* no process is left */
    struct start *starts;
    struct loop_timer sweep; /* when starts may be freed */
};

/* --- telling --- */

static void tell(const struct start *s, uint32_t type, uint32_t value, const char *text)
{
    node_event_send(s->of->config.mux, type, s->number, value, text);
}

/* --- its input --- */

static void input_wrote(struct input_log *log, size_t size, uint64_t from_ns, uint64_t until_ns)
{
    uint64_t before = log->count ? log->write[(log->count - 1) % INPUT_LOG_WRITES_MAX].all : 0;
    uint32_t at = (uint32_t)(log->count++ % INPUT_LOG_WRITES_MAX);

    log->write[at].from_ns = from_ns;
    log->write[at].until_ns = until_ns;
    log->write[at].all = before + size;
}

/* How many bytes were written at a time between these two; UINT64_MAX: some were just then, or it
 * is too long ago. */
static uint64_t input_at(const struct input_log *log, uint64_t from_ns, uint64_t until_ns)
{
    uint64_t known = log->count < INPUT_LOG_WRITES_MAX ? log->count : INPUT_LOG_WRITES_MAX;

    for (uint64_t i = 1; i <= known; i++) {
        uint32_t at = (uint32_t)((log->count - i) % INPUT_LOG_WRITES_MAX);

        if (log->write[at].until_ns < from_ns)
            return log->write[at].all;
        if (log->write[at].from_ns <= until_ns)
            return UINT64_MAX;
    }
    return known == log->count ? 0 : UINT64_MAX;
}

/* --- streams --- */

static struct stream_fd *stream_of(struct start *s, uint32_t which)
{
    return &s->end[which].fd;
}

static uint32_t kind_of(const uint8_t *record, size_t size)
{
    struct cw_reader r = cw_reader(record, size);

    return cw_get_u32(&r);
}

/* The rank is in its output where it says that it takes an image: its marks are there, and go
 * first. */
static bool may_pass_control(void *ctx, const uint8_t *record, size_t size)
{
    struct start *s = ((struct end *)ctx)->of;
    bool out, err;

    if (kind_of(record, size) != CW_REPORT_IMAGE_TAKEN)
        return true;
    out = stream_fd_pull(stream_of(s, LAUNCH_STDOUT));
    err = stream_fd_pull(stream_of(s, LAUNCH_STDERR));
    return out && err;
}

/* How much of its input the rank had read: told in place of how much it had not, which the
 * dispatcher makes of it again. */
static void pass_control(void *ctx, uint8_t *record, size_t size)
{
    struct start *s = ((struct end *)ctx)->of;
    struct cw_report report;
    uint64_t written;

    if (!cw_report_get(record, size, &report) || report.kind != CW_REPORT_IMAGE_TAKEN ||
        report.image.unread == UINT64_MAX)
        return;
    written = input_at(&s->input, report.image.looked_from_ns, report.image.looked_until_ns);
    report.image.unread = written == UINT64_MAX || written < report.image.unread
                              ? UINT64_MAX
                              : written - report.image.unread;
    node_report_change(record, size, &report);
}

static void on_wrote(void *ctx, size_t size, uint64_t from_ns, uint64_t until_ns)
{
    input_wrote(&((struct end *)ctx)->of->input, size, from_ns, until_ns);
}

/* What a rank has reported before a request of PMI is told before it. */
static bool may_pass_pmi(void *ctx, const uint8_t *record, size_t size)
{
    struct start *s = ((struct end *)ctx)->of;

    (void)record;
    (void)size;
    return stream_fd_pull(stream_of(s, LAUNCH_CONTROL));
}

static bool is_heard_out(struct start *s)
{
    bool control = stream_fd_pull(stream_of(s, LAUNCH_CONTROL));

    return stream_fd_pull(stream_of(s, LAUNCH_PMI)) && control;
}

/* What a process has said is told before its end. */
static void tell_over(struct start *s)
{
    uint32_t over = s->over;

    s->over = 0;
    if (!over)
        return;
    if (is_heard_out(s))
        tell(s, over, (uint32_t)s->status, "");
    else
        s->over = over;
}

static void on_moved(void *ctx)
{
    struct start *s = ((struct end *)ctx)->of;

    if (stream_of(s, LAUNCH_CONTROL)->waits)
        stream_fd_pull(stream_of(s, LAUNCH_CONTROL));
    if (stream_of(s, LAUNCH_PMI)->waits)
        stream_fd_pull(stream_of(s, LAUNCH_PMI));
    tell_over(s);
}

static void on_closed(void *ctx)
{
    struct start *s = ((struct end *)ctx)->of;

    loop_timer_set(&s->of->sweep, 0);
}

static const struct stream_fd_ops ops_of[NODE_STREAMS] = {
    [LAUNCH_PMI] = {.may_pass = may_pass_pmi, .moved = on_moved, .closed = on_closed},
    [LAUNCH_CONTROL] = {.may_pass = may_pass_control,
                        .pass = pass_control,
                        .moved = on_moved,
                        .closed = on_closed},
    [LAUNCH_STDOUT] = {.moved = on_moved, .closed = on_closed},
    [LAUNCH_STDERR] = {.moved = on_moved, .closed = on_closed},
    [NODE_STREAM_IN] = {.wrote = on_wrote, .closed = on_closed},
    [NODE_STREAM_IMAGE] = {.closed = on_closed},
};

static int open_stream(struct start *s, uint32_t which, int fd, struct cw_err *err)
{
    struct stream_fd_config config = {.loop = s->of->config.loop,
                                      .mux = s->of->config.mux,
                                      .id = node_stream_id(s->number, which),
                                      .fd = fd,
                                      .reads = which < LAUNCH_STREAMS,
                                      .writes = which == LAUNCH_PMI || which >= LAUNCH_STREAMS,
                                      .records = which == LAUNCH_CONTROL,
                                      .record_max = CW_SETUP_MAX,
                                      .ops = &ops_of[which],
                                      .ctx = &s->end[which]};

    return stream_fd_open(stream_of(s, which), &config, err);
}

/* What a stream is written into: a pipe; of an image a socket, at which the process waits for a
 * bounded time. Returns the end for the process. */
static int open_inlet(struct start *s, uint32_t which, struct cw_err *err)
{
    const struct timeval stall = {.tv_sec = HOSTED_STALL_S};
    bool image = which == NODE_STREAM_IMAGE;
    int fds[2];

    if (image ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) : pipe2(fds, O_CLOEXEC))
        return cw_err_set(err, CW_ESYS, "opening its descriptors: %s (raise 'ulimit -n'?)",
                          strerror(errno));
    if (image)
        setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof(stall));
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    if (open_stream(s, which, fds[1], err) == CW_OK)
        return fds[0];
    close(fds[0]);
    return err->code;
}

/* --- starts --- */

static const struct process_events process_events;

static struct start *add_start(struct hosted *h, const struct node_start *order)
{
    struct start *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->of = h;
    s->number = order->start;
    process_init(&s->process);
    s->process.loop = h->config.loop;
    s->process.events = &process_events;
    s->process.ctx = s;
    s->process.program = blobs_program(&h->blobs, order->program);
    s->process.alive_period_ns = h->config.alive_period_ns;
    s->process.keep_fd = h->config.keep_fd;
    for (int i = 0; i < NODE_STREAMS; i++) {
        s->end[i].of = s;
        stream_fd_init(&s->end[i].fd);
    }
    s->next = h->starts;
    h->starts = s;
    return s;
}

static struct start *find(const struct hosted *h, uint32_t number)
{
    struct start *s = h->starts;

    while (s && s->number != number)
        s = s->next;
    return s;
}

static bool is_over(const struct start *s)
{
    if (s->present || s->over || process_is_watched(&s->process))
        return false;
    for (int i = 0; i < NODE_STREAMS; i++)
        if (!s->end[i].fd.over)
            return false;
    return true;
}

static void sweep(void *ctx)
{
    struct hosted *h = ctx;
    struct start **at = &h->starts;

    while (*at) {
        struct start *s = *at;

        if (is_over(s)) {
            *at = s->next;
            free(s);
        } else {
            at = &s->next;
        }
    }
}

static void leave(struct start *s)
{
    s->present = false;
    loop_timer_set(&s->of->sweep, 0);
}

static int launch(struct start *s, struct node_start *order, struct cw_err *err)
{
    const struct channel_fds *channel = group_memory_of(s->of->config.memory, &order->setup, err);
    int stdin_fd = -1;
    int image_fd = -1;

    if (!channel)
        return cw_err_wrap(err, "starting rank %u", order->setup.process.rank);
    if (order->flags & NODE_START_READS)
        stdin_fd = open_inlet(s, NODE_STREAM_IN, err);
    if (err->code == CW_OK && order->flags & NODE_START_FROM_IMAGE)
        image_fd = open_inlet(s, NODE_STREAM_IMAGE, err);
    if (err->code == CW_OK)
        process_start(&s->process, &order->setup, stdin_fd, image_fd, channel, err);
    if (stdin_fd >= 0)
        close(stdin_fd);
    if (image_fd >= 0)
        close(image_fd);
    return err->code;
}

static void on_failed(void *ctx, const struct cw_err *err)
{
    tell(ctx, NODE_FAILED, (uint32_t)err->code, err->text);
    leave(ctx);
}

static int take_start(struct hosted *h, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node_start order;
    struct start *s;

    if (!node_start_get(body, size, &order) || order.setup.process.rank >= h->config.ranks ||
        find(h, order.start) || !blobs_program(&h->blobs, order.program))
        return cw_err_set(err, CW_EPROTO, "an order to start a rank that makes no sense");
    s = add_start(h, &order);
    if (!s)
        return cw_err_set(err, CW_ENOMEM, "no memory for a process");
    s->present = true;
    err->code = CW_OK;
    if (h->ended)
        cw_err_set(err, CW_ECLOSED, "the job ends");
    if (err->code || launch(s, &order, err) < 0)
        on_failed(s, err);
    sodium_memzero(order.setup.key, sizeof(order.setup.key));
    sodium_memzero(order.setup.image_key, sizeof(order.setup.image_key));
    return err->code = CW_OK;
}

/* --- what becomes of its process --- */

static void on_started(void *ctx)
{
    struct start *s = ctx;
    struct cw_err err = {0};

    tell(s, NODE_STARTED, (uint32_t)s->process.pid, "");
    for (uint32_t i = 0; i < LAUNCH_STREAMS; i++)
        open_stream(s, i, s->process.fd[i], &err);
    if (err.code)
        process_signal(&s->process, SIGKILL);
}

static void on_alive(void *ctx)
{
    const struct start *s = ctx;

    if (s->present && s->of->config.connected(s->of->config.ctx))
        tell(s, NODE_ALIVE, 0, "");
}

/* Of one that was detached nothing that it said is waited for. */
static void end(struct start *s, uint32_t how)
{
    if (s->present)
        s->over = how;
    else
        tell(s, how, (uint32_t)s->status, "");
    if (how == NODE_ENDED || !s->present)
        leave(s);
    /* it may have left because of another rank's MPI_Abort, which has said so before */
    for (struct start *other = s->status == 0 ? NULL : s->of->starts; other; other = other->next)
        is_heard_out(other);
    tell_over(s);
}

static void on_ended(void *ctx, int status)
{
    ((struct start *)ctx)->status = status;
    end(ctx, NODE_ENDED);
}

static void on_lost(void *ctx)
{
    end(ctx, NODE_LOST);
}

static const struct process_events process_events = {on_started, on_failed, on_alive, on_ended,
                                                     on_lost};

/* --- frames --- */

static void detach(struct start *s, bool kill)
{
    if (kill)
        process_kill(&s->process);
    if (s->over) /* its watcher is gone: there is no other end to be told */
        tell(s, s->over, (uint32_t)s->status, "");
    s->over = 0;
    leave(s);
}

/* About a start that may have ended meanwhile. */
static int take_event(struct hosted *h, uint32_t type, const uint8_t *body, size_t size,
                      struct cw_err *err)
{
    struct node_event event;
    struct start *s;

    if (!node_event_get(body, size, &event))
        return cw_err_set(err, CW_EPROTO, "an order about a rank that makes no sense");
    s = find(h, event.of);
    if (s && s->present && type == NODE_SIGNAL)
        process_signal(&s->process, (int)event.value);
    else if (s && s->present)
        detach(s, event.value != 0);
    return CW_OK;
}

int hosted_frame(struct hosted *h, uint32_t type, const uint8_t *body, size_t size,
                 struct cw_err *err)
{
    switch (type) {
    case NODE_BLOB:
        return blobs_take(&h->blobs, body, size, err) < 0 ? err->code : 1;
    case NODE_START:
        return take_start(h, body, size, err) < 0 ? err->code : 1;
    case NODE_SIGNAL:
    case NODE_DETACH:
        return take_event(h, type, body, size, err) < 0 ? err->code : 1;
    case NODE_CLOSE:
        hosted_end(h);
        return 1;
    default:
        return 0;
    }
}

/* --- all of it --- */

struct hosted *hosted_new(const struct hosted_config *config, struct cw_err *err)
{
    struct hosted *h = calloc(1, sizeof(*h));

    if (!h) {
        cw_err_set(err, CW_ENOMEM, "no memory for the processes of ranks");
        return NULL;
    }
    h->config = *config;
    loop_timer_add(config->loop, &h->sweep, sweep, h);
    return h;
}

void hosted_end(struct hosted *h)
{
    h->ended = true;
    for (struct start *s = h->starts; s; s = s->next) {
        process_close(&s->process);
        leave(s);
    }
}

static void forget_orders(struct hosted *h)
{
    struct start *s;

    hosted_end(h);
    while ((s = h->starts)) {
        h->starts = s->next;
        for (int i = 0; i < NODE_STREAMS; i++)
            stream_fd_drop(stream_of(s, i));
        free(s);
    }
    blobs_free(&h->blobs);
}

void hosted_begin_again(struct hosted *h, const struct hosted_config *config)
{
    forget_orders(h);
    h->blobs = (struct blobs){0};
    h->config = *config;
    h->ended = false;
}

void hosted_free(struct hosted *h)
{
    if (!h)
        return;
    forget_orders(h);
    loop_timer_remove(&h->sweep);
    free(h);
}
