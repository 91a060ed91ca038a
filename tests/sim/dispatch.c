#include "tests/sim/dispatch.h"
#include "common/setup.h"
#include "common/transport.h"
#include "dispatcher/servers/relays.h"
#include "dispatcher/wire/gate.h"
#include "tests/sim/copies.h"
#include "tests/sim/image.h"
#include "tests/sim/loop.h"
#include "tests/sim/opener.h"
#include "tests/sim/sim.h"
#include "tests/sim/slot.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define ALIVE_PERIOD_NS 5000000ull
#define ALIVE_TIMEOUT_NS 50000000ull
#define FAREWELL_STEPS 100000u /* for relays to be reached again */
#define CLOCK_NS 1000000ull    /* what is counted in milliseconds ends that much sooner */
#define SLOTS_SPARE 2
#define START_FAILS_ONE_IN 12
#define FAULT_EVENT_ONE_IN 8 /* first incarnations that kill themselves at an event */
#define FAULT_EVENT_MAX 60
#define ALTER_ACT_MAX 40
#define WAIT_MAX_NS 300000000ull /* for a relay to say where a log begins */
#define ASK_ONE_IN 200           /* steps while a relay is away */
#define ASKED 10000u             /* times, more than the room for what a relay is told */

static struct {
    struct job job;
    struct job_rank rank[SIM_RANKS_MAX];
    struct job_slot slot[SIM_RANKS_MAX + SLOTS_SPARE];
    struct job_order waiting[SIM_RANKS_MAX]; /* START of ranks that wait */
    struct loop *loop;
    struct relays *relays;
    struct gate gate[SIM_RELAYS_MAX]; /* of what its ranks say */
    bool closing;                     /* nothing that they say counts any more */
    bool stats_asked;
    uint64_t alive_ns; /* when signs of life were passed on last */
} d;

/* A session that the job needs was given up: right only where a connection was cut so long ago, or
 * a host was lost, whose acknowledgements a relay waits for before it answers who resumes. */
static void give_up(const char *text)
{
    uint64_t resume_ns = sim.plan.resume_ms * 1000000ull;

    if (!sim.given_up && sim.lost == 0 &&
        (sim.plan.resume_ms == 0 || sim.cut == 0 || sim.now_ns - sim.cut_ns + CLOCK_NS < resume_ns))
        sim_fail("a session is given up too soon: %s", text);
    sim.given_up = true;
}

static void lose_relay(const char *text)
{
    give_up(text);
    job_relay_lost(&d.job, text, sim.now_ns);
}

/* A log that had no room: right only where logs have little. */
static void lose_log(const char *text)
{
    if (!sim.plan.tight)
        sim_fail("a log is given up: %s", text);
    if (sim.plan.channel) { /* the job goes on, as long as nobody dies */
        sim.unlogged = true;
        return;
    }
    sim.given_up = true;
    job_relay_lost(&d.job, text, sim.now_ns);
}

/* --- what the relays say -------------------------------------------------------------------------
 */

static struct sim_process *find_process(uint32_t rank, uint32_t incarnation)
{
    struct sim_process *p = sim.processes;

    while (p && (p->rank != rank || p->incarnation != incarnation))
        p = p->next;
    return p;
}

static void diverged(const char *text)
{
    if (sim.plan.mode == SIM_DIVERGING)
        sim.detected = true;
    else
        sim_fail("a divergence is reported: %s", text);
    job_fail(&d.job, 1, sim.now_ns, "%s", text);
}

static void on_notice(const struct cw_notice_body *n)
{
    struct sim_process *p = find_process(n->rank, n->incarnation);

    sim_trace("dispatcher hears: code %u rank %u incarnation %u acts %llu event %llu %s", n->code,
              n->rank, n->incarnation, (unsigned long long)n->acts, (unsigned long long)n->event,
              n->text);
    if (!p) {
        sim_fail("a notice (%u) of rank %u, incarnation %u, which is not there: %s", n->code,
                 n->rank, n->incarnation, n->text);
    } else if (n->code == CW_NOTICE_RANK_UP) {
        record_up(p, n->acts, n->event);
        job_rank_up(&d.job, n->rank, n->incarnation, n->acts, n->event, sim.now_ns);
    } else if (n->code == CW_NOTICE_RANK_LIVE) {
        record_live(p);
        job_rank_live(&d.job, n->rank, n->incarnation);
    } else if (n->code == CW_NOTICE_RANK_LOST) {
        job_rank_lost(&d.job, n->rank, n->incarnation, n->acts, n->event, n->text, sim.now_ns);
    } else if (n->code == CW_NOTICE_UNLOGGED) {
        lose_log(n->text);
    } else if (n->code != CW_NOTICE_RANK_BYE) {
        sim_fail("notice %u of rank %u: %s", n->code, n->rank, n->text);
    }
}

static void hear_notice(void *ctx, uint32_t relay, const struct cw_notice_body *notice)
{
    (void)ctx;
    if (d.closing || sim.failed)
        return;
    if (notice->code == CW_NOTICE_LINKED && (sim.given_up || sim.killed || sim.moved))
        return; /* by a relay that comes back, again */
    if (notice->code == CW_NOTICE_UNLINKED)
        lose_relay(notice->text);
    else if (notice->code == CW_NOTICE_COVERED || notice->code == CW_NOTICE_UNCOVERED)
        copies_notice(relay, notice);
    else if (notice->code == CW_NOTICE_FATAL)
        sim_fail("relay %u: %s", relay, notice->text);
    else
        on_notice(notice);
}

static void hear_stats(void *ctx, const struct cw_stats *stats)
{
    (void)ctx;
    (void)stats;
    if (!d.stats_asked)
        sim_fail("a relay tells statistics that nobody asked for");
}

static void hear_grown(void *ctx, const struct cw_grown *grown)
{
    (void)ctx;
    sim_trace("dispatcher hears: the log of rank %u has %llu bytes", grown->rank,
              (unsigned long long)grown->bytes);
}

static void hear_trimmed(void *ctx, const struct cw_trim *trimmed)
{
    (void)ctx;
    if (!d.closing && !sim.failed)
        images_trimmed(trimmed);
}

static void hear_covered(void *ctx, uint32_t relay, uint64_t token)
{
    (void)ctx;
    gate_covered(&d.gate[relay], token);
}

static void hear_closed(void *ctx, uint32_t relay, const struct cw_copy_closed *closed)
{
    (void)ctx;
    if (!d.closing && !sim.failed)
        copies_closed(relay, closed);
}

static void hear_back(void *ctx, uint32_t relay)
{
    (void)ctx;
    copies_back(relay);
}

static void hear_ready(void *ctx)
{
    (void)ctx;
    copies_begin();
}

static void hear_failed(void *ctx, const struct cw_err *err)
{
    (void)ctx;
    sim_fail("the job cannot be opened: %s", err->text);
}

static void hear_resumed(void *ctx, uint32_t relay)
{
    (void)ctx;
    sim_trace("the session with relay %u goes on", relay);
    gate_again(&d.gate[relay]);
    images_relay_resumed(relay);
}

static void hear_lost(void *ctx, uint32_t relay, const struct cw_err *err)
{
    (void)ctx;
    sim_trace("the session with relay %u is lost: %s", relay, err->text);
    if (!d.closing)
        lose_relay(err->text);
}

static const struct relays_events relays_events = {.ready = hear_ready,
                                                   .failed = hear_failed,
                                                   .notice = hear_notice,
                                                   .stats = hear_stats,
                                                   .grown = hear_grown,
                                                   .trimmed = hear_trimmed,
                                                   .covered = hear_covered,
                                                   .closed = hear_closed,
                                                   .back = hear_back,
                                                   .resumed = hear_resumed,
                                                   .lost = hear_lost};

/* --- what the processes say ----------------------------------------------------------------------
 */

/* The relay gave the dispatcher up, and with it the job. */
static void end_without_relay(const char *text)
{
    give_up(text);
    job_fail(&d.job, 1, sim.now_ns, "%s", text);
}

static void end_without_log(const char *text)
{
    sim.given_up = true;
    job_fail(&d.job, 1, sim.now_ns, "%s", text);
}

static void tell_life(const struct sim_process *p, enum life_what what, const char *text)
{
    job_life(&d.job,
             &(struct life_event){.what = what,
                                  .host = LIFE_NO_HOST,
                                  .process = {.rank = p->rank, .incarnation = p->incarnation},
                                  .text = text},
             sim.now_ns);
}

static void keep_early(struct sim_rank *r, const struct cw_report *report)
{
    if (r->early)
        return;
    r->early_size = (uint32_t)report->early_size;
    r->early = malloc(r->early_size + 1);
    if (!r->early)
        abort();
    memcpy(r->early, report->early, r->early_size);
}

static void on_report(struct sim_process *p, const struct process_news *news)
{
    struct cw_report report;

    if (!cw_report_get(news->bytes, news->size, &report)) {
        sim_fail("rank %u reports something unreadable", p->rank);
    } else if (report.kind == CW_REPORT_EARLY) {
        keep_early(&sim.rank[p->rank], &report);
    } else if (report.kind == CW_REPORT_IMAGE_TAKEN || report.kind == CW_REPORT_IMAGE_ENDED) {
        sim_trace("%u.%u reports of image %u", p->rank, p->incarnation, report.image.number);
    } else if (report.kind != CW_REPORT_DRILL && report.kind != CW_REPORT_SETUP_READ) {
        sim_trace("%u.%u reports: %s", p->rank, p->incarnation, report.text);
        if (report.kind == CW_REPORT_RELAY_LOST)
            tell_life(p, LIFE_SUSPECT, report.text);
        else if (sim.plan.tight && sim.plan.channel &&
                 strstr(report.text, "cannot be started again"))
            end_without_log(report.text);
        else if (strstr(report.text, "no such job"))
            end_without_relay(report.text);
        else if (strstr(report.text, "does not repeat") || strstr(report.text, "diverged"))
            diverged(report.text);
        else if (!sim.given_up) /* a rank that waited for a relay is started then, without its log
                                 */
            sim_fail("rank %u, incarnation %u: %s", p->rank, p->incarnation, report.text);
    }
}

/* --- gates: what others can see waits until its relay's log is copied --- */

static struct gate *gate_of(uint32_t rank)
{
    return &d.gate[sim.plan.homes[rank]];
}

static void gate_wanted(void *ctx)
{
    (void)ctx;
}

static void open_gates(void)
{
    for (uint32_t i = 0; i < sim.plan.relays; i++)
        gate_open(&d.gate[i]);
}

static void ask_for_cover(void)
{
    uint64_t token;

    for (uint32_t i = 0; i < sim.plan.relays; i++)
        if (gate_next(&d.gate[i], &token))
            relays_cover(d.relays, i, token);
}

/* It has come, or has passed; else it waits on. */
static bool is_news(uint32_t rank, const struct process_wait *wait)
{
    return !wait->waits || gate_passes(gate_of(rank), wait->token);
}

static bool passes(uint32_t rank, struct process_wait *wait)
{
    if (!wait->waits)
        *wait = (struct process_wait){.waits = true, .token = gate_enter(gate_of(rank))};
    return gate_passes(gate_of(rank), wait->token);
}

static void drop_news(struct sim_process *p, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(p->news[i].bytes);
    p->news_count -= count;
    memmove(p->news, p->news + count, p->news_count * sizeof(*p->news));
}

static void rank_initialized(uint32_t rank)
{
    sim.rank[rank].initialized = true;
    job_rank_initialized(&d.job, rank, sim.now_ns);
}

static void take_news(struct sim_process *p)
{
    size_t count = 0;

    for (size_t i = 0; i < p->news_count; i++)
        count += passes(p->rank, &p->news[i].wait) && count == i;
    for (size_t i = 0; i < count; i++) {
        struct process_news *news = &p->news[i];

        if (news->kind == NEWS_REPORT)
            on_report(p, news);
        else if (news->kind == NEWS_LINE)
            record_line_seen(p, (const struct process_line *)(void *)news->bytes);
        else if (news->kind == NEWS_INITIALIZED)
            rank_initialized(p->rank);
        else
            job_rank_finalized(&d.job, p->rank);
    }
    drop_news(p, count);
}

static bool is_heard(const struct sim_process *p)
{
    return hosts_reach(p->host, SIM_HOST_DISPATCHER) && !p->lost;
}

static bool end_is_known(const struct sim_process *p)
{
    return p->ended && !p->reaped && !p->left && sim.now_ns >= p->news_ns && is_heard(p);
}

static void reap(struct sim_process *p)
{
    sim_trace("dispatcher hears that %u.%u ended (%#x)", p->rank, p->incarnation,
              (unsigned)p->status);
    p->reaped = true;
    relays_rank_end(d.relays, p->rank, p->incarnation);
    job_rank_ended(&d.job, p->rank, p->status, sim.now_ns);
}

static void pass_on_life(void)
{
    for (struct sim_process *p = sim.processes; p; p = p->next)
        if (!p->left && (!is_heard(p) || (!p->ended && sim.now_ns >= p->stopped_ns)))
            tell_life(p, LIFE_BACK, NULL);
    d.alive_ns = sim.now_ns;
}

/* --- orders --------------------------------------------------------------------------------------
 */

/* What it read before MPI_Init counts even now: it may have gone on after it told so. */
static void keep_last_words(struct sim_process *p)
{
    struct cw_report report;

    for (size_t i = 0; i < p->news_count; i++) {
        if (p->news[i].kind == NEWS_REPORT &&
            cw_report_get(p->news[i].bytes, p->news[i].size, &report) &&
            report.kind == CW_REPORT_EARLY)
            keep_early(&sim.rank[p->rank], &report);
    }
    drop_news(p, p->news_count);
}

static void let_go(const struct job_order *order)
{
    struct sim_process *p = find_process(order->process.rank, order->process.incarnation);

    sim_trace("rank %u is down: %s", order->process.rank, order->why);
    keep_last_words(p);
    p->left = true;
    if (p->lost)
        return;
    if (order->remains == JOB_REMAINS_KILL || sim.plan.channel)
        process_kill(p, W_EXITCODE(0, SIGKILL));
}

static void start_from_beginning(const struct job_order *order)
{
    uint64_t fault_event = 0;

    if (order->process.incarnation == 1 && sim.plan.fault_one_in && sim_one_in(FAULT_EVENT_ONE_IN))
        fault_event = 1 + sim_below(FAULT_EVENT_MAX);
    process_start(order->process.rank, order->process.incarnation, fault_event);
}

/* Whoever has the memory that it goes on in lives no longer than until now. */
static void start_from_image(const struct job_order *order, const struct sim_image *image)
{
    if (image->slot->process)
        process_kill(image->slot->process, W_EXITCODE(0, SIGKILL));
    process_go_on(image, order->process.incarnation);
    sim.restored++;
}

static void start_now(const struct job_order *order)
{
    const struct sim_image *image = images_choose(order->process.rank);

    sim.rank[order->process.rank].waits = false;
    sim.rank[order->process.rank].alter_act =
        sim_one_in(3) ? SIM_ALTER_LAST : sim_below(ALTER_ACT_MAX);
    if (image)
        start_from_image(order, image);
    else
        start_from_beginning(order);
    job_rank_started(&d.job, order->process.rank, sim.now_ns);
}

static bool may_start_now(uint32_t rank)
{
    return copies_has_place(sim.plan.homes[rank]) && (images_are_settled(rank) || sim.given_up);
}

/* Whether its relay has said where its log begins; it does, once nobody repeats it. */
static bool may_start(uint32_t rank)
{
    struct sim_rank *r = &sim.rank[rank];

    if (may_start_now(rank))
        return true;
    if (!copies_has_place(sim.plan.homes[rank]))
        return false;
    for (struct sim_process *p = sim.processes; p && sim.now_ns > r->waits_ns + WAIT_MAX_NS;
         p = p->next) {
        if (p->rank != rank || p->ended)
            continue;
        process_kill(p, W_EXITCODE(0, SIGKILL));
        relays_rank_end(d.relays, p->rank, p->incarnation);
    }
    return false;
}

/* Its relay will not be anywhere. */
static void drop_start(uint32_t rank)
{
    sim.rank[rank].waits = false;
    job_start_failed(&d.job, rank, 1, sim.now_ns, "the job ends");
}

static void start_those_that_wait(void)
{
    for (uint32_t rank = 0; rank < sim.plan.ranks && !sim.over; rank++)
        if (sim.rank[rank].waits && may_start(rank))
            start_now(&d.waiting[rank]);
        else if (sim.rank[rank].waits && d.job.ending)
            drop_start(rank);
}

static void start(const struct job_order *order)
{
    if (order->process.incarnation > 1 && ++sim.restarts > SIM_RESTARTS_MAX)
        sim_fail("rank %u is restarted for ever", order->process.rank);
    if (order->process.incarnation > 1 && !order->again && sim_one_in(START_FAILS_ONE_IN)) {
        job_start_failed(&d.job, order->process.rank, 1, sim.now_ns, "the slot does not do");
        return;
    }
    d.waiting[order->process.rank] = *order;
    sim.rank[order->process.rank].waits = true;
    sim.rank[order->process.rank].waits_ns = sim.now_ns;
    if (may_start_now(order->process.rank))
        start_now(order);
}

static void signal_all(void)
{
    for (struct sim_process *p = sim.processes; p; p = p->next)
        if (!p->left)
            process_kill(p, W_EXITCODE(0, d.job.signal_number));
}

static void carry_out(void)
{
    struct job_order order;
    enum job_action action = JOB_NOTHING;

    while (!sim.failed && !sim.over &&
           (action = job_next(&d.job, sim.now_ns, &order)) != JOB_NOTHING)
        switch (action) {
        case JOB_DOWN:
            let_go(&order);
            break;
        case JOB_START:
            start(&order);
            break;
        case JOB_SIGNAL:
            signal_all();
            break;
        default:
            sim.over = true;
        }
}

/* --- turns ---------------------------------------------------------------------------------------
 */

static uint64_t due_ns(void)
{
    uint64_t job_ns = job_deadline_ns(&d.job);
    uint64_t alive_ns = d.alive_ns + ALIVE_PERIOD_NS;
    uint64_t copies_ns = copies_deadline_ns();
    uint64_t first_ns = job_ns < alive_ns ? job_ns : alive_ns;

    return first_ns < copies_ns ? first_ns : copies_ns;
}

static bool has_news_of(const struct sim_process *p)
{
    if (!is_heard(p) || p->news_count == 0)
        return false;
    return is_news(p->rank, &p->news[0].wait) || !p->news[p->news_count - 1].wait.waits;
}

static bool has_news(void)
{
    for (uint32_t rank = 0; rank < sim.plan.ranks; rank++)
        if (sim.rank[rank].waits && may_start_now(rank))
            return true;
    for (const struct sim_process *p = sim.processes; p; p = p->next)
        if ((end_is_known(p) && is_news(p->rank, &p->end_wait)) || has_news_of(p))
            return true;
    return hosts_has_known();
}

/* Behind all that it has said. */
static bool end_passes(struct sim_process *p)
{
    bool is_new = !p->end_wait.waits;
    bool passes_now = passes(p->rank, &p->end_wait) && p->news_count == 0;

    if (is_new && !passes_now)
        tell_life(p, LIFE_ENDED, NULL);
    return passes_now;
}

static void hear_processes(void)
{
    for (struct sim_process *p = sim.processes; p && !sim.failed && !sim.over; p = p->next) {
        /* what it said before it ended counts first */
        if (!is_heard(p))
            continue;
        if (end_is_known(p)) {
            take_news(p);
            carry_out();
        }
        if (end_is_known(p) && end_passes(p))
            reap(p);
        else if (p->news_count > 0 && sim_one_in(2))
            take_news(p);
        carry_out();
    }
}

/* What waited of its ranks is not heard any more: the next ones say it again. */
static void lose_host(uint32_t host)
{
    sim_trace("dispatcher: host %u is lost", host);
    copies_host_lost(host);
    for (struct sim_process *p = sim.processes; p; p = p->next) {
        if (p->host != host || p->lost)
            continue;
        p->lost = true;
        drop_news(p, p->news_count);
        if (!p->left && !p->reaped)
            tell_life(p, LIFE_DEAD, "was on a host that is lost");
        sim.rank[p->rank].lost = true;
        images_host_lost(p->rank);
    }
}

static void hear_hosts(void)
{
    uint32_t host;

    while (!sim.failed && !sim.over && hosts_next_known(&host)) {
        lose_host(host);
        carry_out();
    }
}

/* Of two relays either may be the one that connects. */
static const char *const *choose_openers(void)
{
    static char text[SIM_RELAYS_MAX * SIM_RELAYS_MAX][CW_ADDRESS_MAX];
    static const char *links[SIM_RELAYS_MAX * SIM_RELAYS_MAX];
    uint32_t relays = sim.plan.relays;

    if (sim.plan.copies)
        return NULL; /* these are told where each other one is now */
    memset(links, 0, sizeof(links));
    for (uint32_t low = 0; low < relays; low++)
        for (uint32_t high = low + 1; high < relays; high++) {
            bool by_low = sim_one_in(2);
            uint32_t from = by_low ? low : high, to = by_low ? high : low;
            uint32_t at = from * relays + to;

            relay_address(text[at], sizeof(text[at]), to);
            links[at] = text[at];
        }
    return links;
}

void dispatch_open(void)
{
    static char text[SIM_RELAYS_MAX][CW_ADDRESS_MAX];
    static const char *addresses[SIM_RELAYS_MAX];
    struct job_config config = {.ranks = sim.plan.ranks,
                                .recover = true,
                                .restarts_max = SIM_RESTARTS_MAX,
                                .alive_timeout_ns = ALIVE_TIMEOUT_NS};
    struct relays_config relays = {.job_id = sim.job_id,
                                   .ranks = sim.plan.ranks,
                                   .relays = sim.plan.relays,
                                   .addresses = addresses,
                                   .key_file = "simulated",
                                   .homes = sim.plan.homes,
                                   .hello_flags = (sim.plan.unlogged ? 0 : CW_HELLO_LOG) |
                                                  (sim.plan.image_one_in ? CW_HELLO_IMAGES : 0) |
                                                  (sim.plan.channel ? CW_HELLO_CHANNEL : 0),
                                   .resume_ms = sim.plan.resume_ms,
                                   .events = &relays_events};
    struct cw_err err;

    memset(&d, 0, sizeof(d));
    for (uint32_t i = 0; i < sim.plan.ranks; i++)
        d.rank[i].program = "simulated";
    for (uint32_t i = 0; i < sim.plan.relays; i++) {
        relay_address(text[i], sizeof(text[i]), i);
        addresses[i] = text[i];
    }
    relays.links = choose_openers();
    if (sim.plan.copies) {
        relays.addresses = NULL;
        relays.key = sim.relay_key;
        relays.own = &copies_own;
        relays.copies = true;
    }
    job_init(&d.job, &config, d.rank);
    job_place(&d.job, d.slot, sim.plan.ranks + SLOTS_SPARE, NULL);
    relays.loop = d.loop = loop_new(&err);
    d.relays = relays_new(&relays, &err);
    copies_open(d.relays, &d.job);
    for (uint32_t i = 0; i < sim.plan.relays; i++)
        gate_init(&d.gate[i], gate_wanted, NULL);
    if (!sim.plan.copies)
        open_gates();
    if (!d.relays || relays_open(d.relays, &err) < 0)
        abort();
}

static bool any_suspended(void)
{
    for (uint32_t i = 0; i < sim.plan.relays; i++)
        if (relays_is_suspended(d.relays, i))
            return true;
    return false;
}

/* As somebody who looks at `causeway status` all the time, while relays are away; once in a run,
 * for the answers take long. */
static void ask_without_end(void)
{
    d.stats_asked = true;
    for (uint32_t i = 0; i < ASKED; i++)
        relays_ask_stats(d.relays);
}

bool dispatch_can(void)
{
    return loop_can(d.loop) || opener_can() ||
           (sim.ready && (sim.now_ns >= due_ns() || has_news()));
}

void dispatch_step(void)
{
    if (opener_can() && sim_one_in(2))
        opener_step();
    if (loop_can(d.loop) && sim_one_in(2))
        loop_step(d.loop);
    if (!sim.ready || sim.over)
        return;
    if (sim.now_ns >= d.alive_ns + ALIVE_PERIOD_NS)
        pass_on_life();
    if (!d.stats_asked && sim_one_in(ASK_ONE_IN) && any_suspended())
        ask_without_end();
    carry_out();
    hear_hosts();
    copies_step();
    hear_processes();
    start_those_that_wait();
    carry_out();
    if (d.job.ending)
        open_gates(); /* nobody is started again, to say anything else */
    ask_for_cover();
}

void dispatch_checkpoint(uint32_t rank, uint32_t number)
{
    relays_checkpoint(d.relays,
                      &(struct cw_checkpoint){.rank = rank, .number = number, .servers = 1});
}

void dispatch_trim(uint32_t rank, const struct cw_point *point)
{
    relays_trim(d.relays, rank, point);
}

uint64_t dispatch_deadline_ns(void)
{
    uint64_t loop_ns = loop_deadline_ns(d.loop);
    uint64_t job_ns = sim.ready ? due_ns() : UINT64_MAX;

    return loop_ns < job_ns ? loop_ns : job_ns;
}

void dispatch_cut(void)
{
    uint32_t rank = (uint32_t)sim_below(sim.plan.ranks);

    if (sim_one_in(4))
        relays_cut(d.relays, (uint32_t)sim_below(sim.plan.relays), CW_CUT_LINKS);
    else if (sim_one_in(4))
        relays_cut(d.relays, (uint32_t)sim_below(sim.plan.relays), CW_CUT_DISPATCHER);
    else
        relays_cut(d.relays, sim.plan.homes[rank], rank);
}

void dispatch_close(void)
{
    uint32_t until = sim.steps + FAREWELL_STEPS;
    bool more = true;

    sim.plan.cut_one_in = 0;
    while (!sim.failed && any_suspended() && sim.steps < until)
        sim_step();
    while (!sim.failed && more) {
        more = cores_drain();
        if (loop_can(d.loop)) {
            loop_step(d.loop);
            more = true;
        }
    }
    if (!sim.failed && !sim.detected && !sim.given_up && (d.job.exit_code || d.job.reason[0]))
        sim_fail("the job ends with code %d: %s", d.job.exit_code, d.job.reason);
}

void dispatch_fini(void)
{
    d.closing = true;
    relays_free(d.relays);
    loop_free(d.loop);
}
