#include "dispatcher/run/driver.h"
#include "common/clock.h"
#include "dispatcher/node/children.h"
#include "dispatcher/run/copies.h"
#include "dispatcher/run/fault_injection.h"
#include "dispatcher/run/finish.h"
#include "dispatcher/run/host_news.h"
#include "dispatcher/run/host_relays.h"
#include "dispatcher/run/parts.h"
#include "dispatcher/run/relay_news.h"
#include "dispatcher/run/resume.h"
#include "dispatcher/run/starts.h"
#include "dispatcher/run/state_copies.h"
#include "dispatcher/run/unit_news.h"
#include "tunnels/ssh_transport.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct driver {
    struct parts parts;
    struct job job;
    struct job_rank *job_ranks;
    struct job_slot *slots;
    struct fault_injection faults;
    struct starts starts;
    struct unrestartable unrestartable;
    struct relay_news relay_news;
    struct host_news host_news;
    struct copies copies;
    struct unit_news unit_news;
    uint32_t unkept;  /* ranks that have ended well, which is not written down yet */
    bool *kept;       /* of each rank: it is; owned */
    bool all_started; /* every rank has been started once */
    struct loop_timer timeout;
};

static uint64_t now_of(const struct driver *d)
{
    return loop_now_ns(d->parts.loop);
}

/* --- what the processes of ranks say --- */

static void on_asked(void *ctx, uint32_t rank, const struct pmi_request *request)
{
    struct driver *d = ctx;

    if (request->what == PMI_INIT) {
        log_verbose(&d->parts.log, "rank %u has called MPI_Init", rank);
        job_rank_initialized(&d->job, rank, now_of(d));
        imaging_look(d->parts.imaging, rank);
    } else if (request->what == PMI_FINALIZE) {
        log_verbose(&d->parts.log, "rank %u has called MPI_Finalize", rank);
        job_rank_finalized(&d->job, rank);
        imaging_look(d->parts.imaging, rank);
    } else if (request->what == PMI_ABORT) {
        job_aborted(&d->job, rank, request->code, now_of(d));
    }
}

static void on_without_device(void *ctx, uint32_t rank)
{
    struct driver *d = ctx;

    job_fail(&d->job, 1, now_of(d),
             "rank %u (%s) uses MPI without librdevice.so, so past the relay: does a wrapper "
             "drop LD_PRELOAD (env, sudo, a set-user-ID program), or is it built with another "
             "MPICH than Debian's? Let the wrapper keep the environment, or start causeway run "
             "inside it",
             rank, d->job_ranks[rank].program);
}

static void on_forgotten(void *ctx, uint32_t rank)
{
    char why[96];

    snprintf(why, sizeof(why), "it has published or looked up more than %d names", PMI_ANSWERS_MAX);
    unrestartable_mark(&((struct driver *)ctx)->unrestartable, rank, why);
}

static void on_broken(void *ctx, const struct cw_err *err)
{
    struct driver *d = ctx;

    job_fail(&d->job, 1, now_of(d), "%s", err->text);
}

/* The rank has given up its session. A relay that we do not reach either is gone, unless it may be
 * started again: then our own session with it decides. */
static void lost_by_rank(struct driver *d, uint32_t rank, const char *text)
{
    uint32_t home = relays_home(d->parts.relays, rank);
    char why[CW_ADDRESS_MAX + CW_TEXT_MAX + 16];

    if (!relays_may_return(d->parts.relays) && relays_is_suspended(d->parts.relays, home)) {
        snprintf(why, sizeof(why), "relay %s: %.*s", relays_address(d->parts.relays, home),
                 CW_TEXT_MAX, text);
        job_relay_lost(&d->job, why, now_of(d));
    }
    job_life(&d->job,
             &(struct life_event){.what = LIFE_SUSPECT,
                                  .host = LIFE_NO_HOST,
                                  .process = job_process(&d->job, rank),
                                  .text = text},
             now_of(d));
}

/* The process cannot go on from its image. */
static void not_restored(struct driver *d, uint32_t rank, const char *why, bool broke_off)
{
    if (d->job_ranks[rank].not_restored)
        return;
    job_rank_not_restored(&d->job, rank);
    imaging_not_restored(d->parts.imaging, rank, why, broke_off);
}

/* What goes wrong before the relay has heard of it has to do with the image. */
static bool is_being_restored(const struct driver *d, uint32_t rank)
{
    return d->job_ranks[rank].from_image && !d->job_ranks[rank].up;
}

static void device_failed(struct driver *d, uint32_t rank, const char *text)
{
    relays_hear(d->parts.relays, relays_home(d->parts.relays, rank));
    if (is_being_restored(d, rank))
        not_restored(d, rank, text, false);
    else
        job_fail(&d->job, 1, now_of(d), "rank %u (%s): %s", rank, d->job_ranks[rank].program, text);
}

/* A replay would start it again, and what it shares with ranks nobody knows. */
static void on_nested(struct driver *d, uint32_t rank, const char *path)
{
    char why[CW_TEXT_MAX + 96];

    snprintf(why, sizeof(why), "its program has started another MPI program, %s", path);
    if (!d->parts.options->trust_files)
        unrestartable_mark(&d->unrestartable, rank, why);
}

static void on_report(void *ctx, uint32_t rank, const struct cw_report *report)
{
    struct driver *d = ctx;

    switch ((enum cw_report_kind)report->kind) {
    case CW_REPORT_SETUP_READ: /* which rank_io takes */
        break;
    case CW_REPORT_EARLY:
        if (!starts_take_early(&d->starts, rank, report))
            unrestartable_mark(&d->unrestartable, rank,
                               "there is no memory for what it read before MPI_Init");
        break;
    case CW_REPORT_FILE:
        unrestartable_opens_file(&d->unrestartable, rank, report);
        break;
    case CW_REPORT_DRILL:
        fault_injection_taken(&d->faults, rank);
        break;
    case CW_REPORT_RELAY_LOST:
        lost_by_rank(d, rank, report->text);
        break;
    case CW_REPORT_FATAL:
        device_failed(d, rank, report->text);
        break;
    case CW_REPORT_IMAGE_TAKEN:
    case CW_REPORT_IMAGE_ENDED:
        imaging_report(d->parts.imaging, rank, report);
        break;
    case CW_REPORT_NESTED:
        on_nested(d, rank, report->text);
        break;
    case CW_REPORT_REMARK:
        log_warning(&d->parts.log, now_of(d), rank, "not all is as it was in the image",
                    report->text);
        log_notice(&d->parts.log,
                   "rank %u goes on from its image, in which not all is as it was: %s", rank,
                   report->text);
        break;
    case CW_REPORT_DIFFERS: /* each process says it */
        if (!d->job_ranks[rank].differs)
            log_contents_differ(&d->parts.log, now_of(d), rank, report->text);
        d->job_ranks[rank].differs = true;
        break;
    case CW_REPORT_NOT_RESTORED:
        not_restored(d, rank, report->text, false);
        break;
    case CW_REPORT_IMAGE_BROKE_OFF:
        not_restored(d, rank, report->text, true);
        break;
    }
}

static void on_no_report(void *ctx, uint32_t rank)
{
    struct driver *d = ctx;

    log_verbose(&d->parts.log,
                "rank %u wrote something else than a report to its control descriptor", rank);
}

static const struct rank_io_events rank_io_events = {on_asked,  on_without_device, on_forgotten,
                                                     on_broken, on_report,         on_no_report};

/* --- what becomes of the processes of ranks --- */

static void on_started(void *ctx, const struct remote_process *process)
{
    struct driver *d = ctx;
    uint32_t rank = process->id.rank;
    uint32_t host = d->slots[d->job_ranks[rank].slot].host;
    uint32_t image = starts_image(&d->starts, rank);
    struct cw_err err = {0};

    job_rank_started(&d->job, rank, now_of(d));
    if (image)
        job_rank_from_image(&d->job, rank, imaging_event(d->parts.imaging, rank, image));
    rank_io_open(d->parts.rank_io, process->id, image, process->channel[LAUNCH_PMI],
                 process->channel[LAUNCH_CONTROL]);
    log_rank_started(&d->parts.log, now_of(d), rank, &d->job_ranks[rank], process->pid,
                     host == nodes_here(d->parts.nodes) ? NULL : nodes_name(d->parts.nodes, host));
    imaging_started(d->parts.imaging, rank, image);
    if (image) /* it has called MPI_Init, which its image knows of */
        job_rank_initialized(&d->job, rank, now_of(d));
    if (outputs_open(d->parts.outputs, rank, image, process->channel + LAUNCH_STDOUT, &err) < 0)
        job_fail(&d->job, 1, now_of(d), "%s", err.text);
}

static void on_start_failed(void *ctx, struct cw_process process, const struct cw_err *err)
{
    starts_failed(&((struct driver *)ctx)->starts, process.rank, err);
}

/* What was said before it ended counts first. */
static void hear_out(struct driver *d, struct cw_process process)
{
    relays_hear(d->parts.relays, relays_home(d->parts.relays, process.rank));
    rank_io_hear(d->parts.rank_io, process);
    rank_io_close(d->parts.rank_io, process);
}

/* A rank that leaves MPI in the middle may do so because of another one's MPI_Abort, which decides
 * how the job ends. That one has said so before: it is heard first, also where that waits at
 * another gate, for the job ends in any case. */
static void hear_aborts(struct driver *d, uint32_t rank, int status)
{
    const struct job_rank *r = &d->job_ranks[rank];

    if (d->job.ending || r->called_finalize || !WIFEXITED(status) ||
        (!r->called_init && WEXITSTATUS(status) == 0))
        return;
    if (!r->not_restored)
        gates_open(d->parts.gates);
    rank_io_hear_all(d->parts.rank_io);
}

static void on_ended(void *ctx, struct cw_process process, int status)
{
    struct driver *d = ctx;
    uint32_t rank = process.rank;

    relays_rank_end(d->parts.relays, rank, d->job_ranks[rank].incarnation);
    hear_out(d, process);
    if (is_being_restored(d, rank) && job_is_own_fault(status))
        not_restored(d, rank, "its process ended before it went on", false);
    hear_aborts(d, rank, status);
    log_rank_exit(&d->parts.log, rank, status);
    job_rank_ended(&d->job, rank, status, now_of(d));
    d->unkept += d->parts.state && d->job_ranks[rank].state == JOB_RANK_ENDED && status == 0;
    if (d->job_ranks[rank].state == JOB_RANK_ENDED)
        log_rank_ended(&d->parts.log, now_of(d), rank, &d->job_ranks[rank], status);
}

static void on_life(void *ctx, struct cw_process process, enum life_what what)
{
    const struct life_event event = {.what = what,
                                     .host = LIFE_NO_HOST,
                                     .process = process,
                                     .text = "lost the process that watched it"};
    struct driver *d = ctx;

    if (what == LIFE_DEAD)
        hear_out(d, process);
    job_life(&d->job, &event, now_of(d));
}

static void on_superseded_ended(void *ctx, struct cw_process process)
{
    struct driver *d = ctx;

    log_verbose(&d->parts.log, "the former process of rank %u (incarnation %u) has ended",
                process.rank, process.incarnation);
}

static const struct remote_events remote_events = {on_started, on_start_failed, on_life, on_ended,
                                                   on_superseded_ended};

/* --- orders of the core --- */

/* A relay keeps out what it has replaced. Channel memory does not: what is left alone there would
 * write beside its successor. */
static bool is_killed(const struct driver *d, const struct job_order *order)
{
    return order->remains == JOB_REMAINS_KILL ||
           (order->remains == JOB_REMAINS_LEAVE && d->parts.layout.channel);
}

static void detach(struct driver *d, const struct job_order *order)
{
    log_rank_down(&d->parts.log, now_of(d), order, d->job_ranks[order->process.rank].status);
    rank_io_hear_all(d->parts.rank_io);
    rank_io_close(d->parts.rank_io, order->process);
    remote_detach(d->parts.remote, order->process, is_killed(d, order));
    if (!d->job_ranks[order->process.rank].not_restored)
        imaging_crashed(d->parts.imaging, order->process.rank);
    if (!d->job.ending)
        outputs_interrupt(d->parts.outputs, order->process.rank,
                          order->remains != JOB_REMAINS_NOTHING);
}

static void signal_ranks(struct driver *d, int signal_number)
{
    for (uint32_t rank = 0; d->parts.remote && rank < d->parts.options->ranks; rank++)
        remote_signal(d->parts.remote, job_process(&d->job, rank), signal_number);
}

/* --- signals and failures --- */

static void on_child_ended(void *ctx, pid_t pid, int status)
{
    struct driver *d = ctx;

    if (ssh_transport_is_tunnel(pid))
        ssh_transport_ended(pid);
    else if (!state_copies_child_ended(d->parts.state_copies, pid, status))
        nodes_child_ended(d->parts.nodes, pid, status);
}

/* How a rank ended its watcher says; here its watcher is waited for, and what ranks left behind. */
static void on_signal(void *ctx, int number)
{
    struct driver *d = ctx;

    if (number == SIGCHLD) {
        children_reap(on_child_ended, d);
    } else if (number == SIGUSR1 || number == SIGUSR2) {
        job_signal_passed_on(&d->job, number);
        signal_ranks(d, number);
    } else {
        d->parts.hurried = true;
        job_interrupt(&d->job, number, now_of(d));
    }
}

static void on_output_failed(void *ctx, const struct cw_err *err)
{
    struct driver *d = ctx;

    if (err->code == CW_ECLOSED)
        job_fail(&d->job, 128 + SIGPIPE, now_of(d), "%s", err->text);
    else
        job_fail(&d->job, 1, now_of(d), "%s; the job ends", err->text);
}

/* Whatever the job waits for, also before its ranks start and after their end. */
static void on_timeout(void *ctx)
{
    struct driver *d = ctx;

    d->parts.hurried = true;
    job_out_of_time(&d->job, now_of(d));
}

/* --- opening --- */

static void on_overrun(void *ctx)
{
    char why[96];

    snprintf(why, sizeof(why), "it was given more than %lu MiB on its standard input",
             INPUT_KEPT_MAX >> 20);
    unrestartable_mark(&((struct driver *)ctx)->unrestartable, 0, why);
}

static void on_source(void *ctx, uint32_t rank, uint32_t number, int fd)
{
    starts_from(&((struct driver *)ctx)->starts, rank, number, fd);
}

static void on_no_source(void *ctx, uint32_t rank, const char *why)
{
    struct driver *d = ctx;

    job_fail(&d->job, 1, now_of(d), "rank %u (%s) %s, and there is nothing to restart it from: %s",
             rank, d->job_ranks[rank].program, d->job_ranks[rank].why, why);
}

static void start_server(void *ctx, uint32_t server, const char *listen,
                         const uint8_t key[CW_KEY_SIZE])
{
    unit_news_start_server(&((struct driver *)ctx)->unit_news, server, listen, key);
}

static const struct imaging_events imaging_events = {on_source, on_no_source, start_server};

static const struct parts_events parts_events = {.remote = &remote_events,
                                                 .rank_io = &rank_io_events,
                                                 .relays = &relay_news_events,
                                                 .units = &unit_news_events,
                                                 .own_relays = &unit_news_relays,
                                                 .nodes = &host_news_events,
                                                 .staging = &host_news_staging,
                                                 .imaging = &imaging_events,
                                                 .signalled = on_signal,
                                                 .output_failed = on_output_failed,
                                                 .input_overrun = on_overrun};

static int open_core(struct driver *d, struct cw_err *err)
{
    const struct run_options *o = d->parts.options;
    struct job_config config = {.ranks = o->ranks,
                                .recover = !o->no_log,
                                .any_site = o->restart_at_any_site,
                                .restarts_max = o->max_restarts,
                                .alive_timeout_ns = o->alive_timeout_ns,
                                .kill_after_ns = o->kill_after_ns};

    d->job_ranks = calloc(o->ranks, sizeof(*d->job_ranks));
    d->kept = calloc(o->ranks, sizeof(*d->kept));
    if (!d->kept || !d->job_ranks)
        return cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", o->ranks);
    for (uint32_t rank = 0; rank < o->ranks; rank++)
        d->job_ranks[rank].program = programs_of(&d->parts.programs, rank)->argv[0];
    job_init(&d->job, &config, d->job_ranks);
    d->host_news = (struct host_news){.parts = &d->parts, .job = &d->job};
    d->unit_news = (struct unit_news){.parts = &d->parts, .relay_news = &d->relay_news};
    d->relay_news = (struct relay_news){.parts = &d->parts,
                                        .job = &d->job,
                                        .ranks = d->job_ranks,
                                        .starts = &d->starts,
                                        .unrestartable = &d->unrestartable};
    if (unrestartable_open(&d->unrestartable, &d->parts, &d->job, err) < 0 ||
        fault_injection_open(&d->faults, &d->parts, &d->job, err) < 0)
        return err->code;
    return starts_open(&d->starts, &d->parts, &d->job, &d->faults.plan, &d->unrestartable, err);
}

static int await(struct driver *d, const bool *ready, int *exit_code, struct cw_err *err)
{
    while (!*ready && !d->job.ending)
        loop_turn(d->parts.loop, LOOP_NEVER);
    if (!d->job.ending)
        return CW_OK;
    *exit_code = d->job.exit_code;
    return cw_err_set(err, CW_ESYS, "%s", d->job.reason);
}

static int choose_places(struct driver *d, struct cw_err *err)
{
    const struct run_options *o = d->parts.options;
    const struct layout *l = &d->parts.layout;
    uint32_t cores[HOSTS_MAX];
    bool limited = false;

    for (uint32_t host = 0; host < o->hosts.list.count; host++) {
        const struct greeting_hello *facts = nodes_facts(d->parts.nodes, host);

        cores[host] = facts->cores;
        limited |= facts->limited;
    }
    if (layout_make(&d->parts.layout, o, cores, limited, err) < 0 ||
        fault_plan_check(&d->faults.plan, o->ranks, l->running ? 0 : l->relays, err) < 0)
        return err->code;
    return programs_tell_homes(&d->parts.programs, o, l, err);
}

/* All hosts have said what they have: ranks and relays get their places. */
static int place(struct driver *d, int *exit_code, struct cw_err *err)
{
    const struct host_list *hosts = &d->parts.options->hosts.list;
    const struct placement *placement = &d->parts.layout.placement;
    uint32_t slots = d->parts.options->ranks;

    if (choose_places(d, err) < 0) {
        *exit_code = 2;
        return err->code;
    }
    if (placement->slots)
        slots = placement->slots;
    d->slots = calloc(slots, sizeof(*d->slots));
    if (!d->slots)
        return cw_err_set(err, CW_ENOMEM, "no memory for a job with %u slots", slots);
    for (uint32_t slot = 0; slot < placement->slots; slot++)
        d->slots[slot] = (struct job_slot){.host = placement->slot_host[slot],
                                           .site = hosts->host[placement->slot_host[slot]].site,
                                           .ranks_max = placement->slot_ranks_max[slot]};
    job_place(&d->job, d->slots, slots, placement->rank_slot);
    return CW_OK;
}

/* Until all hosts have their nodes, the ranks their places, and the hosts the programs that are
 * sent to them. */
static int await_hosts(struct driver *d, int *exit_code, struct cw_err *err)
{
    if (await(d, &d->host_news.ready, exit_code, err) < 0 || place(d, exit_code, err) < 0)
        return err->code;
    if (d->parts.staging)
        staging_begin(d->parts.staging);
    if (d->parts.staging && await(d, &d->host_news.staged, exit_code, err) < 0)
        return err->code;
    host_relays_own_address(&d->parts, d->parts.host);
    return CW_OK;
}

static int open_relays(struct driver *d, const struct parts_events *events, int *exit_code,
                       struct cw_err *err)
{
    if (await_hosts(d, exit_code, err) < 0)
        return err->code;
    if (parts_open_relays(&d->parts, events, err) < 0)
        return err->code;
    return await(d, &d->relay_news.ready, exit_code, err);
}

/* Until the checkpoint servers have started, where they are on hosts. */
static int await_server(struct driver *d, int *exit_code, struct cw_err *err)
{
    const struct unit_news *n = &d->unit_news;

    if (!d->parts.imaging || d->parts.options->hosts.ckptsrv_hosts == 0)
        return CW_OK;
    if (await(d, &n->servers_settled, exit_code, err) < 0)
        return err->code;
    if (!n->server_why.code)
        return CW_OK;
    *err = n->server_why;
    return cw_err_wrap(err, "--ckptsrv");
}

/* The state of the job is on its hosts before its ranks begin. */
static int await_state_copies(struct driver *d, int *exit_code, struct cw_err *err)
{
    struct parts *p = &d->parts;

    if (!p->options->orphan_ns)
        return CW_OK;
    resume_name_nodes(p);
    p->state_copies = state_copies_new(p, err);
    if (!p->state_copies)
        return err->code;
    while (!state_copies_are_there(p->state_copies, err) && !err->code && !d->job.ending)
        loop_turn(p->loop, LOOP_NEVER);
    if (!d->job.ending)
        return err->code;
    *exit_code = d->job.exit_code;
    return cw_err_set(err, CW_ESYS, "%s", d->job.reason);
}

/* Opens all but the ranks, and waits until the job is open at its relays. What was opened is closed
 * by the caller. */
static int open_all(struct driver *d, const struct run_options *options, int *exit_code,
                    struct cw_err *err)
{
    struct state_file *state = d->parts.state;
    struct parts_events events = parts_events;
    uint64_t began_ns = cw_clock_ns();
    int failed = parts_open_programs(&d->parts, options, exit_code, err);

    events.relays_ctx = &d->relay_news;
    events.nodes_ctx = &d->host_news;
    events.units_ctx = &d->unit_news;
    d->parts.copies = &d->copies;
    d->parts.state = state;
    d->parts.resumed = d->parts.begun = state;
    if (failed || open_core(d, err) < 0 || resume_open(&d->parts, err) < 0 ||
        parts_open_hosts(&d->parts, &events, d, err) < 0)
        return err->code;
    copies_open(&d->copies, &d->parts, &d->job);
    if (options->timeout_ns) {
        loop_timer_add(d->parts.loop, &d->timeout, on_timeout, d);
        loop_timer_set(&d->timeout, began_ns + options->timeout_ns);
    }
    if (open_relays(d, &events, exit_code, err) < 0)
        return err->code;
    if (parts_open_ranks(&d->parts, &d->job, &events, d, err) < 0 ||
        (d->parts.resumed && resume_replay(&d->parts, &d->job, err) < 0) ||
        await_server(d, exit_code, err) < 0 || await_state_copies(d, exit_code, err) < 0)
        return err->code;
    copies_begin_events(&d->copies);
    if (d->parts.resumed)
        return resume_await_images(&d->parts, &d->job, err);
    resume_begin(&d->parts);
    return CW_OK;
}

/* --- running --- */

static uint64_t next_deadline(const struct driver *d)
{
    uint64_t first = job_deadline_ns(&d->job);
    uint64_t fault = d->job.ending ? UINT64_MAX : fault_plan_deadline_ns(&d->faults.plan);

    return first < fault ? first : fault;
}

/* Ranks that have ended well stay ended, once what they printed is out. */
static void keep_ended(struct driver *d)
{
    for (uint32_t rank = 0; d->unkept && rank < d->parts.options->ranks; rank++) {
        const struct job_rank *r = &d->job_ranks[rank];

        if (d->kept[rank] || r->state != JOB_RANK_ENDED || r->status != 0 || r->incarnation == 0 ||
            !outputs_are_through(d->parts.outputs, rank))
            continue;
        d->kept[rank] = true;
        d->unkept--;
        resume_rank_ended(&d->parts, rank, r->called_init);
    }
}

/* The core has nothing more to be done now. */
static void settled(struct driver *d)
{
    if (d->job.ending) {
        imaging_end(d->parts.imaging);
        gates_open(d->parts.gates);
    }
    if (d->job.ending && starts_drop(&d->starts))
        return;
    if (!d->all_started && d->job.starting == 0) {
        d->all_started = true;
        fault_plan_start(&d->faults.plan, now_of(d));
    }
    fault_injection_fire(&d->faults);
    keep_ended(d);
    loop_turn(d->parts.loop, next_deadline(d));
}

static void run_until_done(struct driver *d)
{
    struct job_order order;

    for (;;) {
        switch (job_next(&d->job, now_of(d), &order)) {
        case JOB_DONE:
            return;
        case JOB_DOWN:
            detach(d, &order);
            break;
        case JOB_START:
            starts_begin(&d->starts, &order);
            break;
        case JOB_SIGNAL:
            signal_ranks(d, d->job.signal_number);
            break;
        case JOB_NOTHING:
            settled(d);
            break;
        }
    }
}

/* --- the end --- */

static int run_opened(struct driver *d)
{
    const struct run_options *options = d->parts.options;
    bool well;

    run_until_done(d);
    d->relay_news.over = true;
    imaging_end(d->parts.imaging);
    gates_open(d->parts.gates);
    gates_pass(d->parts.gates);
    parts_end_processes(&d->parts);
    if (!finish_output(&d->parts))
        log_notice(&d->parts.log, "the end of what ranks printed is lost: nobody took it");
    outputs_sync_all(d->parts.outputs);
    outputs_close_files(d->parts.outputs);
    well = d->job.exit_code == 0 && !d->job.reason[0];
    d->parts.over = well || !options->job_dir;
    if (!d->parts.over && state_file_is_whole(d->parts.state))
        relays_keep_job(d->parts.relays);
    finish_parts(&d->parts);
    if (!options->no_log)
        log_unrestartable(&d->parts.log, &d->job, now_of(d));
    log_reason(&d->parts.log, &d->job);
    resume_end(&d->parts, well);
    log_job_ended(&d->parts.log, now_of(d), &d->job);
    finish_own_lines(&d->parts);
    return d->job.exit_code;
}

static void say_not_opened(struct driver *d, const struct cw_err *err)
{
    if (!d->parts.outputs) {
        fprintf(stderr, "causeway: %s\n", err->text);
        return;
    }
    outputs_say(d->parts.outputs, err->text);
    finish_own_lines(&d->parts);
}

static void free_core(struct driver *d)
{
    starts_close(&d->starts);
    fault_injection_close(&d->faults);
    unrestartable_close(&d->unrestartable);
    free(d->job_ranks);
    free(d->slots);
    free(d->kept);
}

/* A job within a rank of another one, which does not know what files its ranks share. */
static void tell_outer_job(void)
{
    static const char what[] = "causeway run";
    const char *text = getenv(CW_SETUP_ENV);
    uint8_t bytes[CW_REPORT_HEADER + sizeof(what)];
    size_t size = cw_report_put(bytes, CW_REPORT_NESTED, what, sizeof(what) - 1);
    socklen_t type_size = sizeof(int);
    int type = 0;

    if (text && getsockopt(atoi(text), SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 &&
        type == SOCK_SEQPACKET && send(atoi(text), bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* the other job has ended */
}

int run_job(const struct run_options *options, struct state_file *state)
{
    struct driver *d = calloc(1, sizeof(*d));
    struct cw_err err = {0};
    int code = 1;

    if (!d)
        return 1;
    d->parts.state = state;
    tell_outer_job();
    if (open_all(d, options, &code, &err) < 0)
        say_not_opened(d, &err);
    else
        code = run_opened(d);
    if (d->parts.loop)
        loop_timer_remove(&d->timeout);
    copies_close(&d->copies);
    parts_close(&d->parts);
    free_core(d);
    free(d);
    return code;
}
