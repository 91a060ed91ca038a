#include "dispatcher/agent/hosted.h"
#include "dispatcher/agent/agent_tell.h"
#include "dispatcher/agent/blobs.h"
#include "dispatcher/agent/input_log.h"
#include "dispatcher/channels/stream_fd.h"
#include "dispatcher/launch/local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

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
    uint32_t rank;
    bool present;  /* it is the process of its rank */
    uint32_t over; /* AGENT_ENDED or AGENT_LOST, to be told once all is read that it said; 0 */
    int status;
    struct input_log input; /* into its standard input */
    struct end end[AGENT_STREAMS];
};

struct hosted {
    struct hosted_config config;
    struct blobs blobs;
    void *launcher; /* NULL: no process is left */
    struct start **of_rank;
    struct start *starts;
    struct loop_timer sweep; /* when starts may be freed */
};

/* --- telling --- */

static void tell(struct hosted *h, uint32_t type, uint32_t of, uint32_t value)
{
    agent_tell(h->config.mux, type, of, value, "");
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
    written = input_log_at(&s->input, report.image.looked_from_ns, report.image.looked_until_ns);
    report.image.unread = written == INPUT_LOG_UNKNOWN || written < report.image.unread
                              ? UINT64_MAX
                              : written - report.image.unread;
    agent_report_change(record, size, &report);
}

static void on_wrote(void *ctx, size_t size, uint64_t from_ns, uint64_t until_ns)
{
    input_log_add(&((struct end *)ctx)->of->input, size, from_ns, until_ns);
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
        tell(s->of, over, s->number, (uint32_t)s->status);
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

static const struct stream_fd_ops ops_of[AGENT_STREAMS] = {
    [LAUNCH_PMI] = {.may_pass = may_pass_pmi, .moved = on_moved, .closed = on_closed},
    [LAUNCH_CONTROL] = {.may_pass = may_pass_control,
                        .pass = pass_control,
                        .moved = on_moved,
                        .closed = on_closed},
    [LAUNCH_STDOUT] = {.moved = on_moved, .closed = on_closed},
    [LAUNCH_STDERR] = {.moved = on_moved, .closed = on_closed},
    [AGENT_STREAM_IN] = {.wrote = on_wrote, .closed = on_closed},
    [AGENT_STREAM_IMAGE] = {.closed = on_closed},
};

static int open_stream(struct start *s, uint32_t which, int fd, struct cw_err *err)
{
    struct stream_fd_config config = {.loop = s->of->config.loop,
                                      .mux = s->of->config.mux,
                                      .id = agent_stream_id(s->number, which),
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
    bool image = which == AGENT_STREAM_IMAGE;
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

static struct start *add_start(struct hosted *h, const struct agent_start *order)
{
    struct start *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->of = h;
    s->number = order->start;
    s->rank = order->setup.rank;
    for (int i = 0; i < AGENT_STREAMS; i++) {
        s->end[i].of = s;
        stream_fd_init(&s->end[i].fd);
    }
    s->next = h->starts;
    h->starts = s;
    return s;
}

static bool is_over(const struct start *s)
{
    if (s->present || s->over)
        return false;
    for (int i = 0; i < AGENT_STREAMS; i++)
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

/* The start is no more the process of its rank. */
static void leave(struct start *s)
{
    s->present = false;
    if (s->of->of_rank[s->rank] == s)
        s->of->of_rank[s->rank] = NULL;
    loop_timer_set(&s->of->sweep, 0);
}

static void fail(struct start *s, const struct cw_err *err)
{
    agent_tell(s->of->config.mux, AGENT_FAILED, s->number, (uint32_t)err->code, err->text);
    leave(s);
}

static int launch(struct start *s, struct agent_start *order, struct cw_err *err)
{
    struct hosted *h = s->of;
    const struct launch_program *program = blobs_program(&h->blobs, order->program);
    int stdin_fd = -1;
    int image_fd = -1;

    if (order->flags & AGENT_START_READS)
        stdin_fd = open_inlet(s, AGENT_STREAM_IN, err);
    if (err->code == CW_OK && order->flags & AGENT_START_FROM_IMAGE)
        image_fd = open_inlet(s, AGENT_STREAM_IMAGE, err);
    if (err->code == CW_OK)
        local_launcher.start(h->launcher, program, &order->setup, 0, stdin_fd, image_fd, err);
    if (stdin_fd >= 0)
        close(stdin_fd);
    if (image_fd >= 0)
        close(image_fd);
    return err->code;
}

static int take_start(struct hosted *h, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct agent_start order;
    struct start *s;

    if (!agent_start_get(body, size, &order) || order.setup.rank >= h->config.ranks ||
        h->of_rank[order.setup.rank] || !blobs_program(&h->blobs, order.program))
        return cw_err_set(err, CW_EPROTO, "an order to start a rank that makes no sense");
    s = add_start(h, &order);
    if (!s)
        return cw_err_set(err, CW_ENOMEM, "no memory for a process");
    s->present = true;
    h->of_rank[s->rank] = s;
    err->code = CW_OK;
    if (!h->launcher)
        cw_err_set(err, CW_ECLOSED, "the job ends");
    if (err->code || launch(s, &order, err) < 0)
        fail(s, err);
    sodium_memzero(order.setup.key, sizeof(order.setup.key));
    sodium_memzero(order.setup.image_key, sizeof(order.setup.image_key));
    return err->code = CW_OK;
}

/* --- what the launcher tells --- */

static void on_started(void *ctx, const struct launch_process *process)
{
    struct hosted *h = ctx;
    struct start *s = h->of_rank[process->rank];
    struct cw_err err = {0};

    tell(h, AGENT_STARTED, s->number, (uint32_t)process->pid);
    for (uint32_t i = 0; i < LAUNCH_STREAMS; i++)
        open_stream(s, i, process->fd[i], &err);
    if (err.code)
        local_launcher.signal(h->launcher, s->rank, SIGKILL);
}

static void on_failed(void *ctx, uint32_t rank, const struct cw_err *err)
{
    fail(((struct hosted *)ctx)->of_rank[rank], err);
}

static void on_alive(void *ctx, uint32_t rank, uint32_t incarnation)
{
    struct hosted *h = ctx;

    if (h->config.connected(h->config.ctx))
        tell(h, AGENT_ALIVE, rank, incarnation);
}

static void on_ended(void *ctx, uint32_t rank, int status)
{
    struct start *s = ((struct hosted *)ctx)->of_rank[rank];

    s->over = AGENT_ENDED;
    s->status = status;
    leave(s);
    /* it may have left because of another rank's MPI_Abort, which has said so before */
    for (struct start *other = status == 0 ? NULL : s->of->starts; other; other = other->next)
        is_heard_out(other);
    tell_over(s);
}

/* The launcher has it until it is let go of. */
static void on_lost(void *ctx, uint32_t rank)
{
    struct start *s = ((struct hosted *)ctx)->of_rank[rank];

    s->over = AGENT_LOST;
    tell_over(s);
}

static void on_former_ended(void *ctx, uint32_t rank, uint32_t incarnation)
{
    tell(ctx, AGENT_FORMER_ENDED, rank, incarnation);
}

static const struct launcher_events launcher_events = {on_started, on_failed, on_alive,
                                                       on_ended,   on_lost,   on_former_ended};

/* --- frames --- */

static int take_event(struct hosted *h, uint32_t type, const uint8_t *body, size_t size,
                      struct cw_err *err)
{
    struct agent_event event;
    struct start *s;

    if (!agent_event_get(body, size, &event) || event.of >= h->config.ranks)
        return cw_err_set(err, CW_EPROTO, "an order about a rank that makes no sense");
    s = h->of_rank[event.of];
    if (type == AGENT_SIGNAL && h->launcher) {
        local_launcher.signal(h->launcher, event.of, (int)event.value);
    } else if (type == AGENT_LET_GO) {
        /* one that is let go of has started, as its relay may have told earlier */
        if (h->launcher)
            local_launcher.confirm(h->launcher, event.of);
        if (h->launcher)
            local_launcher.let_go(h->launcher, event.of, event.value != 0);
        if (s) {
            if (s->over) /* it is lost: there is no other end to be told */
                tell(h, s->over, s->number, (uint32_t)s->status);
            s->over = 0;
            leave(s);
        }
    }
    return CW_OK;
}

int hosted_frame(struct hosted *h, uint32_t type, const uint8_t *body, size_t size,
                 struct cw_err *err)
{
    switch (type) {
    case AGENT_BLOB:
        return blobs_take(&h->blobs, body, size, err) < 0 ? err->code : 1;
    case AGENT_START:
        return take_start(h, body, size, err) < 0 ? err->code : 1;
    case AGENT_SIGNAL:
    case AGENT_LET_GO:
        return take_event(h, type, body, size, err) < 0 ? err->code : 1;
    case AGENT_CLOSE:
        hosted_end(h);
        return 1;
    default:
        return 0;
    }
}

/* --- all of it --- */

struct hosted *hosted_new(const struct hosted_config *config, struct cw_err *err)
{
    struct launcher_config launcher = {.loop = config->loop,
                                       .ranks = config->ranks,
                                       .alive_period_ns = config->alive_period_ns,
                                       .keep_fd = config->keep_fd,
                                       .events = &launcher_events};
    struct hosted *h = calloc(1, sizeof(*h));

    if (h)
        h->of_rank = calloc(config->ranks, sizeof(struct start *));
    if (!h || !h->of_rank) {
        free(h);
        cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", config->ranks);
        return NULL;
    }
    h->config = *config;
    launcher.ctx = h;
    h->launcher = local_launcher.open(&launcher, err);
    if (!h->launcher) {
        free(h->of_rank);
        free(h);
        return NULL;
    }
    loop_timer_add(config->loop, &h->sweep, sweep, h);
    return h;
}

void hosted_end(struct hosted *h)
{
    if (h->launcher)
        local_launcher.close(h->launcher);
    h->launcher = NULL;
    for (uint32_t rank = 0; rank < h->config.ranks; rank++)
        if (h->of_rank[rank])
            leave(h->of_rank[rank]);
}

void hosted_free(struct hosted *h)
{
    struct start *s;

    if (!h)
        return;
    hosted_end(h);
    loop_timer_remove(h->config.loop, &h->sweep);
    while ((s = h->starts)) {
        h->starts = s->next;
        for (int i = 0; i < AGENT_STREAMS; i++)
            stream_fd_drop(stream_of(s, i));
        free(s);
    }
    blobs_free(&h->blobs);
    free(h->of_rank);
    free(h);
}
