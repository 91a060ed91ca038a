#include "dispatcher/detector/world.h"
#include "dispatcher/detector/routing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT64_MAX
#define MILLION 1000000u

/* A message that arrives, or a process that is due. */
struct event {
    uint64_t at_ns, order;
    uint32_t to, from; /* from == to: due */
    uint8_t *bytes;    /* owned */
    size_t size;
};

struct process {
    struct world *world;
    struct detector *detector; /* NULL: not started yet */
    struct detector_config config;
    uint64_t started_ns, crash_ns;
    uint64_t stop_ns, go_ns;
    uint64_t wake_ns; /* of its event */
    int64_t drift_ppm;
};

struct world {
    struct world_config config;
    struct world_watch watch;
    struct world_counts counts;
    uint64_t now_ns, random, orders;
    struct process *processes;
    struct event *heap;
    size_t events, room;
    bool failed;
};

static double draw(struct world *w)
{
    return (double)(routing_draw(&w->random) >> 11) * 0x1p-53;
}

/* The clock of a process, and when that shows a time. */
static uint64_t clock_of(const struct process *p, uint64_t at_ns)
{
    return at_ns + (uint64_t)((int64_t)(at_ns / MILLION) * p->drift_ppm);
}

static uint64_t when_clock_shows(const struct process *p, uint64_t clock_ns)
{
    uint64_t at = (uint64_t)((double)clock_ns / (1 + (double)p->drift_ppm / MILLION));

    while (clock_of(p, at) < clock_ns)
        at++;
    return at;
}

/* --- events, a binary heap --- */

/* Messages that have arrived are taken before the clock is looked at: detector.h. */
static bool is_before(const struct event *a, const struct event *b)
{
    bool due_a = a->from == a->to, due_b = b->from == b->to;

    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    return due_a != due_b ? due_b : a->order < b->order;
}

static void put_event(struct world *w, struct event event)
{
    size_t i = w->events;

    if (w->events == w->room) {
        size_t room = w->room ? 2 * w->room : 1024;
        struct event *heap = realloc(w->heap, room * sizeof(*heap));

        if (!heap) {
            free(event.bytes);
            w->failed = true;
            return;
        }
        w->heap = heap;
        w->room = room;
    }
    event.order = w->orders++;
    w->events++;
    for (; i > 0 && is_before(&event, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = event;
}

static struct event take_event(struct world *w)
{
    struct event first = w->heap[0];
    struct event last = w->heap[--w->events];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < w->events && is_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (child >= w->events || !is_before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return first;
}

/* The event of a process that is due; one that is earlier already will do. */
static void put_due(struct world *w, uint32_t process)
{
    struct process *p = &w->processes[process];
    uint64_t at = p->detector ? when_clock_shows(p, detector_due_ns(p->detector)) : p->started_ns;

    if (at < w->now_ns)
        at = w->now_ns;
    if (p->wake_ns <= at)
        return;
    p->wake_ns = at;
    put_event(w, (struct event){.at_ns = at, .to = process, .from = process});
}

/* --- what detectors say --- */

static void on_send(void *ctx, uint32_t to, const uint8_t *bytes, size_t size)
{
    struct process *from = ctx;
    struct world *w = from->world;
    uint64_t delay =
        w->config.delay_ns + (uint64_t)(-log(1 - draw(w)) * (double)w->config.jitter_ns);
    struct event event = {
        .at_ns = w->now_ns + delay, .from = from->config.self, .to = to, .size = size};

    w->counts.messages++;
    w->counts.bytes += size;
    if (draw(w) * MILLION < w->config.loss_millionths)
        return;
    event.bytes = malloc(size);
    if (event.bytes) {
        memcpy(event.bytes, bytes, size);
        put_event(w, event);
    } else {
        w->failed = true;
    }
}

static void on_verdict(void *ctx, uint32_t about, enum detector_verdict verdict)
{
    const struct process *by = ctx;
    struct world *w = by->world;

    w->watch.verdict(w->watch.ctx, w->now_ns, by->config.self, about, verdict);
}

/* --- processes --- */

/* [FM] 5.3, figure 5: the submitter, process 0, sends the table of processes to one after the
 * other; each starts its detector when it has its program and data. */
static void plan_start(struct world *w, uint32_t i)
{
    struct process *p = &w->processes[i];
    uint64_t sent = i * (w->config.start_ns / 4 / w->config.detector.n);
    uint64_t received = sent + (i ? w->config.delay_ns : 0);

    p->world = w;
    p->started_ns = received + (uint64_t)(draw(w) * (double)w->config.start_ns * 3 / 4);
    p->crash_ns = p->stop_ns = p->go_ns = p->wake_ns = NEVER;
    p->drift_ppm = (int64_t)((2 * draw(w) - 1) * w->config.drift_ppm);
    p->config = w->config.detector;
    p->config.self = i;
    p->config.seed = routing_draw(&w->random);
    p->config.heartbeat =
        detector_initial_heartbeat(p->started_ns, received, sent, p->config.gossip_ns);
    put_due(w, i);
}

struct world *world_new(const struct world_config *config, const struct world_watch *watch)
{
    struct world *w = calloc(1, sizeof(*w));
    uint32_t n = config->detector.n;

    if (!w)
        return NULL;
    w->config = *config;
    w->watch = *watch;
    w->random = config->seed;
    w->processes = calloc(n, sizeof(*w->processes));
    for (uint32_t i = 0; w->processes && i < n; i++)
        plan_start(w, i);
    if (w->processes && !w->failed)
        return w;
    world_free(w);
    return NULL;
}

void world_free(struct world *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->events; i++)
        free(w->heap[i].bytes);
    for (uint32_t i = 0; w->processes && i < w->config.detector.n; i++)
        detector_free(w->processes[i].detector);
    free(w->heap);
    free(w->processes);
    free(w);
}

void world_crash(struct world *w, uint32_t process, uint64_t at_ns)
{
    w->processes[process].crash_ns = at_ns;
}

void world_stop(struct world *w, uint32_t process, uint64_t from_ns, uint64_t to_ns)
{
    w->processes[process].stop_ns = from_ns;
    w->processes[process].go_ns = to_ns;
}

bool world_is_stopped(const struct world *w, uint32_t process, uint64_t at_ns)
{
    const struct process *p = &w->processes[process];

    return at_ns >= p->stop_ns && at_ns < p->go_ns;
}

static void start(struct world *w, struct process *p)
{
    struct detector_out out = {.ctx = p, .send = on_send, .verdict = on_verdict};

    p->detector = detector_new(&p->config, &out, clock_of(p, w->now_ns));
    w->failed |= !p->detector;
}

/* One event of a process that runs. */
static void happen(struct world *w, const struct event *e)
{
    struct process *p = &w->processes[e->to];
    struct cw_err err = {0};

    if (e->from == e->to && p->detector)
        detector_advance(p->detector, clock_of(p, w->now_ns));
    else if (e->from == e->to)
        start(w, p);
    else if (p->detector)
        w->failed |= detector_receive(p->detector, e->from, e->bytes, e->size,
                                      clock_of(p, w->now_ns), &err) < 0;
    if (p->detector)
        put_due(w, e->to);
}

/* Returns whether the event is to be freed. */
static bool step(struct world *w, struct event *e)
{
    struct process *p = &w->processes[e->to];
    bool due = e->from == e->to;

    w->now_ns = e->at_ns;
    if (e->at_ns >= p->crash_ns || (due && e->at_ns != p->wake_ns)) /* it is due before */
        return true;
    if (world_is_stopped(w, e->to, e->at_ns)) {
        e->at_ns = p->go_ns;
        if (due)
            p->wake_ns = p->go_ns;
        put_event(w, *e);
        return false;
    }
    if (due)
        p->wake_ns = NEVER;
    happen(w, e);
    return true;
}

bool world_run(struct world *w, uint64_t until_ns)
{
    while (!w->failed && w->events > 0 && w->heap[0].at_ns <= until_ns) {
        struct event e = take_event(w);

        if (step(w, &e))
            free(e.bytes);
    }
    return !w->failed;
}

struct world_counts world_counts(const struct world *w)
{
    return w->counts;
}
