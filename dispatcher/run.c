/* The job's loop: waits, hands what happens to its part, and asks the job core what to do. */
#include "dispatcher/run.h"
#include "common/clock.h"
#include "dispatcher/run_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define INPUT_MOVES 16             /* buffers of a file that are given to rank 0 in one turn */
#define AFTERMATH_NS 2000000000ull /* for the last output of processes that ranks left behind */

/* In one write: ranks print to the same terminal or file. On a line of its own, also when a rank
 * has not ended its own. */
static void tell(struct run *run, const char *fmt, va_list ap)
{
    char text[2 * CW_ERR_TEXT_MAX];

    vsnprintf(text, sizeof(text), fmt, ap);
    fprintf(stderr, "%scauseway: %s\n", run->sinks[1].owner ? "\n" : "", text);
    run->sinks[1].owner = NULL;
}

void run_tell(struct run *run, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tell(run, fmt, ap);
    va_end(ap);
}

void run_say(struct run *run, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (run->options->verbose)
        tell(run, fmt, ap);
    va_end(ap);
}

uint64_t run_source(enum source_kind kind, uint32_t rank)
{
    return (uint64_t)kind << 32 | rank;
}

int run_watch(struct run *run, int fd, enum source_kind kind, uint32_t rank, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u64 = run_source(kind, rank)};

    return epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, fd, &e);
}

void run_unwatch(struct run *run, int fd)
{
    epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void handle(struct run *run, uint64_t data)
{
    uint32_t rank = (uint32_t)data;

    switch ((enum source_kind)(data >> 32)) {
    case SOURCE_SIGNAL:
        run_read_signals(run);
        break;
    case SOURCE_RELAY:
        run_read_relay(run, rank);
        break;
    case SOURCE_STDIN:
        input_move(&run->input, true);
        break;
    case SOURCE_PUMP:
        input_move(&run->input, !run->stdin_polled);
        break;
    case SOURCE_PMI:
        run_read_pmi(run, rank);
        break;
    case SOURCE_CONTROL:
        run_read_control(run, rank);
        break;
    case SOURCE_WATCHER:
        run_read_watcher(run, rank);
        break;
    case SOURCE_FORMER:
        run_read_former(run, rank);
        break;
    case SOURCE_STATUS:
        run_step_status(run);
        break;
    case SOURCE_OUT:
        run_read_output(run, rank, 0);
        break;
    case SOURCE_ERR:
        run_read_output(run, rank, 1);
        break;
    }
}

/* stdin is watched one shot at a time, so that what rank 0 does not read yet stays where it is. */
static void input_watch(struct run *run)
{
    struct epoll_event read_event = {.events = EPOLLIN | EPOLLONESHOT,
                                     .data.u64 = run_source(SOURCE_STDIN, 0)};
    struct epoll_event write_event = {.events = EPOLLOUT | EPOLLONESHOT,
                                      .data.u64 = run_source(SOURCE_PUMP, 0)};

    /* a file is always readable: it is moved until the pipe is full, a bounded part a turn */
    for (int i = 0; !run->stdin_polled && i < INPUT_MOVES && input_wants_read(&run->input); i++)
        input_move(&run->input, true);
    if (run->stdin_polled && input_wants_read(&run->input))
        epoll_ctl(run->epoll_fd, EPOLL_CTL_MOD, STDIN_FILENO, &read_event);
    if (input_wants_write(&run->input))
        epoll_ctl(run->epoll_fd, EPOLL_CTL_MOD, run->input.to, &write_event);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void check_kept_input(struct run *run)
{
    char why[96];

    if (run->options->no_log || run->input.keep || run->job_ranks[0].unlogged)
        return;
    snprintf(why, sizeof(why), "it was given more than %lu MiB on its standard input",
             INPUT_KEPT_MAX >> 20);
    run_unlogged(run, 0, why);
}

void run_turn(struct run *run, uint64_t until_ns)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t deadline = run_output_deadline(run);
    int timeout_ms = -1;
    int n;

    input_watch(run);
    deadline = earlier(deadline, until_ns);
    deadline = earlier(deadline, status_deadline_ns(&run->status));
    if (deadline <= run->now_ns || (!run->stdin_polled && input_wants_read(&run->input)))
        timeout_ms = 0;
    else if (deadline != UINT64_MAX)
        timeout_ms = (int)((deadline - run->now_ns) / 1000000) + 1;
    n = epoll_wait(run->epoll_fd, events, EVENTS_MAX, timeout_ms);
    run->now_ns = cw_clock_ns();
    for (int i = 0; i < n; i++)
        handle(run, events[i].data.u64);
    if (run_output_deadline(run) <= run->now_ns + OUTPUT_RETRY_NS)
        run_output_tick(run);
    if (status_deadline_ns(&run->status) <= run->now_ns)
        run_step_status(run);
    check_kept_input(run);
}

static uint64_t next_deadline(const struct run *run)
{
    uint64_t first = job_deadline_ns(&run->job);

    if (run->job.ending)
        return first;
    if (run->timeout_at_ns)
        first = earlier(first, run->timeout_at_ns);
    return earlier(first, fault_plan_deadline_ns(&run->faults));
}

/* The core has nothing more to be done now. */
static void settled(struct run *run)
{
    if (!run->all_started) {
        run->all_started = true;
        fault_plan_start(&run->faults, run->now_ns);
        if (run->options->timeout_ns)
            run->timeout_at_ns = run->now_ns + run->options->timeout_ns;
    }
    run_fire_faults(run);
    run_turn(run, next_deadline(run));
    if (run->timeout_at_ns && run->now_ns >= run->timeout_at_ns)
        job_fail(&run->job, JOB_EXIT_TIMEOUT, run->now_ns,
                 "the job ran out of its time (--timeout)");
}

static void run_until_done(struct run *run)
{
    struct job_order order;

    for (;;) {
        switch (job_next(&run->job, run->now_ns, &order)) {
        case JOB_DONE:
            return;
        case JOB_DOWN:
            run_let_go(run, &order);
            break;
        case JOB_START:
            run_start_rank(run, &order);
            break;
        case JOB_SIGNAL:
            run_signal_ranks(run, run->job.signal_number);
            break;
        case JOB_NOTHING:
            settled(run);
            break;
        }
    }
}

static void finish_output(struct run *run)
{
    uint64_t until = run->now_ns + AFTERMATH_NS;

    run_give_up_streams(run);
    while (run_output_open(run) && run->now_ns < until)
        run_turn(run, run->now_ns + OUTPUT_RETRY_NS);
}

static void free_ranks(struct run *run)
{
    for (uint32_t rank = 0; run->ranks && rank < run->options->ranks; rank++) {
        for (int which = 0; which < 2; which++) {
            output_stream_close(&run->ranks[rank].streams[which]);
            output_sink_close(&run->ranks[rank].files[which]);
        }
        free(run->ranks[rank].early);
    }
    free(run->ranks);
    free(run->job_ranks);
    free(run->slot_used);
    free(run->appnums);
    free(run->segment_of);
    free(run->paths);
    free(run->stats);
}

static void cleanup(struct run *run)
{
    run_stop_relays(run);
    run_close_formers(run);
    run_end_left_behind(run);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    input_close(&run->input);
    status_close(&run->status);
    job_events_close(&run->events);
    if (run->dir_made)
        rundir_remove(&run->dir);
    pmi_free(run->pmi);
    free_ranks(run);
}

static void report(const struct run *run)
{
    if (run->job.reason[0])
        fprintf(stderr, "causeway: %s\n", run->job.reason);
    else if (run->job.no_mpi)
        fprintf(stderr,
                "causeway: note: no rank called MPI_Init; %s ran as %u separate processes\n",
                run->job_ranks[0].program, run->options->ranks);
}

static int run_opened(struct run *run)
{
    run_until_done(run);
    run_close_formers(run);
    run_end_left_behind(run);
    finish_output(run);
    run_collect_stats(run);
    report(run);
    job_events_write(&run->events, run->now_ns, JOB_EVENT_JOB_ENDED, JOB_EVENTS_NO_RANK,
                     job_number("exit_code", (uint64_t)run->job.exit_code),
                     job_text("reason", run->job.reason));
    return run->job.exit_code;
}

int run_job(const struct run_options *options)
{
    struct run *run = calloc(1, sizeof(*run));
    struct cw_err err = {0};
    int code;

    if (!run)
        return 1;
    run->options = options;
    run->open_exit_code = 1;
    run->input.to = run->input.rank_end = -1;
    run->status.fd = run->status.listener = run->events.fd = -1;
    if (run_open_all(run, &err) < 0) {
        fprintf(stderr, "causeway: %s\n", err.text);
        code = run->open_exit_code;
    } else {
        code = run_opened(run);
    }
    cleanup(run);
    free(run);
    return code;
}
