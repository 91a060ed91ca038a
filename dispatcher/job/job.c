#include "dispatcher/job/job.h"
#include "common/setup.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void job_init(struct job *job, const struct job_config *config, struct job_rank *rank)
{
    *job = (struct job){
        .config = *config, .rank = rank, .down = config->ranks, .due_later_ns = UINT64_MAX};
}

void job_place(struct job *job, struct job_slot *slot, uint32_t slots, const uint32_t *rank_slot)
{
    job->slots = (struct job_slots){slot, slots, job->config.any_site};
    for (uint32_t i = 0; i < job->config.ranks; i++) {
        struct job_rank *r = &job->rank[i];

        r->slot = rank_slot ? rank_slot[i] : i;
        assert(r->slot < slots);
        slot[r->slot].ranks++;
        r->search = (struct slot_search){
            .site = slot[r->slot].site, .cut_site = JOB_NO_SITE, .bound = JOB_ANY_HOST};
    }
}

/* --- what all the parts need --- */

bool job_rank_runs(const struct job *job, uint32_t rank)
{
    return job->rank[rank].state != JOB_RANK_DOWN && job->rank[rank].state != JOB_RANK_ENDED;
}

bool job_rank_restartable(const struct job *job, uint32_t rank)
{
    return job->config.recover && !job->ending && !job->rank[rank].unlogged;
}

bool job_rank_repeats(const struct job *job, uint32_t rank)
{
    return job_rank_runs(job, rank) && job->rank[rank].incarnation > 1 && !job->rank[rank].live;
}

static void set_state(struct job *job, uint32_t rank, enum job_rank_state state)
{
    bool ran = job_rank_runs(job, rank);

    job->in_mpi -= job->rank[rank].state == JOB_RANK_MPI;
    job->down -= job->rank[rank].state == JOB_RANK_DOWN;
    job->rank[rank].state = state;
    job->in_mpi += state == JOB_RANK_MPI;
    job->down += state == JOB_RANK_DOWN;
    job->running += (uint32_t)job_rank_runs(job, rank) - ran;
}

/* Something about a rank is due at this time. A pass that is under way may be past the rank. */
static void due(struct job *job, uint64_t at_ns)
{
    if (at_ns < job->due_ns)
        job->due_ns = at_ns;
    if (job->cursor > 0 && at_ns < job->due_later_ns)
        job->due_later_ns = at_ns;
}

__attribute__((format(printf, 2, 3))) static void set_why(struct job_rank *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->why, sizeof(r->why), fmt, ap);
    va_end(ap);
}

/* --- how the job ends --- */

static void ask_to_end(struct job *job, int signal_number, uint64_t grace_ns, uint64_t now_ns)
{
    job->ending = true;
    job->signal_number = signal_number;
    job->signal_due = job->running + job->starting > 0;
    job->kill_at_ns = now_ns + grace_ns;
}

void job_fail(struct job *job, int exit_code, uint64_t now_ns, const char *fmt, ...)
{
    va_list ap;

    if (job->ending)
        return;
    if (!job->reason[0]) {
        job->exit_code = exit_code;
        va_start(ap, fmt);
        vsnprintf(job->reason, sizeof(job->reason), fmt, ap);
        va_end(ap);
    }
    ask_to_end(job, SIGTERM, JOB_GRACE_NS, now_ns);
}

void job_interrupt(struct job *job, int signal_number, uint64_t now_ns)
{
    bool same = signal_number == job->interrupted_by && now_ns - job->interrupted_ns < JOB_SAME_NS;

    job->interrupted_by = signal_number;
    job->interrupted_ns = now_ns;
    if (job->ending) {
        job->kill_at_ns = same ? job->kill_at_ns : now_ns;
        return;
    }
    job->exit_code = 128 + signal_number;
    snprintf(job->reason, sizeof(job->reason), "ended by signal %d (%s)", signal_number,
             strsignal(signal_number));
    ask_to_end(job, signal_number, job->config.kill_after_ns, now_ns);
}

void job_out_of_time(struct job *job, uint64_t now_ns)
{
    if (job->ending)
        return;
    job_fail(job, JOB_EXIT_TIMEOUT, now_ns, "the job ran out of its time (--timeout)");
    job->kill_at_ns = now_ns + job->config.kill_after_ns;
}

void job_aborted(struct job *job, uint32_t rank, int exit_code, uint64_t now_ns)
{
    if (job->ending && now_ns + JOB_GRACE_NS < job->kill_at_ns)
        job->kill_at_ns = now_ns + JOB_GRACE_NS;
    job_fail(job, exit_code & 255, now_ns, "rank %u (%s) called MPI_Abort with code %d", rank,
             job->rank[rank].program, exit_code);
}

void job_signal_passed_on(struct job *job, int signal_number)
{
    assert(signal_number > 0 && signal_number < 64);
    job->passed_on |= 1ull << signal_number;
}

void job_relay_lost(struct job *job, const char *text, uint64_t now_ns)
{
    if (job->relay_lost_ns)
        return;
    job->relay_lost_ns = now_ns + JOB_LOST_NS;
    snprintf(job->relay_lost, sizeof(job->relay_lost), "%s", text);
}

static void count_without_init(struct job *job)
{
    job->without_init++;
    job->no_mpi = job->without_init == job->config.ranks;
}

/* MPI_Init is collective: who ended without it leaves the others waiting for ever. */
static void check_missing(struct job *job, uint64_t now_ns)
{
    uint32_t rank = 0;

    if (job->in_mpi == 0 || job->without_init == 0)
        return;
    while (job->rank[rank].state != JOB_RANK_ENDED || job->rank[rank].called_init)
        rank++;
    job_fail(job, 1, now_ns,
             "rank %u (%s) ended without calling MPI_Init, and %u others wait for it in MPI", rank,
             job->rank[rank].program, job->in_mpi);
}

/* --- slots --- */

/* What a hung process holds may be a host that is out of reach: another slot comes first. */
static void move(struct job *job, uint32_t rank, const char *lost, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];
    char why[CW_ERR_TEXT_MAX];

    if (job_slots_move(&job->slots, &r->search, &r->slot, r->remains == JOB_REMAINS_LEAVE))
        return;
    job_slots_why_none(&job->slots, &r->search, why);
    job_fail(job, r->exit_code ? r->exit_code : 1, now_ns, "rank %u (%s) %s%s%s, and %s", rank,
             r->program, r->why, r->why[0] && lost[0] ? ", " : "", lost, why);
}

/* --- crashes and restarts --- */

/* Who never connected did nothing that its relay could know of. */
static struct job_place place_of(const struct job_rank *r)
{
    if (r->place.known || r->up)
        return r->place;
    return (struct job_place){.known = true};
}

static bool same_fault(const struct job_rank *r)
{
    return r->fault && r->fault == r->fault_before;
}

static bool same_place(const struct job_rank *r)
{
    struct job_place here = place_of(r);

    return here.known && r->place_before.known && here.acts == r->place_before.acts &&
           here.event == r->place_before.event;
}

static bool came_further(const struct job_rank *r)
{
    return place_of(r).known && place_of(r).acts > r->place_before.acts;
}

static uint64_t next_backoff(const struct job_rank *r)
{
    if (r->restarts == 0 || came_further(r))
        return 0;
    if (r->backoff_ns == 0)
        return JOB_BACKOFF_MIN_NS;
    return 2 * r->backoff_ns < JOB_BACKOFF_MAX_NS ? 2 * r->backoff_ns : JOB_BACKOFF_MAX_NS;
}

/* A crash is followed by a restart, unless it shows that the program itself is at fault. */
static void decide(struct job *job, uint32_t rank, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];

    r->deciding = false;
    if (same_fault(r) && same_place(r)) {
        job_fail(job, r->exit_code, now_ns,
                 "rank %u (%s) %s again at the same event (%" PRIu64
                 "): a fault of the program, which a restart does not mend",
                 rank, r->program, r->why, place_of(r).event);
    } else if (r->restarts >= job->config.restarts_max) {
        job_fail(job, r->exit_code, now_ns, "rank %u (%s) %s, after %u restarts (--max-restarts)",
                 rank, r->program, r->why, r->restarts);
    } else {
        r->backoff_ns = next_backoff(r);
        r->restarts++;
        r->start_ns = now_ns + r->backoff_ns;
        due(job, r->start_ns);
        move(job, rank, "", now_ns);
    }
}

static void fail_unlogged(struct job *job, uint32_t rank, uint64_t now_ns)
{
    const struct job_rank *r = &job->rank[rank];

    job_fail(job, r->exit_code, now_ns, "rank %u (%s) %s, and it cannot be restarted because %s",
             rank, r->program, r->why, r->unlogged_why);
}

/* The rank's `why` says what happened. */
static void crash(struct job *job, uint32_t rank, enum job_remains remains, int exit_code,
                  uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];

    if (job->ending) {
        set_state(job, rank, JOB_RANK_ENDED);
        return;
    }
    set_state(job, rank, JOB_RANK_DOWN);
    r->down_due = true;
    r->remains = remains;
    r->exit_code = exit_code;
    r->start_ns = UINT64_MAX;
    due(job, now_ns);
    if (!job->config.recover) {
        job_fail(job, exit_code, now_ns, "rank %u (%s) %s", rank, r->program, r->why);
    } else if (r->unlogged) {
        fail_unlogged(job, rank, now_ns);
    } else if (same_fault(r) && !r->place.known && (r->up || r->called_init)) {
        /* its relay will soon say where that was */
        r->deciding = true;
        r->start_ns = now_ns + JOB_PLACE_NS;
        due(job, r->start_ns);
    } else {
        decide(job, rank, now_ns);
    }
}

/* The process may be well, and its host. */
static void crash_without_relay(struct job *job, uint32_t rank, enum job_remains remains,
                                uint64_t now_ns)
{
    if (job->config.any_site)
        job->rank[rank].search.cut_site = job->slots.slot[job->rank[rank].slot].site;
    crash(job, rank, remains, 1, now_ns);
}

/* --- starting --- */

/* What was ordered has become of it. */
static void end_start(struct job *job, uint32_t rank)
{
    assert(job->rank[rank].starting);
    job->rank[rank].starting = false;
    job->starting--;
}

/* Where its host is not heard, its own silence says nothing. */
static uint64_t end_of_life_ns(const struct job *job, uint32_t rank)
{
    const struct job_rank *r = &job->rank[rank];
    bool counts = job_rank_restartable(job, rank) && !job->slots.slot[r->slot].suspect;

    return life_end_ns(&r->life, counts ? job->config.alive_timeout_ns : 0);
}

void job_rank_started(struct job *job, uint32_t rank, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];

    assert(r->state == JOB_RANK_DOWN && !r->down_due && !r->deciding);
    end_start(job, rank);
    set_state(job, rank, JOB_RANK_STARTED);
    r->place_before = r->incarnation ? place_of(r) : (struct job_place){0};
    r->fault_before = r->fault;
    r->place = (struct job_place){0};
    r->fault = 0;
    r->incarnation++;
    r->called_init = r->called_finalize = r->up = r->live = r->told_lost = false;
    r->from_image = r->not_restored = false;
    r->event = 0;
    r->to_repeat = 0;
    r->life = (struct life){.heard_ns = now_ns};
    due(job, end_of_life_ns(job, rank));
    if (job->slots.slot[r->slot].away) {
        set_why(r, "was started on a host that is lost");
        crash(job, rank, JOB_REMAINS_LEAVE, 1, now_ns);
    }
}

void job_start_failed(struct job *job, uint32_t rank, int exit_code, uint64_t now_ns,
                      const char *text)
{
    struct job_rank *r = &job->rank[rank];

    assert(r->state == JOB_RANK_DOWN);
    end_start(job, rank);
    if (r->incarnation == 0 && !job->slots.slot[r->slot].away) {
        job_fail(job, exit_code, now_ns, "%s", text);
        return;
    }
    if (job_slots_next(&job->slots, &r->search, &r->slot)) {
        r->start_ns = now_ns;
        r->start_again = true;
        due(job, now_ns);
        return;
    }
    job_fail(job, exit_code, now_ns,
             "rank %u %s, and incarnation %u of it could be started on no free slot (of %u): %s; "
             "is the program still where it was, and may more processes be started?",
             rank, r->why[0] ? r->why : "was not started yet", r->incarnation + 1, job->slots.count,
             text);
}

/* --- what the process says and does --- */

void job_rank_initialized(struct job *job, uint32_t rank, uint64_t now_ns)
{
    if (job->rank[rank].state != JOB_RANK_STARTED)
        return;
    job->rank[rank].called_init = true;
    set_state(job, rank, JOB_RANK_MPI);
    check_missing(job, now_ns);
}

void job_rank_finalized(struct job *job, uint32_t rank)
{
    if (job->rank[rank].state != JOB_RANK_MPI)
        return;
    job->rank[rank].called_finalize = true;
    set_state(job, rank, JOB_RANK_FINALIZED);
}

/* It lost its relay. Most often the process ends too, and how says more: that has a moment. */
static void suspect(struct job *job, uint32_t rank, const char *text, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];

    if (!job_rank_runs(job, rank) || r->life.dead_ns)
        return;
    set_why(r, "lost its relay: %.400s", text);
    r->life.dead_ns = now_ns + JOB_LOST_NS;
    due(job, r->life.dead_ns);
}

/* Signals that come from outside say nothing of the program. */
bool job_is_own_fault(int status)
{
    static const int foreign[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGSTOP};

    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status) != 0;
    for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
        if (WTERMSIG(status) == foreign[i])
            return false;
    return true;
}

void job_rank_from_image(struct job *job, uint32_t rank, uint64_t event)
{
    job->rank[rank].from_image = true;
    job->rank[rank].event = event;
}

void job_rank_not_restored(struct job *job, uint32_t rank)
{
    struct job_rank *r = &job->rank[rank];

    r->not_restored |= r->from_image && !r->up;
}

/* As if it had not been started: what is known of the crash before it stays. */
static void start_from_something_else(struct job *job, uint32_t rank, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];

    set_state(job, rank, job->ending ? JOB_RANK_ENDED : JOB_RANK_DOWN);
    if (job->ending)
        return;
    r->place = r->place_before;
    r->fault = r->fault_before;
    set_why(r, "could not be restored");
    r->down_due = true;
    r->remains = JOB_REMAINS_NOTHING;
    r->start_ns = now_ns;
    due(job, now_ns);
    move(job, rank, "", now_ns);
}

static void killed(struct job *job, uint32_t rank, int status, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];
    int signal_number = WTERMSIG(status);

    set_why(r, "was killed by signal %d (%s)", signal_number, strsignal(signal_number));
    if (signal_number < 64 && job->passed_on >> signal_number & 1) {
        set_state(job, rank, JOB_RANK_ENDED);
        job_fail(job, 128 + signal_number, now_ns, "rank %u (%s) %s", rank, r->program, r->why);
        return;
    }
    r->fault = job_is_own_fault(status) ? signal_number : 0;
    crash(job, rank, JOB_REMAINS_NOTHING, 128 + signal_number, now_ns);
}

static void exited(struct job *job, uint32_t rank, int code, uint64_t now_ns)
{
    const struct job_rank *r = &job->rank[rank];

    set_state(job, rank, JOB_RANK_ENDED);
    job_slots_leave(&job->slots, r->slot);
    if (code != 0 && !r->called_finalize) {
        job_fail(job, code, now_ns, "rank %u (%s) exited with code %d%s", rank, r->program, code,
                 r->called_init ? " without calling MPI_Finalize" : "");
    } else if (code != 0 && !job->ending && job->exit_code == 0) {
        /* the others have left MPI too, or are about to: they end by themselves */
        job->exit_code = code;
        snprintf(job->reason, sizeof(job->reason), "rank %u (%s) exited with code %d", rank,
                 r->program, code);
    } else if (code == 0 && !r->called_init) {
        count_without_init(job);
        check_missing(job, now_ns);
    } else if (code == 0 && !r->called_finalize) {
        job_fail(job, 1, now_ns, "rank %u (%s) called MPI_Init and ended without MPI_Finalize",
                 rank, r->program);
    }
}

void job_rank_ended(struct job *job, uint32_t rank, int status, uint64_t now_ns)
{
    assert(job_rank_runs(job, rank) && job->running > 0);
    job->rank[rank].status = status;
    if (job->rank[rank].not_restored)
        start_from_something_else(job, rank, now_ns);
    else if (WIFSIGNALED(status))
        killed(job, rank, status, now_ns);
    else if (WEXITSTATUS(status) == CW_EXIT_DEVICE && job->rank[rank].told_lost)
        crash_without_relay(job, rank, JOB_REMAINS_NOTHING, now_ns);
    else
        exited(job, rank, WEXITSTATUS(status), now_ns);
}

/* --- who lives --- */

/* It waits to be started on a slot that is lost. What it has just crashed of may have been that. */
static void move_away(struct job *job, uint32_t rank, const char *text, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];
    bool out_of_reach = r->down_due && r->remains == JOB_REMAINS_KILL;

    if (out_of_reach) {
        r->remains = JOB_REMAINS_LEAVE;
        set_why(r, "%s", text);
    }
    move(job, rank, out_of_reach ? "" : text, now_ns);
}

static void rank_without_host(struct job *job, uint32_t rank, const char *text, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];

    if (job_rank_runs(job, rank)) {
        set_why(r, "%s", text);
        crash(job, rank, JOB_REMAINS_LEAVE, 1, now_ns);
    } else if (r->state == JOB_RANK_DOWN && !r->starting && !r->deciding && !job->ending) {
        move_away(job, rank, text, now_ns);
    }
}

/* Until ranks have places there is nobody that it could concern. */
static void host_life(struct job *job, const struct life_event *event, uint64_t now_ns)
{
    job_slots_hear(&job->slots, event);
    for (uint32_t i = 0; job->slots.count && i < job->config.ranks; i++) {
        if (job->slots.slot[job->rank[i].slot].host != event->host)
            continue;
        if (event->what == LIFE_DEAD)
            rank_without_host(job, i, event->text, now_ns);
        else if (event->what == LIFE_BACK)
            job->rank[i].life.heard_ns = now_ns;
        due(job, end_of_life_ns(job, i));
    }
}

void job_life(struct job *job, const struct life_event *event, uint64_t now_ns)
{
    uint32_t rank = event->process.rank;
    struct job_rank *r = &job->rank[rank];

    if (event->host != LIFE_NO_HOST) {
        host_life(job, event, now_ns);
    } else if (event->process.incarnation != r->incarnation || !job_rank_runs(job, rank)) {
        return;
    } else if (event->what == LIFE_BACK) {
        r->life.heard_ns = now_ns;
    } else if (event->what == LIFE_ENDED) {
        r->life.ended = true;
    } else if (event->what == LIFE_SUSPECT) {
        suspect(job, rank, event->text, now_ns);
        r->told_lost = true;
    } else {
        set_why(r, "%s", event->text);
        crash(job, rank, JOB_REMAINS_KILL, 1, now_ns);
    }
}

/* --- what the relay says --- */

uint64_t job_rank_repeats_of(const struct job *job, uint32_t rank, uint64_t events)
{
    const struct job_rank *r = &job->rank[rank];

    return events > r->event ? events - r->event : 0;
}

bool job_rank_up(struct job *job, uint32_t rank, uint32_t incarnation, uint64_t acts,
                 uint64_t to_repeat, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];

    if (incarnation != r->incarnation || r->up)
        return false;
    r->up = true;
    r->up_ns = now_ns;
    r->to_repeat = job_rank_repeats_of(job, rank, to_repeat);
    r->live = acts == 0 && to_repeat == 0;
    return r->live;
}

bool job_rank_live(struct job *job, uint32_t rank, uint32_t incarnation)
{
    struct job_rank *r = &job->rank[rank];

    if (incarnation != r->incarnation || r->live)
        return false;
    return r->live = true;
}

void job_rank_lost(struct job *job, uint32_t rank, uint32_t incarnation, uint64_t acts,
                   uint64_t event, const char *text, uint64_t now_ns)
{
    struct job_rank *r = &job->rank[rank];
    struct job_place place = {.known = true, .acts = acts, .event = event};

    if (incarnation + 1 == r->incarnation)
        r->place_before = place;
    if (incarnation != r->incarnation)
        return;
    r->place = place;
    if (r->state != JOB_RANK_DOWN) {
        suspect(job, rank, text, now_ns);
    } else if (r->deciding) {
        decide(job, rank, now_ns);
    } else if (r->start_ns > now_ns && r->start_ns != UINT64_MAX && came_further(r)) {
        r->backoff_ns = 0;
        r->start_ns = now_ns;
        due(job, now_ns);
    }
}

bool job_rank_unlogged(struct job *job, uint32_t rank, const char *text, uint64_t now_ns)
{
    bool news = false;

    for (uint32_t i = 0; i < job->config.ranks; i++) {
        struct job_rank *r = &job->rank[i];

        if ((rank != JOB_NO_RANK && i != rank) || r->unlogged)
            continue;
        snprintf(r->unlogged_why, sizeof(r->unlogged_why), "%s", text);
        news = r->unlogged = true;
        r->unlogged_ns = now_ns;
        if (r->state == JOB_RANK_DOWN && r->incarnation > 0)
            fail_unlogged(job, i, now_ns);
    }
    return news;
}

/* --- time --- */

/* When something is to be done about the rank. */
static uint64_t rank_due_ns(const struct job *job, uint32_t rank)
{
    const struct job_rank *r = &job->rank[rank];

    if (r->down_due)
        return 0;
    if (job->ending || job->relay_lost_ns || r->state == JOB_RANK_ENDED)
        return UINT64_MAX;
    return r->state == JOB_RANK_DOWN ? r->start_ns : end_of_life_ns(job, rank);
}

static enum job_action order_down(struct job_rank *r, uint32_t rank, struct job_order *order)
{
    r->down_due = false;
    *order = (struct job_order){.process = {.rank = rank, .incarnation = r->incarnation},
                                .remains = r->remains,
                                .hung = r->hung,
                                .why = r->why};
    r->hung = false;
    return JOB_DOWN;
}

static enum job_action order_start(struct job *job, uint32_t rank, struct job_order *order)
{
    struct job_rank *r = &job->rank[rank];

    *order = (struct job_order){.process = {.rank = rank, .incarnation = r->incarnation + 1},
                                .slot = r->slot,
                                .again = r->start_again,
                                .why = r->why};
    r->start_ns = UINT64_MAX;
    r->start_again = false;
    r->starting = true;
    job->starting++;
    return JOB_START;
}

/* Something is due about this rank: an order comes out, or the rank's state changes. */
static enum job_action attend(struct job *job, uint32_t rank, uint64_t now_ns,
                              struct job_order *order)
{
    struct job_rank *r = &job->rank[rank];

    if (r->down_due)
        return order_down(r, rank, order);
    if (r->state == JOB_RANK_DOWN && !r->deciding)
        return order_start(job, rank, order);
    if (r->deciding) {
        decide(job, rank, now_ns);
    } else if (r->life.dead_ns && r->life.dead_ns <= now_ns) {
        crash_without_relay(job, rank, JOB_REMAINS_KILL, now_ns);
    } else {
        set_why(r, "gave no sign of life for %g s", (double)job->config.alive_timeout_ns / 1e9);
        r->hung = true;
        crash(job, rank, JOB_REMAINS_LEAVE, 1, now_ns);
    }
    return JOB_NOTHING;
}

/* Goes through the ranks from where it was left; a pass that is through knows when the next is due.
 */
static enum job_action attend_all(struct job *job, uint64_t now_ns, struct job_order *order)
{
    if (job->cursor == 0 && now_ns < job->due_ns)
        return JOB_NOTHING;
    for (; job->cursor < job->config.ranks; job->cursor++) {
        uint64_t at;

        while ((at = rank_due_ns(job, job->cursor)) <= now_ns) {
            enum job_action action = attend(job, job->cursor, now_ns, order);

            if (action != JOB_NOTHING)
                return action;
        }
        job->due_later_ns = at < job->due_later_ns ? at : job->due_later_ns;
    }
    job->cursor = 0;
    job->due_ns = job->due_later_ns;
    job->due_later_ns = UINT64_MAX;
    return JOB_NOTHING;
}

static bool is_done(const struct job *job)
{
    return job->running + job->starting == 0 && (job->ending || job->down == 0);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t job_deadline_ns(const struct job *job)
{
    uint64_t first = job->due_ns;

    if (is_done(job))
        return UINT64_MAX;
    if (job->kill_at_ns && job->running + job->starting > 0)
        first = earlier(first, job->kill_at_ns);
    if (job->relay_lost_ns && !job->ending)
        first = earlier(first, job->relay_lost_ns);
    /* more often than needed, so that a longer pause is known to be our own */
    if (job->config.recover && job->config.alive_timeout_ns && job->running && !job->ending)
        first = earlier(first, job->seen_ns + job->config.alive_timeout_ns / 4);
    return first;
}

enum job_action job_next(struct job *job, uint64_t now_ns, struct job_order *order)
{
    enum job_action action;
    uint64_t absence_ns;

    absence_ns = life_absence_ns(&job->seen_ns, job->config.alive_timeout_ns, now_ns);
    for (uint32_t rank = 0; absence_ns && rank < job->config.ranks; rank++)
        life_forgive(&job->rank[rank].life, absence_ns, now_ns);
    if (job->relay_lost_ns && now_ns >= job->relay_lost_ns)
        job_fail(job, 1, now_ns, "%s", job->relay_lost);
    action = attend_all(job, now_ns, order);
    if (action != JOB_NOTHING)
        return action;
    if (is_done(job))
        return JOB_DONE;
    if (job->signal_due) {
        job->signal_due = false;
        return JOB_SIGNAL;
    }
    if (job->kill_at_ns && now_ns >= job->kill_at_ns) {
        job->signal_number = SIGKILL;
        job->kill_at_ns = now_ns + JOB_GRACE_NS; /* again, should one have been started meanwhile */
        return JOB_SIGNAL;
    }
    return JOB_NOTHING;
}

/* --- a dispatcher before us --- */

void job_rank_ran_before(struct job *job, uint32_t rank, uint32_t incarnation)
{
    job->rank[rank].incarnation = incarnation;
}

void job_rank_ended_before(struct job *job, uint32_t rank, bool used_mpi)
{
    struct job_rank *r = &job->rank[rank];

    if (r->state == JOB_RANK_ENDED)
        return;
    r->called_init = r->called_finalize = used_mpi;
    set_state(job, rank, JOB_RANK_ENDED);
    job_slots_leave(&job->slots, r->slot);
    if (!used_mpi)
        count_without_init(job);
}

/* --- for people --- */

const char *job_rank_condition(const struct job *job, uint32_t rank, uint64_t period_ns,
                               uint64_t now_ns)
{
    const struct job_rank *r = &job->rank[rank];

    if (r->state == JOB_RANK_ENDED)
        return "ended";
    if (r->state == JOB_RANK_DOWN)
        return r->incarnation ? "down" : "starting";
    if (!job->slots.slot[r->slot].suspect && !r->life.ended &&
        now_ns > r->life.heard_ns + LIFE_PERIODS * period_ns)
        return "hung";
    if (!r->up)
        return "starting";
    return r->live ? "live" : "replaying";
}
