#include "tests/sim/sim.h"
#include "common/channel.h"
#include "tests/sim/datagrams.h"
#include "tests/sim/dispatch.h"
#include "tests/sim/image.h"
#include "tests/sim/slot.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_NS 400u
#define CANDIDATES_MAX 256
#define DISK_PATIENCE 8
#define OPEN_MAX                                                                                   \
    24000u             /* bytes of the records and the payload of one log that are not full yet    \
                        */
#define LONG_ONE_IN 50 /* seeds whose programs are long */
#define LONG_STEPS 900
#define NO_LOG_ONE_IN 10 /* seeds with channel memory */
#define COPIES_PIPE_MIN 1000
#define RINGS_HOLD_BYTES 65536
#define HOSTS_ONE_IN 4 /* seeds */
#define LONG_MESSAGE_MAX 3000
#define LARGE_MAX 600000
#define CHANNEL_LOG_BLOCKS 16384ull /* address space, not memory */

struct sim sim;

uint64_t sim_mix(uint64_t a, uint64_t b)
{
    uint64_t v = a + 0x9e3779b97f4a7c15ull * (b + 1);

    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ v >> 27) * 0x94d049bb133111ebull;
    return (v ^ v >> 31) | 1; /* xorshift cannot begin at 0 */
}

void sim_fail(const char *fmt, ...)
{
    va_list ap;

    if (sim.failed)
        return;
    sim.failed = true;
    va_start(ap, fmt);
    vsnprintf(sim.why, sizeof(sim.why), fmt, ap);
    va_end(ap);
    sim_trace("FAILED: %s", sim.why);
}

void sim_tell(const char *fmt, ...)
{
    va_list ap;

    printf("# [%6u %9.3f ms] ", sim.steps, (double)sim.now_ns / 1e6);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

/* --- plans ---------------------------------------------------------------------------------------
 */

static uint32_t pick(uint64_t *random, const uint32_t *of, size_t count)
{
    return of[codec_random_below(random, count)];
}
#define PICK(random, ...)                                                                          \
    pick(random, (const uint32_t[]){__VA_ARGS__},                                                  \
         sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Which ranks are at home where, and which of them take rings. */
static void choose_relays(struct sim_plan *plan, uint64_t *random)
{
    uint32_t rings = PICK(random, 0, 1, 2); /* of so many in two */

    plan->relays = PICK(random, 1, 1, 1, 2, 2, 3, SIM_RELAYS_MAX);
    for (uint32_t i = 0; i < plan->ranks; i++) {
        plan->homes[i] = (uint8_t)codec_random_below(random, plan->relays);
        plan->rings[i] = codec_random_below(random, 2) < rings;
    }
}

/* Where what is logged is kept: there is room for what must stay in memory. */
static void choose_log(struct sim_plan *plan, uint64_t *random)
{
    plan->disk = codec_random_below(random, 3) > 0;
    plan->segment_bytes =
        plan->disk ? PICK(random, 4096, 16384, RELAY_BLOCK_BYTES) : RELAY_BLOCK_BYTES;
    plan->log_memory = plan->disk
                           ? plan->ranks * (OPEN_MAX + PICK(random, 4, 8, 40) * plan->segment_bytes)
                           : SIM_MEMORY;
}

/* Whether relays are killed: their sessions are resumed. */
static void choose_kills(struct sim_plan *plan, uint64_t *random)
{
    uint32_t one_in = PICK(random, 0, 100, 1000, 5000);
    uint32_t max = PICK(random, 1, 3, 10);

    if (plan->resume_ms == 0)
        return;
    plan->kill_one_in = one_in;
    plan->kills_max = max;
}

/* Whether they keep a journal. */
static void choose_safety(struct sim_plan *plan, uint64_t *random)
{
    plan->sync = plan->kill_one_in > 0 && codec_random_below(random, 2) == 0;
    plan->power = plan->sync && codec_random_below(random, 3) > 0;
    for (uint32_t i = 0; plan->power && i < plan->ranks; i++)
        plan->rings[i] = false;
}

/* What is logged in channel memory has room there, or in a file behind it; or little. */
static void choose_channel_log(struct sim_plan *plan, uint64_t *random, bool little)
{
    uint32_t much = CHANNEL_LOG_BLOCKS;
    uint32_t in_file = little ? PICK(random, 0, 0, 1, 8, 40) : PICK(random, 0, much, much);
    uint32_t on_disk = little ? PICK(random, 0, in_file / 2, in_file) : in_file;
    uint32_t in_memory = little || in_file ? PICK(random, 1, 4, 16) : much;

    plan->channel_log = (uint64_t)in_memory * CW_CHANNEL_BLOCK_MIN;
    plan->channel_file = (uint64_t)in_file * CW_CHANNEL_BLOCK_MIN;
    plan->channel_disk = (uint64_t)on_disk * CW_CHANNEL_BLOCK_MIN;
    plan->provide_bytes = PICK(random, 1, 1, 3, 16) * CW_CHANNEL_BLOCK_MIN;
}

/* Nothing is logged: what was read from channel memory goes, and writers of large messages wait for
 * that. */
static void choose_no_log(struct sim_plan *plan)
{
    plan->unlogged = true;
    plan->fault_one_in = plan->cut_one_in = plan->kill_one_in = plan->image_one_in = 0;
    plan->sync = plan->power = plan->tight = false;
    plan->channel_log = plan->channel_file = plan->channel_disk = 0;
    plan->message_max = LARGE_MAX;
    plan->pipe_size = plan->chunk_max = plan->ring_bytes = 65536;
    plan->kept_max = 2097152;
}

/* Whether the ranks have channel memory, and with what room for what is logged there. */
static void choose_channel(struct sim_plan *plan, uint64_t *random, bool always)
{
    uint32_t hosts;
    bool little;

    plan->channel = PICK(random, 0, 0, 1) || always;
    little = plan->channel && plan->image_one_in && PICK(random, 0, 1);
    plan->tight |= little; /* and where those of the relays are */
    hosts = PICK(random, 1, 1, 2, 3);
    for (uint32_t i = 0; i < plan->ranks; i++)
        plan->hosts[i] = (uint8_t)codec_random_below(random, hosts);
    choose_channel_log(plan, random, little);
    if (plan->channel && codec_random_below(random, NO_LOG_ONE_IN) == 0)
        choose_no_log(plan);
}

/* Whether hosts are lost, each with the ranks at home at its relay: these go on by what the relay
 * has of their decisions. Not from images. */
static void choose_losses(struct sim_plan *plan, uint64_t *random)
{
    bool may = plan->channel && plan->kill_one_in && !plan->tight && plan->mode != SIM_DIVERGING;
    uint32_t one_in = PICK(random, 0, 0, 100, 300, 1000);

    if (!may || !one_in)
        return;
    plan->loses_hosts = plan->sync = plan->power = true;
    plan->kill_one_in = one_in;
    plan->image_one_in = 0;
    for (uint32_t i = 0; i < plan->ranks; i++) {
        plan->hosts[i] = plan->homes[i];
        plan->rings[i] = false;
    }
}

/* What is not acted on stays there, up to a whole READINGS. */
static void make_rings_hold(struct sim_plan *plan)
{
    if (plan->ring_bytes < RINGS_HOLD_BYTES)
        plan->ring_bytes = RINGS_HOLD_BYTES;
    if (plan->kept_max < 2 * plan->ring_bytes)
        plan->kept_max = 2 * plan->ring_bytes;
}

/* Whether the relays are on hosts that may be lost: with the ranks of each, and where its log is
 * copied to another. */
static void choose_hosts(struct sim_plan *plan, uint64_t *random)
{
    if (plan->relays == 1) {
        plan->relays = 2 + PICK(random, 0, 1, 2);
        for (uint32_t i = 0; i < plan->ranks; i++)
            plan->homes[i] = (uint8_t)codec_random_below(random, plan->relays);
    }
    if (plan->resume_ms == 0)
        plan->resume_ms = 3000;
    plan->copies = PICK(random, 1, 1, 2);
    plan->lose_one_in = PICK(random, 300, 1000, 3000);
    plan->losses_max = PICK(random, 1, 1, 2, 3);
    if (plan->tight)
        plan->log_memory = SIM_MEMORY;
    plan->sync = plan->power = plan->tight = false;
    if (plan->pipe_size < COPIES_PIPE_MIN) /* all that is logged goes through it, too */
        plan->pipe_size = COPIES_PIPE_MIN;
    if (plan->chunk_max < COPIES_PIPE_MIN)
        plan->chunk_max = COPIES_PIPE_MIN;
    make_rings_hold(plan);
}

struct sim_plan sim_plan_of(uint64_t seed, const struct sim_always *always)
{
    uint64_t r = sim_mix(seed, 0);
    struct sim_plan plan = {.seed = seed,
                            .program_seed = sim_mix(seed, 1),
                            .mode = PICK(&r, SIM_RACY, SIM_RACY, SIM_RACY, SIM_RACY, SIM_ORDERED,
                                         SIM_ORDERED, SIM_DIVERGING),
                            .ranks = PICK(&r, 2, 2, 3, 3, 4, 5, SIM_RANKS_MAX),
                            .program_steps = PICK(&r, 15, 30, 50, 80),
                            .pipe_size = PICK(&r, 100, 1000, 8192, 65536, 65536, 65536),
                            .yield_one_in = PICK(&r, 1, 1, 2, 8),
                            .spin_ns = PICK(&r, 0, 0, 3000),
                            .fault_one_in = PICK(&r, 0, 100, 300, 1000, 3000),
                            .faults_max = PICK(&r, 1, 2, 4, 12),
                            .news_delay_ns = PICK(&r, 1, 20000, 1000000, 20000000),
                            .cuts = PICK(&r, 0, 1),
                            .resume_ms = PICK(&r, 0, 0, 3000, 10000),
                            .outages = PICK(&r, 0, 0, 0, 1)};

    size_t narrow;

    if (plan.resume_ms > 0) {
        plan.cut_one_in = PICK(&r, 0, 50, 200, 1000);
        plan.cuts_max = PICK(&r, 1, 3, 10, 40);
    }
    choose_kills(&plan, &r);
    plan.ring_bytes = PICK(&r, 256, 4096, 16384, 65536, 65536);
    plan.kept_max = PICK(&r, 4096, 65536, 2097152);
    if (plan.kill_one_in)
        make_rings_hold(&plan);
    /* what comes back from a ring has room */
    if (plan.kept_max < 2 * plan.ring_bytes)
        plan.kept_max = 2 * plan.ring_bytes;
    choose_relays(&plan, &r);
    choose_log(&plan, &r);
    choose_safety(&plan, &r);
    /* a large message through a narrow pipe would take all the steps there are */
    narrow = plan.pipe_size < plan.ring_bytes ? plan.pipe_size : plan.ring_bytes;
    plan.message_max = narrow < 4096 ? 1500 : narrow < 65536 ? 20000 : LARGE_MAX;
    plan.chunk_max = narrow < 4096 ? PICK(&r, 20, 200, 70000) : PICK(&r, 5000, 400000);
    if (codec_random_below(&r, LONG_ONE_IN) == 0) {
        plan.log_memory += plan.ranks * 40 * (RELAY_BLOCK_BYTES - plan.segment_bytes);
        plan.segment_bytes = RELAY_BLOCK_BYTES; /* each has a block */
        plan.program_steps = LONG_STEPS;
        plan.message_max = LONG_MESSAGE_MAX;
        plan.pipe_size = plan.chunk_max = plan.ring_bytes = 65536;
        plan.kept_max = 2097152;
    }
    plan.ways = PICK(&r, 1, 2, SIM_WAYS_MAX);
    plan.way_one_in = PICK(&r, 0, 1, 4);
    plan.image_one_in = PICK(&r, 0, 0, 30, 100, 100, 400);
    plan.images_max = PICK(&r, 10, 100, 400);
    plan.replay_ahead = PICK(&r, 100, 4096, 262144, 262144);
    plan.tight = plan.image_one_in > 0 && !plan.disk && plan.kill_one_in == 0 && PICK(&r, 0, 1);
    if (plan.tight)
        plan.log_memory = plan.ranks * PICK(&r, 2, 4, 8) * RELAY_BLOCK_BYTES;
    if (always->hosts || (!always->channel && codec_random_below(&r, HOSTS_ONE_IN) == 0))
        choose_hosts(&plan, &r);
    else
        choose_channel(&plan, &r, always->channel);
    plan.offer_min = PICK(&r, 1, 3000, 65536);
    plan.far_max = PICK(&r, 100, 2000, 1000000);
    choose_losses(&plan, &r);
    return plan;
}

uint32_t sim_ranks_beside(uint32_t rank, uint16_t *ranks)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sim.plan.ranks; i++) {
        if (sim.plan.hosts[i] != sim.plan.hosts[rank])
            continue;
        if (ranks)
            ranks[count] = (uint16_t)i;
        count++;
    }
    return count;
}

/* --- turns ---------------------------------------------------------------------------------------
 */

/* Who may do something now: one of them, or the dispatcher. */
struct turn {
    struct sim_process *process;
    struct sim_conn *conn;
    struct sim_thread *thread;
    struct sim_relay *disk; /* of this relay */
    uint32_t patience;
};

static size_t list_turns(struct turn *turns)
{
    size_t count = 0;

    for (struct sim_process *p = sim.processes; p; p = p->next)
        if (process_can_run(p) && count < CANDIDATES_MAX)
            turns[count++] = (struct turn){.process = p, .patience = p->task.patience};
    for (each_core(relay)) {
        for (struct sim_conn *c = relay->conns; c; c = c->next)
            if (conn_can(c) && count < CANDIDATES_MAX)
                turns[count++] = (struct turn){.conn = c, .patience = c->patience};
        if (relay->disk.count > 0 && count < CANDIDATES_MAX)
            turns[count++] = (struct turn){.disk = relay, .patience = DISK_PATIENCE};
    }
    for (struct sim_thread *t = sim.threads; t; t = t->next)
        if (thread_can(t) && count < CANDIDATES_MAX)
            turns[count++] = (struct turn){.thread = t, .patience = t->task.patience};
    if (dispatch_can() && count < CANDIDATES_MAX)
        turns[count++] = (struct turn){.patience = 1};
    return count;
}

static void take_turn(const struct turn *turn)
{
    if (turn->process)
        process_resume(turn->process);
    else if (turn->conn)
        conn_step(turn->conn);
    else if (turn->thread)
        thread_step(turn->thread);
    else if (turn->disk)
        core_disk_step(turn->disk);
    else
        dispatch_step();
}

/* Nobody can do anything until something is due. */
static void pass_time(void)
{
    uint64_t next = dispatch_deadline_ns();
    uint64_t at;

    for (const struct sim_process *p = sim.processes; p; p = p->next)
        if ((at = process_deadline_ns(p)) < next)
            next = at;
    if ((at = cores_deadline_ns()) < next)
        next = at;
    if ((at = threads_deadline_ns()) < next)
        next = at;
    if ((at = connections_deadline_ns()) < next)
        next = at;
    if ((at = images_deadline_ns()) < next)
        next = at;
    if ((at = hosts_deadline_ns()) < next)
        next = at;
    cores_check_sleep();
    processes_check_sleep();
    sim.now_ns = next > sim.now_ns ? next : sim.now_ns + STEP_NS;
}

void sim_step(void)
{
    struct turn turns[CANDIDATES_MAX];
    size_t count;
    size_t at;

    sim.steps++;
    sim.now_ns += STEP_NS;
    faults_step();
    hosts_step();
    images_step();
    cores_tick();
    count = list_turns(turns);
    if (count == 0) {
        pass_time();
        return;
    }
    do
        at = sim_below(count);
    while (count > 1 && !sim_one_in(turns[at].patience));
    take_turn(&turns[at]);
}

/* --- a run ---------------------------------------------------------------------------------------
 */

static struct sim_channel channel_new(const struct sim_plan *plan, uint32_t ranks)
{
    size_t bytes = cw_channel_bytes(ranks, plan->channel_log);
    struct sim_memory *memory = memory_new_zero(bytes + plan->channel_file);
    struct sim_channel channel = {.file_fd = -1};

    if (plan->channel_file)
        channel.file_fd = descriptor_new(
            (struct descriptor){.memory = memory_file_in(memory, plan->channel_file)});
    channel.fd = descriptor_new((struct descriptor){.memory = memory});
    return channel;
}

static void open_channels(const struct sim_plan *plan)
{
    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        struct sim_channel *channel = &sim.channel[plan->hosts[rank]];

        if (channel->fd == 0)
            *channel = channel_new(plan, sim_ranks_beside(rank, NULL));
    }
}

static void begin(const struct sim_plan *plan, bool tracing)
{
    sim = (struct sim){
        .plan = *plan, .random = sim_mix(plan->seed, 2), .now_ns = 1000000000, .tracing = tracing};
    memset(sim.relay_key, 7, sizeof(sim.relay_key));
    memcpy(sim.job_id, "a simulated job!", CW_ID_SIZE);
    sim.unlogged = plan->unlogged;
    sim_ring_bytes = plan->ring_bytes;
    sim_kept_max = plan->kept_max;
    sim_segment_bytes = plan->segment_bytes;
    sim_replay_ahead = plan->replay_ahead;
    sim_provide_bytes = plan->provide_bytes;
    sim_offer_min = plan->offer_min;
    sim_far_max = plan->far_max;
    sim_trace(
        "seed %llu: mode %u, %u ranks of %u steps at %u relays, pipes of %zu bytes, rings of "
        "%zu%s, a fault in %u steps, a cut in %u, resumed for %u ms, logs of %zu bytes a segment, "
        "%llu in memory%s, a relay killed in %u steps%s, %u copies, a host lost in %u, an image in "
        "%u%s%s%s",
        (unsigned long long)plan->seed, plan->mode, plan->ranks, plan->program_steps, plan->relays,
        plan->pipe_size, plan->ring_bytes, plan->cuts ? ", cut-through" : "", plan->fault_one_in,
        plan->cut_one_in, plan->resume_ms, plan->segment_bytes,
        (unsigned long long)plan->log_memory,
        plan->disk    ? ", the rest on disk"
        : plan->tight ? ", no more"
                      : "",
        plan->kill_one_in,
        plan->loses_hosts ? ", or its host lost"
        : plan->power     ? ", or its power lost"
        : plan->sync      ? ", with a journal"
                          : "",
        plan->copies, plan->lose_one_in, plan->image_one_in,
        plan->channel ? ", channel memory" : "",
        plan->channel && plan->channel_file ? " and a file" : "",
        plan->unlogged ? " without a log" : "");
    if (plan->channel)
        open_channels(plan);
    cores_open();
    dispatch_open();
}

static void end(void)
{
    dispatch_fini();
    cores_close();
    threads_fini();
    processes_fini();
    images_end();
    slots_end_run();
    connections_fini();
    descriptors_fini();
    datagrams_fini();
    for (uint32_t i = 0; i < SIM_RANKS_MAX; i++) {
        free(sim.rank[i].early);
        free(sim.rank[i].lines);
        record_fini(&sim.rank[i].known);
    }
}

void sim_run(const struct sim_plan *plan, bool tracing, struct sim_result *result)
{
    begin(plan, tracing);
    while (!sim.over && !sim.failed && sim.steps < SIM_STEPS_MAX)
        sim_step();
    if (!sim.over)
        sim_fail("no end after %u steps", sim.steps);
    dispatch_close();
    if (!sim.failed && !sim.detected && !sim.given_up)
        record_check_all();
    *result = (struct sim_result){.failed = sim.failed,
                                  .detected = sim.detected,
                                  .given_up = sim.given_up,
                                  .steps = sim.steps,
                                  .faults = sim.faults,
                                  .restarts = sim.restarts,
                                  .cuts = sim.cut,
                                  .rerouted = sim.rerouted,
                                  .kills = sim.killed,
                                  .losses = sim.lost,
                                  .moves = sim.moved,
                                  .images = sim.taken,
                                  .trims = sim.trimmed,
                                  .restored = sim.restored};
    memcpy(result->why, sim.why, sizeof(result->why));
    for (uint32_t i = 0; i < plan->ranks; i++)
        if (sim.rank[i].process)
            result->hashes[i] = sim.rank[i].process->record.hash;
    end();
}
