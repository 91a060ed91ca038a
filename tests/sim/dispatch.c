#include "tests/sim/dispatch.h"
#include "common/cred.h"
#include "common/setup.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define PIPE_SIZE (64u << 10)
#define READ_MAX 4096u
#define ALIVE_PERIOD_NS 5000000ull
#define ALIVE_TIMEOUT_NS 50000000ull
#define SLOTS_SPARE 2
#define START_FAILS_ONE_IN 12
#define FAULT_EVENT_ONE_IN 8 /* first incarnations that kill themselves at an event */
#define FAULT_EVENT_MAX 60
#define ALTER_ACT_MAX 40

static struct {
    struct job job;
    struct job_rank rank[SIM_RANKS_MAX];
    bool slot_used[SIM_RANKS_MAX + SLOTS_SPARE];
    struct sim_link *link;
    struct codec codec;
    uint64_t alive_ns; /* when signs of life were passed on last */
} d;

/* --- the connection to the relay -----------------------------------------------------------------
 */

static bool next_frame(struct codec_frame *frame)
{
    struct cw_err err;
    int n = codec_next(&d.codec, frame, &err);

    if (n < 0)
        sim_fail("the relay tells the dispatcher: %s", err.text);
    return n > 0;
}

static void read_some(void)
{
    uint8_t bytes[READ_MAX];
    ssize_t n = link_recv(d.link, bytes, sizeof(bytes));

    if (n > 0)
        codec_receive(&d.codec, bytes, (size_t)n);
    else if (n == 0)
        sim_fail("the relay closes the dispatcher's connection");
}

/* Nothing else happens meanwhile. */
static struct codec_frame await_frame(void)
{
    struct codec_frame frame;

    while (!next_frame(&frame) && !sim.failed) {
        if (link_relay_can(d.link))
            link_relay_step(d.link);
        if (link_readable(d.link))
            read_some();
    }
    return frame;
}

static void flush(void)
{
    while (codec_left(&d.codec.out) > 0) {
        ssize_t n = link_send(d.link, d.codec.out.at + d.codec.out.start, codec_left(&d.codec.out));

        if (n > 0)
            codec_take(&d.codec.out, (size_t)n);
        else if (link_relay_can(d.link))
            link_relay_step(d.link);
    }
}

void dispatch_open(void)
{
    struct cw_hello hello = {
        .role = CW_ROLE_DISPATCHER, .rank = sim.plan.ranks, .flags = CW_HELLO_LOG};
    struct job_config config = {.ranks = sim.plan.ranks,
                                .slots = sim.plan.ranks + SLOTS_SPARE,
                                .recover = true,
                                .restarts_max = SIM_RESTARTS_MAX,
                                .alive_timeout_ns = ALIVE_TIMEOUT_NS};
    struct cw_challenge challenge;
    struct codec_frame frame;
    uint8_t key[CW_KEY_SIZE];

    memset(&d, 0, sizeof(d));
    for (uint32_t i = 0; i < sim.plan.ranks; i++)
        d.rank[i].program = "simulated";
    job_init(&d.job, &config, d.rank, d.slot_used);
    d.link = link_new("dispatcher", PIPE_SIZE);
    frame = await_frame();
    cw_challenge_get(frame.body, &challenge);
    memcpy(hello.job, sim.job_id, sizeof(hello.job));
    cw_cred_job_key(key, sim.relay_key, sim.job_id);
    codec_hello(&d.codec, &hello, key, &challenge);
    flush();
    frame = await_frame();
    if (frame.header.type != CW_FRAME_WELCOME)
        sim_fail("the relay does not let the dispatcher in");
}

/* --- what the relay says -------------------------------------------------------------------------
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
    if (n->code == CW_NOTICE_DIVERGED) {
        diverged(n->text);
    } else if (!p) {
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
    } else if (n->code != CW_NOTICE_RANK_BYE) {
        sim_fail("notice %u of rank %u: %s", n->code, n->rank, n->text);
    }
}

static void take_notices(void)
{
    struct codec_frame frame;
    struct cw_notice_body notice;

    while (!sim.failed && next_frame(&frame))
        if (frame.header.type == CW_FRAME_NOTICE &&
            cw_notice_get(frame.body, frame.header.length, &notice))
            on_notice(&notice);
        else
            sim_fail("the relay tells the dispatcher a %s", cw_frame_name(frame.header.type));
}

/* --- what the processes say ----------------------------------------------------------------------
 */

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
    } else if (report.kind != CW_REPORT_DRILL) {
        sim_trace("%u.%u reports: %s", p->rank, p->incarnation, report.text);
        if (report.kind == CW_REPORT_RELAY_LOST)
            job_rank_cut(&d.job, p->rank, report.text, sim.now_ns);
        else if (strstr(report.text, "does not repeat") || strstr(report.text, "diverged"))
            diverged(report.text);
        else
            sim_fail("rank %u, incarnation %u: %s", p->rank, p->incarnation, report.text);
    }
}

static void take_news(struct sim_process *p)
{
    for (size_t i = 0; i < p->news_count; i++) {
        struct process_news *news = &p->news[i];

        if (news->kind == NEWS_REPORT)
            on_report(p, news);
        else if (news->kind == NEWS_INITIALIZED)
            job_rank_initialized(&d.job, p->rank, sim.now_ns);
        else
            job_rank_finalized(&d.job, p->rank);
        free(news->bytes);
    }
    p->news_count = 0;
}

static bool end_is_known(const struct sim_process *p)
{
    return p->ended && !p->reaped && !p->left && sim.now_ns >= p->news_ns;
}

static void reap(struct sim_process *p)
{
    sim_trace("dispatcher hears that %u.%u ended (%#x)", p->rank, p->incarnation,
              (unsigned)p->status);
    p->reaped = true;
    job_rank_ended(&d.job, p->rank, p->status, sim.now_ns);
}

static void pass_on_life(void)
{
    for (struct sim_process *p = sim.processes; p; p = p->next)
        if (!p->left && !p->ended && sim.now_ns >= p->stopped_ns)
            job_rank_alive(&d.job, p->rank, p->incarnation, sim.now_ns);
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
        free(p->news[i].bytes);
    }
    p->news_count = 0;
}

static void let_go(const struct job_order *order)
{
    struct sim_process *p = find_process(order->rank, order->incarnation);

    sim_trace("rank %u is down: %s", order->rank, order->why);
    keep_last_words(p);
    p->left = true;
    if (order->remains == JOB_REMAINS_KILL)
        process_kill(p, W_EXITCODE(0, SIGKILL));
}

static void start(const struct job_order *order)
{
    uint64_t fault_event = 0;

    if (order->incarnation > 1 && ++sim.restarts > SIM_RESTARTS_MAX)
        sim_fail("rank %u is restarted for ever", order->rank);
    if (order->incarnation > 1 && !order->again && sim_one_in(START_FAILS_ONE_IN)) {
        job_start_failed(&d.job, order->rank, 1, sim.now_ns, "the slot does not do");
        return;
    }
    if (order->incarnation == 1 && sim.plan.fault_one_in && sim_one_in(FAULT_EVENT_ONE_IN))
        fault_event = 1 + sim_below(FAULT_EVENT_MAX);
    sim.rank[order->rank].alter_act = sim_one_in(3) ? SIM_ALTER_LAST : sim_below(ALTER_ACT_MAX);
    process_start(order->rank, order->incarnation, fault_event);
    job_rank_started(&d.job, order->rank, sim.now_ns);
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

uint64_t dispatch_deadline_ns(void)
{
    uint64_t job_ns = job_deadline_ns(&d.job);
    uint64_t alive_ns = d.alive_ns + ALIVE_PERIOD_NS;

    return job_ns < alive_ns ? job_ns : alive_ns;
}

bool dispatch_can(void)
{
    if (link_readable(d.link) || sim.now_ns >= dispatch_deadline_ns())
        return true;
    for (const struct sim_process *p = sim.processes; p; p = p->next)
        if (end_is_known(p) || p->news_count > 0)
            return true;
    return false;
}

void dispatch_step(void)
{
    if (sim.now_ns >= d.alive_ns + ALIVE_PERIOD_NS)
        pass_on_life();
    if (link_readable(d.link) && sim_one_in(2)) {
        read_some();
        take_notices();
        carry_out();
    }
    for (struct sim_process *p = sim.processes; p && !sim.failed && !sim.over; p = p->next) {
        /* what it said before it ended counts first */
        if (end_is_known(p)) {
            take_news(p);
            carry_out();
        }
        if (end_is_known(p))
            reap(p);
        else if (p->news_count > 0 && sim_one_in(2))
            take_news(p);
        carry_out();
    }
    carry_out();
}

void dispatch_close(void)
{
    while (!sim.failed && (link_relay_can(d.link) || link_readable(d.link))) {
        if (link_relay_can(d.link))
            link_relay_step(d.link);
        if (link_readable(d.link))
            read_some();
        take_notices();
    }
    if (!sim.failed && !sim.detected && (d.job.exit_code || d.job.reason[0]))
        sim_fail("the job ends with code %d: %s", d.job.exit_code, d.job.reason);
    codec_fini(&d.codec);
}
