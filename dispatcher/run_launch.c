/* Starting the incarnations of the ranks, and letting go of them. */
#include "common/clock.h"
#include "common/cred.h"
#include "dispatcher/run_state.h"
#include "dispatcher/watcher.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- starting --- */

static struct cw_setup setup_of(const struct run *run, const struct job_order *order)
{
    const struct run_rank *r = &run->ranks[order->rank];
    const struct service *home;
    struct cw_setup setup = {.rank = order->rank,
                             .ranks = run->options->ranks,
                             .incarnation = order->incarnation,
                             .spin_ns = run_choose_spin(run->options),
                             .early = r->early,
                             .early_size = r->early_size};

    setup.fault_event = fault_plan_event_of(&run->faults, order->rank, order->incarnation);
    memcpy(setup.job, run->job_id, sizeof(setup.job));
    home = job_home_of(&run->services, order->rank);
    cw_cred_rank_key(setup.key, run->relays[home->id].job_key, order->rank, order->incarnation);
    snprintf(setup.address, sizeof(setup.address), "%s", home->address);
    return setup;
}

/* Rank 0 reads from the beginning what the process before it was given. */
static int restart_input(struct run *run, struct cw_err *err)
{
    if (run->input.to >= 0)
        run_unwatch(run, run->input.to);
    if (input_restart(&run->input, err) < 0)
        return err->code;
    if (run->input.to >= 0)
        run_watch(run, run->input.to, SOURCE_PUMP, 0, EPOLLONESHOT);
    return CW_OK;
}

static int launch(struct run *run, const struct job_order *order, struct cw_err *err)
{
    struct launch_job job = {.device_path = run->device_path,
                             .env = run->options->env,
                             .env_count = run->options->env_count,
                             .ranks = run->options->ranks,
                             .alive_period_ns = run->options->alive_period_ns};
    const char *path = run->paths[run->appnums[order->rank]];
    struct cw_setup setup = setup_of(run, order);

    if (order->rank == 0 && order->incarnation > 1 && restart_input(run, err) < 0)
        return err->code;
    job.stdin_fd = run->input.rank_end;
    if (launch_rank(&job, run->segment_of[order->rank], path, &setup,
                    &run->ranks[order->rank].process, err) < 0)
        return err->code;
    if (order->rank == 0) {
        close(run->input.rank_end);
        run->input.rank_end = -1;
    }
    return CW_OK;
}

static void launched(struct run *run, const struct job_order *order)
{
    struct run_rank *r = &run->ranks[order->rank];
    struct cw_err err = {0};

    if (order->incarnation > 1)
        pmi_rank_restarted(run->pmi, order->rank);
    job_rank_started(&run->job, order->rank, run->now_ns);
    run_watch(run, r->process.watcher_fd, SOURCE_WATCHER, order->rank, EPOLLIN);
    run_watch(run, r->process.pmi_fd, SOURCE_PMI, order->rank, EPOLLIN);
    run_watch(run, r->process.control_fd, SOURCE_CONTROL, order->rank, EPOLLIN);
    run_say(run, "rank %u started (pid %d, %s)", order->rank, (int)r->process.pid,
            run->job_ranks[order->rank].program);
    job_events_write(&run->events, run->now_ns, JOB_EVENT_RANK_STARTED, order->rank,
                     job_number("incarnation", order->incarnation), job_number("slot", order->slot),
                     job_number("pid", (uint64_t)r->process.pid));
    if (run_open_streams(run, order->rank, &err) < 0)
        job_fail(&run->job, 1, run->now_ns, "%s", err.text);
}

void run_start_rank(struct run *run, const struct job_order *order)
{
    struct cw_err err = {0};

    if (order->incarnation > 1 && !order->again)
        run_tell(run, "rank %u %s; restarting it (incarnation %u)", order->rank, order->why,
                 order->incarnation);
    if (launch(run, order, &err) == CW_OK) {
        run->now_ns = cw_clock_ns();
        launched(run, order);
        return;
    }
    run->now_ns = cw_clock_ns();
    run_say(run, "%s (incarnation %u, slot %u)", err.text, order->incarnation, order->slot);
    job_start_failed(&run->job, order->rank, err.code == CW_ENOTFOUND ? 127 : 1, run->now_ns,
                     err.text);
}

/* --- letting go --- */

static void write_down(struct run *run, const struct job_order *order)
{
    int status = run->ranks[order->rank].status;
    struct job_field how = job_text("remains", "a process");

    if (order->hung)
        job_events_write(&run->events, run->now_ns, JOB_EVENT_RANK_HUNG, order->rank,
                         job_number("incarnation", order->incarnation));
    if (order->remains == JOB_REMAINS_NOTHING && WIFSIGNALED(status))
        how = job_number("signal", (uint64_t)WTERMSIG(status));
    else if (order->remains == JOB_REMAINS_NOTHING)
        how = job_number("exit_code", (uint64_t)WEXITSTATUS(status));
    job_events_write(&run->events, run->now_ns, JOB_EVENT_RANK_DOWN, order->rank,
                     job_number("incarnation", order->incarnation), job_text("cause", order->why),
                     how);
}

/* Hears its watcher out; without us it would end the process. */
static void keep_former(struct run *run, const struct job_order *order, int fd)
{
    struct run_former *more =
        realloc(run->formers, (run->former_count + 1) * sizeof(*run->formers));

    if (!more) {
        close(fd);
        return;
    }
    run->formers = more;
    more[run->former_count] = (struct run_former){fd, order->rank, order->incarnation};
    run_watch(run, fd, SOURCE_FORMER, run->former_count++, EPOLLIN);
}

static void end_remains(struct run *run, const struct job_order *order)
{
    struct launch_process *process = &run->ranks[order->rank].process;

    if (order->remains == JOB_REMAINS_KILL && process->watcher_fd < 0 && process->pid > 0)
        kill(-process->pid, SIGKILL);
    if (order->remains == JOB_REMAINS_KILL && process->watcher_fd >= 0)
        watcher_signal(process->watcher_fd, SIGKILL);
    if (process->watcher_fd >= 0) {
        run_unwatch(run, process->watcher_fd);
        keep_former(run, order, process->watcher_fd);
    }
    process->watcher_fd = -1;
    process->pid = 0;
}

void run_let_go(struct run *run, const struct job_order *order)
{
    struct run_rank *r = &run->ranks[order->rank];

    write_down(run, order);
    run_read_pmi(run, order->rank);
    run_read_control(run, order->rank);
    run_close_watched(run, &r->process.pmi_fd);
    run_close_watched(run, &r->process.control_fd);
    end_remains(run, order);
    if (!run->job.ending)
        run_interrupt_streams(run, order->rank, order->remains != JOB_REMAINS_NOTHING);
}

void run_read_former(struct run *run, uint32_t which)
{
    struct run_former *former = &run->formers[which];
    struct watcher_message ignored;
    int got = 1;

    while (former->fd >= 0 && (got = watcher_receive(former->fd, &ignored)) > 0)
        ;
    if (former->fd < 0 || got == 0)
        return;
    run_close_watched(run, &former->fd);
    run_say(run, "the former process of rank %u (incarnation %u) has ended", former->rank,
            former->incarnation);
}

void run_close_formers(struct run *run)
{
    for (uint32_t i = 0; i < run->former_count; i++)
        if (run->formers[i].fd >= 0)
            run_close_watched(run, &run->formers[i].fd);
    free(run->formers);
    run->formers = NULL;
    run->former_count = 0;
}
