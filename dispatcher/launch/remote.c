#include "dispatcher/launch/remote.h"
#include "common/fd.h"
#include "dispatcher/wire/node_states.h"
#include "dispatcher/wire/stream_fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

struct process {
    struct remote *of;
    struct process *next;
    uint32_t host;
    uint32_t start; /* its number at the node */
    const struct launch_program *program;
    struct remote_process made;
    bool present;          /* it is the process of its rank */
    bool started;          /* which was told */
    enum node_state state; /* as its node told it */
    struct {
        bool waits; /* it has ended, which has not passed its gate */
        uint64_t token;
        uint32_t type; /* enum node_frame */
        int status;
    } end;
    bool start_lost;        /* its host was lost before it was started: to be told */
    struct stream_fd input; /* from what it reads, and from its image */
    struct stream_fd image;
    int input_fd; /* until these are open */
    int image_fd;
};

/* What a host knows, and is known of it. */
struct known {
    struct process *processes;  /* that were started there */
    uint32_t starts;            /* numbers that are used */
    bool knows[NODE_BLOBS_MAX]; /* of the programs */
    struct far_clock clock;
};

struct remote {
    struct remote_config config;
    const struct launch_program *program[NODE_BLOBS_MAX]; /* by number; 0 is none */
    struct process **present; /* of each process, by present_of; NULL: there is none */
    struct known *host;       /* of each host */
    struct loop_timer sweep;
    bool closed; /* nothing is told any more; what ranks have printed passes still */
};

/* NULL: what it says passes at once. */
static struct gate *gate_of(const struct process *p)
{
    struct gate *const *gates = p->of->config.gates;

    return gates ? gates[p->made.id.rank] : NULL;
}

static struct process **present_of(const struct remote *r, struct cw_process id)
{
    return &r->present[cw_process_index(id)];
}

/* --- clocks --- */

uint64_t far_clock_here(struct far_clock *clock, uint64_t now_ns, uint64_t then_ns)
{
    int64_t behind_ns = (int64_t)(now_ns - then_ns);

    if (!clock->known || behind_ns < clock->behind_ns)
        clock->behind_ns = behind_ns;
    clock->known = true;
    return then_ns + (uint64_t)clock->behind_ns;
}

/* --- streams --- */

static void on_closed(void *ctx)
{
    loop_timer_set(&((struct process *)ctx)->of->sweep, 0);
}

static const struct stream_fd_ops feed_ops = {.closed = on_closed};

/* What a descriptor has goes to the process. */
static void open_feed(struct process *p, uint32_t which, struct stream_fd *feed, int *fd)
{
    struct stream_fd_config config = {.loop = p->of->config.loop,
                                      .mux = nodes_mux(p->of->config.nodes, p->host),
                                      .id = node_stream_id(p->start, which),
                                      .fd = *fd,
                                      .reads = true,
                                      .ops = &feed_ops,
                                      .ctx = p};
    struct cw_err err;

    if (*fd < 0)
        return;
    *fd = -1;
    if (stream_fd_open(feed, &config, &err) < 0)
        nodes_tell_event(p->of->config.nodes, p->host, NODE_SIGNAL, p->start, SIGKILL, &err);
}

/* The node says how much of its input a rank had read; what it had not is also what is on its way.
 */
static void count_unread(struct process *p, struct cw_report *report)
{
    uint64_t given = stream_fd_given(&p->input);
    uint64_t *unread = &report->image.unread;

    if (*unread != UINT64_MAX)
        *unread = *unread > given ? UINT64_MAX : given - *unread;
}

/* What is true there is made true here. */
static void pass_report(void *ctx, uint8_t *record, size_t size)
{
    struct process *p = ctx;
    struct cw_report report;

    if (!cw_report_get(record, size, &report))
        return;
    if (report.kind == CW_REPORT_IMAGE_TAKEN)
        count_unread(p, &report);
    else if (report.kind == CW_REPORT_FILE)
        report.opening.opened_ns = far_clock_here(
            &p->of->host[p->host].clock, loop_now_ns(p->of->config.loop), report.opening.opened_ns);
    else
        return;
    node_report_change(record, size, &report);
}

static void open_streams(struct process *p)
{
    struct mux *mux = nodes_mux(p->of->config.nodes, p->host);

    for (int i = 0; i < LAUNCH_STREAMS; i++) {
        channel_hold(p->made.channel[i], gate_of(p));
        channel_open(p->made.channel[i], mux, node_stream_id(p->start, i), i == LAUNCH_PMI);
    }
    channel_on_record(p->made.channel[LAUNCH_CONTROL], pass_report, p);
    open_feed(p, NODE_STREAM_IN, &p->input, &p->input_fd);
    open_feed(p, NODE_STREAM_IMAGE, &p->image, &p->image_fd);
}

/* The node does not know of its streams, or is not there. */
static void drop_streams(struct process *p)
{
    for (int i = 0; i < LAUNCH_STREAMS; i++)
        channel_drop(p->made.channel[i]);
    cw_close(&p->input_fd);
    cw_close(&p->image_fd);
    stream_fd_drop(&p->input);
    stream_fd_drop(&p->image);
}

/* --- processes --- */

static bool is_over(const struct process *p)
{
    if (p->present || p->start_lost || p->state != NODE_IS_NOT || !p->input.over || !p->image.over)
        return false;
    for (int i = 0; i < LAUNCH_STREAMS; i++)
        if (!channel_is_over(p->made.channel[i]))
            return false;
    return true;
}

/* Channels that nobody was told of have no reader. */
static void free_process(struct process *p)
{
    for (int i = 0; i < LAUNCH_STREAMS; i++) {
        if (p->made.channel[i])
            channel_drop(p->made.channel[i]);
        if (!p->started)
            channel_close(p->made.channel[i]);
        channel_leave(p->made.channel[i]);
    }
    cw_close(&p->input_fd);
    cw_close(&p->image_fd);
    stream_fd_drop(&p->input);
    stream_fd_drop(&p->image);
    free(p);
}

static void leave(struct process *p)
{
    p->present = p->end.waits = false;
    if (*present_of(p->of, p->made.id) == p)
        *present_of(p->of, p->made.id) = NULL;
    loop_timer_set(&p->of->sweep, 0);
}

/* Said once all know that their host is lost. */
static void tell_lost_starts(struct remote *r)
{
    struct cw_err err;

    for (size_t i = 0; i < r->config.ranks * CW_REPLICAS; i++) {
        struct process *p = r->present[i];

        if (!p || !p->start_lost)
            continue;
        p->start_lost = false;
        leave(p);
        cw_err_set(&err, CW_ESYS, "starting rank %u (%s): host %s is lost", p->made.id.rank,
                   p->program->path, nodes_name(r->config.nodes, p->host));
        if (!r->closed)
            r->config.events->failed(r->config.ctx, p->made.id, &err);
    }
}

static void sweep(void *ctx)
{
    struct remote *r = ctx;

    tell_lost_starts(r);
    for (uint32_t host = 0; host < nodes_count(r->config.nodes); host++)
        for (struct process **at = &r->host[host].processes; *at;) {
            struct process *p = *at;

            if (is_over(p)) {
                *at = p->next;
                free_process(p);
            } else {
                at = &p->next;
            }
        }
}

/* Opens its streams, and hands those that it says something on over. */
static void tell_started(struct process *p)
{
    struct remote_config config = p->of->config;

    if (p->started)
        return;
    p->started = true;
    open_streams(p);
    config.events->started(config.ctx, &p->made);
}

/* All that it has said has come before. */
static void tell_over(struct process *p, uint32_t type, int status)
{
    struct remote_config config = p->of->config;

    if (!p->present) {
        config.events->superseded_ended(config.ctx, p->made.id);
    } else if (type == NODE_LOST) {
        config.events->life(config.ctx, p->made.id, LIFE_DEAD);
    } else {
        leave(p);
        config.events->ended(config.ctx, p->made.id, status);
    }
}

/* It is told behind all that it has said, which may wait. */
static void take_end(struct process *p, uint32_t type, int status)
{
    struct remote_config config = p->of->config;
    struct gate *gate = gate_of(p);
    uint64_t token = gate && p->present ? gate_enter(gate) : 0;

    if (!token) {
        tell_over(p, type, status);
        return;
    }
    p->end.waits = true;
    p->end.token = token;
    p->end.type = type;
    p->end.status = status;
    config.events->life(config.ctx, p->made.id, LIFE_ENDED);
}

static void tell_failed(struct process *p, const struct node_event *event)
{
    struct remote_config config = p->of->config;
    struct cw_err err;

    cw_err_set(&err, (int)event->value, "%s", event->text);
    if (p->host != nodes_here(config.nodes))
        cw_err_wrap(&err, "host %s", nodes_name(config.nodes, p->host));
    drop_streams(p);
    leave(p);
    config.events->failed(config.ctx, p->made.id, &err);
}

/* --- frames --- */

static struct process *find(const struct remote *r, uint32_t host, uint32_t start)
{
    struct process *p = r->host[host].processes;

    while (p && p->start != start)
        p = p->next;
    return p;
}

/* Of one that was detached nothing is told but its end. */
static void take_event(struct process *p, uint32_t type, const struct node_event *event)
{
    const struct remote_config *config = &p->of->config;

    switch (type) {
    case NODE_STARTED:
        p->made.pid = (pid_t)event->value;
        if (p->present)
            tell_started(p);
        break;
    case NODE_FAILED:
        if (p->present)
            tell_failed(p, event);
        else
            drop_streams(p);
        break;
    case NODE_ALIVE:
        if (p->present)
            config->events->life(config->ctx, p->made.id, LIFE_BACK);
        break;
    default:
        take_end(p, type, (int)event->value);
        break;
    }
}

static int on_frame(void *ctx, uint32_t host, uint32_t type, const uint8_t *body, size_t size,
                    struct cw_err *err)
{
    struct remote *r = ctx;
    struct node_event event;
    struct process *p;

    if (!node_event_get(body, size, &event))
        return cw_err_set(err, CW_EPROTO, "an event that makes no sense");
    p = find(r, host, event.of);
    if (!p)
        return cw_err_set(err, CW_EPROTO, "its node tells of start %u, which it does not have",
                          event.of);
    /* what its relay has told may be ahead, but it cannot have failed then */
    if (type == NODE_FAILED && p->started)
        return cw_err_set(err, CW_EPROTO, "rank %u could not be started, but its relay knows it",
                          p->made.id.rank);
    if (node_state_take(&p->state, type, err) < 0)
        return err->code;
    if (p->state == NODE_IS_NOT)
        loop_timer_set(&r->sweep, 0);
    if (!r->closed)
        take_event(p, type, &event);
    return CW_OK;
}

/* All that came is passed on before anybody hears of it, as far as it is taken. */
static void on_host_lost(void *ctx, uint32_t host)
{
    struct remote *r = ctx;

    for (struct process *p = r->host[host].processes; p; p = p->next) {
        drop_streams(p);
        p->state = NODE_IS_NOT;
        p->end.waits = false;
    }
    for (size_t i = 0; i < r->config.ranks * CW_REPLICAS; i++) {
        struct process *p = r->present[i];

        if (!p || p->host != host || r->closed)
            continue;
        if (p->started)
            r->config.events->life(r->config.ctx, p->made.id, LIFE_DEAD);
        else
            p->start_lost = true;
    }
    memset(r->host[host].knows, 0, sizeof(r->host[host].knows));
    loop_timer_set(&r->sweep, 0);
}

static void on_over(void *ctx)
{
    struct remote *r = ctx;
    struct process *p;

    for (uint32_t host = 0; host < nodes_count(r->config.nodes); host++)
        while ((p = r->host[host].processes)) {
            r->host[host].processes = p->next;
            free_process(p);
        }
    loop_timer_remove(&r->sweep);
    free(r->present);
    free(r->host);
    free(r);
}

static const struct nodes_user nodes_user = {.first = NODE_STARTED,
                                             .last = NODE_LOST,
                                             .frame = on_frame,
                                             .lost = on_host_lost,
                                             .over = on_over};

/* --- programs --- */

static int tell_blob(struct remote *r, uint32_t host, uint32_t number,
                     const struct launch_program *program, struct cw_err *err)
{
    uint8_t body[NODE_PART_HEADER + NODE_BLOB_PART];
    char here[PATH_MAX];
    size_t size;
    uint8_t *bytes = node_program_put(
        program, program->wdir ? program->wdir : getcwd(here, sizeof(here)), &size);

    if (!bytes)
        return cw_err_set(err, CW_ELIMIT, "its arguments and environment are larger than %u MiB",
                          NODE_BLOB_MAX >> 20);
    err->code = CW_OK;
    for (size_t at = 0; err->code == CW_OK && at < size; at += NODE_BLOB_PART) {
        struct node_part part = {.number = number,
                                 .size = (uint32_t)size,
                                 .bytes = bytes + at,
                                 .part = size - at < NODE_BLOB_PART ? size - at : NODE_BLOB_PART};

        nodes_tell(r->config.nodes, host, NODE_BLOB, body, node_part_put(body, &part), err);
    }
    free(bytes);
    return err->code;
}

/* Our environment is that of ranks, wherever they are: the same in each incarnation. */
static int tell_environment(struct remote *r, uint32_t host, struct cw_err *err)
{
    struct launch_program all = {.env = (const char *const *)environ};

    while (environ[all.env_count])
        all.env_count++;
    return tell_blob(r, host, 0, &all, err);
}

/* Returns its number, or a negative code. */
static int know_program(struct remote *r, uint32_t host, const struct launch_program *program,
                        struct cw_err *err)
{
    struct known *h = &r->host[host];
    uint32_t number = 1;

    while (number < NODE_BLOBS_MAX && r->program[number] && r->program[number] != program)
        number++;
    assert(number < NODE_BLOBS_MAX); /* a job has no more segments */
    r->program[number] = program;
    if (!h->knows[0] && tell_environment(r, host, err) < 0)
        return err->code;
    h->knows[0] = true;
    if (!h->knows[number] && tell_blob(r, host, number, program, err) < 0)
        return err->code;
    h->knows[number] = true;
    return (int)number;
}

/* --- starting --- */

static int copy_fd(int *copy, int fd)
{
    if (fd < 0)
        return 0;
    *copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return *copy < 0 ? -1 : fcntl(*copy, F_SETFL, O_NONBLOCK);
}

static int open_ends(struct process *p, int stdin_fd, int image_fd, struct cw_err *err)
{
    for (int i = 0; i < LAUNCH_STREAMS; i++) {
        p->made.channel[i] = channel_new(p->of->config.channels, i == LAUNCH_CONTROL);
        if (!p->made.channel[i])
            return cw_err_set(err, CW_ENOMEM, "no memory");
    }
    if (copy_fd(&p->input_fd, stdin_fd) < 0 || copy_fd(&p->image_fd, image_fd) < 0)
        return cw_err_set(err, CW_ESYS, "opening its descriptors: %s (raise 'ulimit -n'?)",
                          strerror(errno));
    return CW_OK;
}

/* The keys are wiped. */
static int tell_start(struct process *p, struct cw_setup *setup, struct cw_err *err)
{
    uint8_t body[NODE_START_MAX];
    struct node_start order = {.start = p->start, .setup = *setup};
    int number = know_program(p->of, p->host, p->program, err);

    sodium_memzero(setup->key, sizeof(setup->key));
    sodium_memzero(setup->image_key, sizeof(setup->image_key));
    order.program = (uint32_t)number;
    if (p->input_fd >= 0)
        order.flags |= NODE_START_READS;
    if (p->image_fd >= 0)
        order.flags |= NODE_START_FROM_IMAGE;
    if (number > 0)
        nodes_tell(p->of->config.nodes, p->host, NODE_START, body, node_start_put(body, &order),
                   err);
    sodium_memzero(&order, sizeof(order));
    sodium_memzero(body, sizeof(body));
    return err->code;
}

static struct process *new_process(struct remote *r, const struct launch_program *program,
                                   const struct cw_setup *setup, uint32_t host)
{
    struct process *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->of = r;
    p->host = host;
    p->program = program;
    p->start = r->host[host].starts++;
    p->made.id = setup->process;
    p->input_fd = p->image_fd = -1;
    stream_fd_init(&p->input);
    stream_fd_init(&p->image);
    return p;
}

int remote_start(struct remote *r, const struct launch_program *program, struct cw_setup *setup,
                 uint32_t host, int stdin_fd, int image_fd, struct cw_err *err)
{
    uint32_t rank = setup->process.rank;
    struct process *p = new_process(r, program, setup, host);

    assert(!*present_of(r, setup->process));
    err->code = CW_OK;
    if (!p)
        cw_err_set(err, CW_ENOMEM, "no memory");
    else if (!nodes_mux(r->config.nodes, host))
        cw_err_set(err, CW_ECLOSED, "host %s is lost", nodes_name(r->config.nodes, host));
    else if (open_ends(p, stdin_fd, image_fd, err) == CW_OK)
        tell_start(p, setup, err);
    if (err->code) {
        if (p)
            free_process(p);
        return cw_err_wrap(err, "starting rank %u (%s)", rank, program->path);
    }
    p->present = true;
    p->state = NODE_IS_ORDERED;
    p->next = r->host[host].processes;
    r->host[host].processes = p;
    *present_of(r, p->made.id) = p;
    return CW_OK;
}

/* --- all of them --- */

struct remote *remote_new(const struct remote_config *config, struct cw_err *err)
{
    struct remote *r = calloc(1, sizeof(*r));

    if (r) {
        r->present = calloc(config->ranks * CW_REPLICAS, sizeof(struct process *));
        r->host = calloc(nodes_count(config->nodes), sizeof(*r->host));
    }
    if (!r || !r->present || !r->host) {
        if (r) {
            free(r->present);
            free(r->host);
        }
        free(r);
        cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", config->ranks);
        return NULL;
    }
    r->config = *config;
    loop_timer_add(config->loop, &r->sweep, sweep, r);
    nodes_add_user(config->nodes, &nodes_user, r);
    return r;
}

void remote_close(struct remote *r)
{
    struct cw_err err;

    r->closed = true;
    for (uint32_t host = 0; host < nodes_count(r->config.nodes); host++)
        nodes_tell(r->config.nodes, host, NODE_CLOSE, NULL, 0, &err);
    for (size_t i = 0; i < r->config.ranks * CW_REPLICAS; i++)
        if (r->present[i])
            leave(r->present[i]);
}

void remote_confirm(struct remote *r, struct cw_process id)
{
    struct process *p = *present_of(r, id);

    if (p)
        tell_started(p);
}

void remote_pass(struct remote *r)
{
    for (uint32_t host = 0; host < nodes_count(r->config.nodes); host++)
        for (struct process *p = r->host[host].processes; p; p = p->next) {
            for (int i = 0; i < LAUNCH_STREAMS; i++)
                channel_look(p->made.channel[i]);
            if (p->end.waits && gate_passes(gate_of(p), p->end.token)) {
                p->end.waits = false;
                tell_over(p, p->end.type, p->end.status);
            }
        }
    loop_timer_set(&r->sweep, 0);
}

/* A host that is lost hears nothing. */
static void tell_node(const struct process *p, uint32_t type, uint32_t value)
{
    struct cw_err err;

    nodes_tell_event(p->of->config.nodes, p->host, type, p->start, value, &err);
}

void remote_signal(const struct remote *r, struct cw_process id, int signal_number)
{
    const struct process *p = *present_of(r, id);

    if (p)
        tell_node(p, NODE_SIGNAL, (uint32_t)signal_number);
}

pid_t remote_pid(const struct remote *r, struct cw_process id)
{
    const struct process *p = r ? *present_of(r, id) : NULL;

    return p && p->state != NODE_IS_NOT ? p->made.pid : 0;
}

void remote_detach(struct remote *r, struct cw_process id, bool end)
{
    struct process *p = *present_of(r, id);

    if (!p)
        return;
    tell_node(p, NODE_DETACH, end);
    p->start_lost = false;
    leave(p);
}
