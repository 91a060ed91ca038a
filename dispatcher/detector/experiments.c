#include "dispatcher/detector/experiments.h"
#include "dispatcher/detector/routing.h"

#include <math.h>
#include <string.h>

#define SECOND_NS 1000000000ull
#define DELAY_NS 1000000ull /* of a message, at least */
#define DRIFT_PPM 50u       /* clocks of common machines go wrong by up to that */
/* [FM] 6: "after 20 seconds, we kill all processes on a random node" */
#define CRASH_NS (20 * SECOND_NS)
#define DETECTION_NS (120 * SECOND_NS)
#define SETTLED_NS (20 * SECOND_NS) /* all have started, and heard all others */
#define TROUBLE_NS (120 * SECOND_NS)
#define TROUBLE_PROCESSES 64u
#define BYTES_ROUNDS 48u /* 4 cycles of BRR and 2 of DBRR with 4096 processes */
#define HEALTH_MAX 8u    /* [Lifeguard] 4.1: S; memberlist: 8 */

const struct experiment_protocol experiment_protocols[EXPERIMENT_PROTOCOLS] = {
    {"random", DETECTOR_RANDOM, 0}, {"rr", DETECTOR_RR, 0},
    {"brr", DETECTOR_BRR, 0},       {"dbrr", DETECTOR_DBRR, 0},
    {"swim", DETECTOR_SWIM, 0},     {"lifeguard", DETECTOR_SWIM, HEALTH_MAX},
};

const struct experiment_trouble experiment_troubles[EXPERIMENT_TROUBLES] = {
    {"none", DELAY_NS * 5, 0, 0, 0, 0},
    {"1% of messages lost", DELAY_NS * 5, 10000, 0, 0, 0},
    {"5% of messages lost", DELAY_NS * 5, 50000, 0, 0, 0},
    {"20% of messages lost", DELAY_NS * 5, 200000, 0, 0, 0},
    {"delays of 0.25 s on average", SECOND_NS / 4, 0, 0, 0, 0},
    {"all stop for 1.5 s, every 30 s", DELAY_NS * 5, 0, SECOND_NS * 3 / 2, 30 * SECOND_NS, 1},
    {"1 in 8 stops for 5 s, every 30 s", DELAY_NS * 5, 0, 5 * SECOND_NS, 30 * SECOND_NS, 8},
    {"1 in 8 stops for 20 s, every 60 s", DELAY_NS * 5, 0, 20 * SECOND_NS, 60 * SECOND_NS, 8},
};

static struct world_config config_of(const struct experiment_protocol *protocol, uint32_t n,
                                     uint64_t seed)
{
    bool swim = protocol->kind == DETECTOR_SWIM;

    return (struct world_config){
        .detector = {.kind = protocol->kind,
                     .n = n,
                     .gossip_ns = EXPERIMENT_GOSSIP_NS,
                     /* SWIM has to hear from others too within its period; memberlist: half */
                     .ping_ns = swim ? EXPERIMENT_GOSSIP_NS / 2 : EXPERIMENT_GOSSIP_NS,
                     .health_max = protocol->health_max},
        .seed = seed,
        .delay_ns = DELAY_NS,
        .jitter_ns = 5 * DELAY_NS,
        .start_ns = 4 * SECOND_NS,
        .drift_ppm = DRIFT_PPM,
    };
}

static int run(struct world *w, uint64_t until_ns, struct cw_err *err)
{
    if (w && world_run(w, until_ns))
        return CW_OK;
    return cw_err_set(err, CW_ENOMEM, "no memory for simulated processes");
}

static double draw(uint64_t *random)
{
    return (double)(routing_draw(random) >> 11) * 0x1p-53;
}

/* --- detection --- */

struct detection {
    uint32_t victim, found;
    uint64_t crash_ns;
    bool knows[DETECTOR_PROCESSES_MAX];
    double sum_s, least_s, most_s;
    uint64_t wrong;
};

static void detected(void *ctx, uint64_t at_ns, uint32_t by, uint32_t about,
                     enum detector_verdict verdict)
{
    struct detection *d = ctx;
    double s = ((double)at_ns - (double)d->crash_ns) / SECOND_NS;

    if (verdict != DETECTOR_FAILED)
        return;
    d->wrong += about != d->victim || at_ns < d->crash_ns;
    if (about != d->victim || at_ns < d->crash_ns || d->knows[by])
        return;
    d->knows[by] = true;
    d->found++;
    d->sum_s += s;
    d->least_s = fmin(d->least_s, s);
    d->most_s = fmax(d->most_s, s);
}

static int detect_once(struct detection *d, const struct world_config *config, uint64_t *random,
                       struct cw_err *err)
{
    struct world_watch watch = {.ctx = d, .verdict = detected};
    struct world *w = world_new(config, &watch);
    int failed;

    memset(d->knows, 0, sizeof(d->knows));
    d->victim = (uint32_t)(draw(random) * config->detector.n);
    d->crash_ns = CRASH_NS + (uint64_t)(draw(random) * EXPERIMENT_GOSSIP_NS);
    if (w)
        world_crash(w, d->victim, d->crash_ns);
    failed = run(w, CRASH_NS + DETECTION_NS, err);
    world_free(w);
    return failed;
}

int experiment_detection(struct experiment_times *times, const struct experiment_protocol *protocol,
                         uint32_t n, uint32_t trials, uint64_t seed, struct cw_err *err)
{
    struct detection d = {.least_s = INFINITY};
    uint64_t random = seed;

    for (uint32_t i = 0; i < trials; i++) {
        struct world_config config = config_of(protocol, n, routing_draw(&random));

        if (detect_once(&d, &config, &random, err) < 0)
            return err->code;
    }
    *times = (struct experiment_times){.mean_s = d.sum_s / d.found,
                                       .least_s = d.least_s,
                                       .most_s = d.most_s,
                                       .missed = (uint64_t)trials * (n - 1) - d.found,
                                       .wrong = d.wrong};
    return CW_OK;
}

/* --- bytes --- */

static void no_verdict(void *ctx, uint64_t at_ns, uint32_t by, uint32_t about,
                       enum detector_verdict verdict)
{
    (void)ctx;
    (void)at_ns;
    (void)by;
    (void)about;
    (void)verdict;
}

int experiment_bytes(double *bytes, const struct experiment_protocol *protocol, uint32_t n,
                     uint64_t jitter_ns, uint64_t seed, struct cw_err *err)
{
    struct world_watch watch = {.verdict = no_verdict};
    struct world_config config = config_of(protocol, n, seed);
    uint64_t lasts_ns = BYTES_ROUNDS * EXPERIMENT_GOSSIP_NS;
    struct world *w;
    uint64_t before;
    int failed;

    config.jitter_ns = jitter_ns;
    config.drift_ppm = 0; /* a message that once was late by it is late for minutes */
    w = world_new(&config, &watch);
    failed = run(w, SETTLED_NS, err);
    if (!failed) {
        before = world_counts(w).bytes;
        failed = run(w, SETTLED_NS + lasts_ns, err);
        *bytes = (double)(world_counts(w).bytes - before) / n / ((double)lasts_ns / SECOND_NS);
    }
    world_free(w);
    return failed;
}

struct mirror {
    uint32_t to;
    size_t size;
    uint8_t bytes[DETECTOR_MESSAGE_MAX];
};

static void mirror_send(void *ctx, uint32_t to, const uint8_t *bytes, size_t size)
{
    struct mirror *m = ctx;

    m->to = to;
    m->size = size;
    memcpy(m->bytes, bytes, size);
}

static void mirror_verdict(void *ctx, uint32_t process, enum detector_verdict verdict)
{
    (void)ctx;
    (void)process;
    (void)verdict;
}

/* One round: what it sends comes to it. Returns how many bytes. */
static size_t mirror_round(struct detector *d, struct mirror *m, uint32_t n, struct cw_err *err)
{
    uint64_t now_ns = detector_due_ns(d);
    struct mirror sent;

    m->size = 0;
    detector_advance(d, now_ns);
    sent = *m;
    detector_receive(d, n - sent.to, sent.bytes, sent.size, now_ns, err);
    return sent.size;
}

int experiment_bytes_in_step(double *bytes, const struct experiment_protocol *protocol, uint32_t n,
                             struct cw_err *err)
{
    struct detector_config config = config_of(protocol, n, 1).detector;
    struct mirror m = {0};
    struct detector_out out = {.ctx = &m, .send = mirror_send, .verdict = mirror_verdict};
    struct detector *d;
    uint64_t sum = 0;

    config.heartbeat = 1;
    d = detector_new(&config, &out, 0);
    if (!d)
        return cw_err_set(err, CW_ENOMEM, "no memory for a simulated process");
    for (uint32_t i = 0; i < 2 * BYTES_ROUNDS; i++) {
        size_t size = mirror_round(d, &m, n, err);

        sum += i < BYTES_ROUNDS ? 0 : size;
    }
    detector_free(d);
    *bytes = (double)sum / BYTES_ROUNDS / ((double)EXPERIMENT_GOSSIP_NS / SECOND_NS);
    return err->code;
}

/* --- false suspicions --- */

struct suspecting {
    struct world *world;
    struct experiment_suspicions *counts;
};

static void suspected(void *ctx, uint64_t at_ns, uint32_t by, uint32_t about,
                      enum detector_verdict verdict)
{
    struct suspecting *s = ctx;
    bool stopped = world_is_stopped(s->world, about, at_ns);

    (void)by;
    if (verdict == DETECTOR_FAILED)
        ++*(stopped ? &s->counts->stopped : &s->counts->running);
}

/* The next stop of each process that stops, within the step of time that begins now. */
static void plan_stops(struct world *w, const struct experiment_trouble *t, uint64_t now_ns,
                       uint64_t *random)
{
    for (uint32_t i = 0; t->stopping && i < TROUBLE_PROCESSES; i += t->stopping) {
        uint64_t from = now_ns + (uint64_t)(draw(random) * (double)(t->stop_every_ns - t->stop_ns));

        world_stop(w, i, from, from + t->stop_ns);
    }
}

static int suspect_once(struct suspecting *s, const struct world_config *config,
                        const struct experiment_trouble *trouble, uint64_t *random,
                        struct cw_err *err)
{
    struct world_watch watch = {.ctx = s, .verdict = suspected};
    uint64_t step_ns = trouble->stopping ? trouble->stop_every_ns : TROUBLE_NS;
    int failed;

    s->world = world_new(config, &watch);
    failed = run(s->world, SETTLED_NS, err);
    for (uint64_t at = SETTLED_NS; !failed && at < SETTLED_NS + TROUBLE_NS; at += step_ns) {
        plan_stops(s->world, trouble, at, random);
        failed = run(s->world, at + step_ns, err);
    }
    world_free(s->world);
    return failed;
}

int experiment_suspicions(struct experiment_suspicions *result,
                          const struct experiment_protocol *protocol,
                          const struct experiment_trouble *trouble, uint32_t trials, uint64_t seed,
                          struct cw_err *err)
{
    struct suspecting s = {.counts = result};
    uint64_t random = seed;

    *result = (struct experiment_suspicions){0};
    for (uint32_t i = 0; i < trials; i++) {
        struct world_config config = config_of(protocol, TROUBLE_PROCESSES, routing_draw(&random));

        config.jitter_ns = trouble->jitter_ns;
        config.loss_millionths = trouble->loss_millionths;
        if (suspect_once(&s, &config, trouble, &random, err) < 0)
            return err->code;
    }
    return CW_OK;
}
