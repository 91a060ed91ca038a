/* The job's relays: starting them, opening the job there, linking them, hearing of them, and ending
 * them. */
#include "common/clock.h"
#include "common/cred.h"
#include "common/keyfile.h"
#include "dispatcher/homes.h"
#include "dispatcher/relay_child.h"
#include "dispatcher/run_state.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RELAY_END_MS 5000 /* for an embedded relay to end */
#define LINK_MS 15000     /* for the relays of a job to link to each other */
#define LINK_LOOK_MS 100  /* between looks at the clock meanwhile */
#define SPIN_NS 200000ull /* where a core has at most SPIN_RANKS_A_CORE ranks; else none spins */
#define SPIN_RANKS_A_CORE 2

uint64_t run_choose_spin(const struct run_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (options->spin_ns != UINT64_MAX)
        return options->spin_ns;
    return options->ranks <= SPIN_RANKS_A_CORE * cores ? SPIN_NS : 0;
}

/* --- starting --- */

static int key_of_relay(struct run_relay *relay, struct cw_err *err)
{
    const char *key_file = relay->run->options->key_file;
    char beside[CW_ADDRESS_MAX + 8];

    if (key_file)
        return cw_key_load(key_file, relay->key, err);
    if (strncmp(relay->address, "unix:", 5) != 0)
        return cw_err_set(err, CW_EINVAL, "--relay %s needs --key-file FILE, the key of that relay",
                          relay->address);
    snprintf(beside, sizeof(beside), "%s.key", relay->address + 5);
    if (access(beside, F_OK) < 0)
        return cw_err_set(err, CW_ENOTFOUND,
                          "--relay %s: no key beside it (%s); is a relay running there?",
                          relay->address, beside);
    return cw_key_load(beside, relay->key, err);
}

static int start_own_relay(struct run_relay *relay, uint32_t number, struct cw_err *err)
{
    struct run *run = relay->run;
    struct relay_child_config config = {.key = relay->key,
                                        .options = run->options->relay_options,
                                        .spin_ns = run_choose_spin(run->options)};
    char path[RUNDIR_MAX + 32];
    pid_t pid;

    /* the first one has no number: its place is where others look */
    if (number == 0)
        snprintf(path, sizeof(path), "%s/relay", run->dir.path);
    else
        snprintf(path, sizeof(path), "%s/relay.%u", run->dir.path, number);
    snprintf(relay->address, sizeof(relay->address), "unix:%s", path);
    config.socket_path = path;
    cw_key_random(relay->key);
    pid = relay_child_start(&config, err);
    if (pid < 0)
        return err->code;
    relay->pid = pid;
    run_say(run, "relay started (pid %d, %s)", (int)pid, relay->address);
    return CW_OK;
}

static int open_relay(struct run *run, uint32_t number, struct cw_err *err)
{
    uint32_t flags = run->options->no_log ? 0 : CW_HELLO_LOG;
    struct run_relay *relay = &run->relays[number];
    const char *address = run->options->relay_addresses[number];
    int failed;

    if (run->options->relay_count)
        snprintf(relay->address, sizeof(relay->address), "%s", address);
    failed =
        run->options->relay_count ? key_of_relay(relay, err) : start_own_relay(relay, number, err);
    if (failed)
        return failed;
    cw_cred_job_key(relay->job_key, relay->key, run->job_id);
    if (relay_link_open(&relay->link, relay->address, run->job_id, run->options->ranks, flags,
                        relay->key, err) < 0)
        return err->code;
    return job_service_add(&run->services, SERVICE_RELAY, relay->address, err);
}

/* --- links between them --- */

static int tell_routes(const struct run *run, uint32_t number, struct cw_err *err)
{
    const struct run_options *options = run->options;
    struct cw_route route = {.self = number, .relays = options->relays};
    bool *told = calloc(options->ranks, sizeof(*told));
    uint8_t body[CW_ROUTE_SIZE];

    if (!told)
        return cw_err_set(err, CW_ENOMEM, "no memory for the routes of %u ranks", options->ranks);
    while (err->code == CW_OK && homes_next_route(options->homes, options->ranks, told, &route)) {
        cw_route_put(body, &route);
        relay_link_tell(&run->relays[number].link, CW_FRAME_ROUTE, body, sizeof(body), err);
    }
    free(told);
    return err->code;
}

/* Of two relays the one with the lower number connects. */
static int tell_link(const struct run *run, uint32_t from, uint32_t to, struct cw_err *err)
{
    struct cw_link link = {.peer = to};
    uint8_t body[CW_LINK_SIZE + CW_LINK_ADDRESS_MAX];
    uint8_t key[CW_KEY_SIZE];

    cw_cred_link_key(key, run->relays[to].job_key, from);
    cw_cred_seal(link.sealed, key, run->relays[from].job_key);
    snprintf(link.address, sizeof(link.address), "%s", run->relays[to].address);
    return relay_link_tell(&run->relays[from].link, CW_FRAME_LINK, body,
                           (uint32_t)cw_link_put(body, &link), err);
}

static void hear_of_links(void *ctx, const struct cw_notice_body *notice)
{
    struct run_relay *relay = ctx;

    relay->linked |= notice->code == CW_NOTICE_LINKED;
    if (notice->code == CW_NOTICE_FATAL)
        job_fail(&relay->run->job, 1, relay->run->now_ns, "relay %s: %s", relay->address,
                 notice->text);
}

static void no_stats(void *ctx, const struct cw_stats *stats)
{
    (void)ctx;
    (void)stats;
}

static int await_linked(struct run_relay *relay, struct cw_err *err)
{
    static const struct relay_link_ops ops = {hear_of_links, no_stats};
    struct pollfd p = {.fd = relay->link.fd, .events = POLLIN};
    uint64_t until_ns = cw_clock_ns() + LINK_MS * 1000000ull;

    while (!relay->linked && !relay->run->job.ending) {
        if (cw_clock_ns() > until_ns)
            return cw_err_set(err, CW_ESYS,
                              "relay %s: no links to the other relays of the job after %d s",
                              relay->address, LINK_MS / 1000);
        poll(&p, 1, LINK_LOOK_MS);
        if (relay_link_input(&relay->link, &ops, relay, err) < 0)
            return cw_err_wrap(err, "relay %s", relay->address);
    }
    if (relay->run->job.ending)
        return cw_err_set(err, CW_ESYS, "%s", relay->run->job.reason);
    return CW_OK;
}

static int link_relays(struct run *run, struct cw_err *err)
{
    uint32_t relays = run->options->relays;

    err->code = CW_OK;
    for (uint32_t i = 0; i < relays; i++)
        if (tell_routes(run, i, err) < 0)
            return cw_err_wrap(err, "relay %s", run->relays[i].address);
    for (uint32_t i = 0; i < relays; i++)
        for (uint32_t j = i + 1; j < relays; j++)
            if (tell_link(run, i, j, err) < 0)
                return cw_err_wrap(err, "relay %s", run->relays[i].address);
    for (uint32_t i = 0; i < relays; i++)
        if (await_linked(&run->relays[i], err) < 0)
            return err->code;
    return CW_OK;
}

int run_open_relays(struct run *run, struct cw_err *err)
{
    uint32_t relays = run->options->relays;

    randombytes_buf(run->job_id, sizeof(run->job_id));
    run->services.homes = run->options->homes;
    for (uint32_t i = 0; i < relays; i++)
        if (open_relay(run, i, err) < 0)
            return err->code;
    if (relays > 1 && link_relays(run, err) < 0)
        return err->code;
    for (uint32_t i = 0; i < relays; i++)
        run_watch(run, run->relays[i].link.fd, SOURCE_RELAY, i, EPOLLIN);
    return CW_OK;
}

/* --- their ends --- */

struct run_relay *run_relay_of(const struct run *run, pid_t pid)
{
    for (uint32_t i = 0; run->relays && i < run->options->relays; i++)
        if (run->relays[i].pid == pid)
            return &run->relays[i];
    return NULL;
}

void run_relay_ended(struct run_relay *relay, int status)
{
    struct run *run = relay->run;

    relay->pid = 0;
    if (WIFSIGNALED(status))
        job_fail(&run->job, 1, run->now_ns,
                 "the relay %s was killed by signal %d (%s); the messages in "
                 "it are lost, so the job ends",
                 relay->address, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        job_fail(&run->job, 1, run->now_ns, "the relay %s ended with code %d, so the job ends",
                 relay->address, WEXITSTATUS(status));
}

bool run_own_relay_ended(struct run *run)
{
    int status;

    for (uint32_t i = 0; i < run->options->relays; i++) {
        struct run_relay *relay = &run->relays[i];

        if (!relay->pid || waitpid(relay->pid, &status, WNOHANG) != relay->pid)
            continue;
        run_relay_ended(relay, status);
        return true;
    }
    return false;
}

void run_relay_addresses(const struct run *run, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < run->options->relays && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "",
                                 run->relays[i].address);
}

/* --- what it tells of the ranks --- */

static void rank_back(struct run *run, uint32_t rank, uint64_t repeated)
{
    const struct job_rank *r = &run->job_ranks[rank];
    uint64_t took_ns = run->now_ns - r->up_ns;

    if (r->incarnation < 2 || run->job.ending)
        return;
    run_tell(run, "rank %u is back: it repeated %" PRIu64 " events in %.2f s and goes on", rank,
             repeated, (double)took_ns / 1e9);
    job_events_write(&run->events, run->now_ns, JOB_EVENT_RANK_LIVE, rank,
                     job_number("incarnation", r->incarnation), job_number("events", repeated),
                     job_seconds("seconds", took_ns));
}

static void rank_up(struct run *run, const struct cw_notice_body *notice)
{
    bool live = job_rank_up(&run->job, notice->rank, notice->incarnation, notice->acts,
                            notice->event, run->now_ns);

    job_events_write(&run->events, run->now_ns, JOB_EVENT_RANK_UP, notice->rank,
                     job_number("incarnation", notice->incarnation));
    if (live)
        rank_back(run, notice->rank, 0);
    else if (notice->incarnation > 1)
        job_events_write(&run->events, run->now_ns, JOB_EVENT_RANK_REPLAYING, notice->rank,
                         job_number("incarnation", notice->incarnation),
                         job_number("events", notice->event), job_number("acts", notice->acts));
}

static void on_rank_notice(struct run *run, const struct cw_notice_body *notice)
{
    switch (notice->code) {
    case CW_NOTICE_RANK_UP:
        rank_up(run, notice);
        break;
    case CW_NOTICE_RANK_LIVE:
        if (job_rank_live(&run->job, notice->rank, notice->incarnation))
            rank_back(run, notice->rank, notice->event);
        break;
    case CW_NOTICE_RANK_LOST:
        job_rank_lost(&run->job, notice->rank, notice->incarnation, notice->acts, notice->event,
                      notice->text, run->now_ns);
        break;
    }
}

static void on_notice(void *ctx, const struct cw_notice_body *notice)
{
    const struct run_relay *relay = ctx;
    struct run *run = relay->run;
    char text[CW_ADDRESS_MAX + CW_TEXT_MAX + 16];

    if (notice->rank == JOB_NO_RANK)
        run_say(run, "relay: %s", notice->text);
    else
        run_say(run, "relay: rank %u: %s", notice->rank, notice->text);
    if (notice->code == CW_NOTICE_FATAL || notice->code == CW_NOTICE_DIVERGED)
        job_fail(&run->job, 1, run->now_ns, "%s", notice->text);
    else if (notice->code == CW_NOTICE_UNLINKED) {
        /* most likely the other relay has ended, of which there is more to be heard */
        snprintf(text, sizeof(text), "relay %s: %s", relay->address, notice->text);
        job_relay_lost(&run->job, text, run->now_ns);
    } else if (notice->rank < run->options->ranks || notice->rank == JOB_NO_RANK) {
        if (notice->code == CW_NOTICE_UNLOGGED)
            run_unlogged(run, notice->rank, notice->text);
        else if (notice->rank != JOB_NO_RANK)
            on_rank_notice(run, notice);
    }
}

static void on_stats(void *ctx, const struct cw_stats *stats)
{
    run_take_stats(((struct run_relay *)ctx)->run, stats);
}

static const struct relay_link_ops link_ops = {on_notice, on_stats};

void run_read_relay(struct run *run, uint32_t number)
{
    struct run_relay *relay = &run->relays[number];
    struct relay_link *link = &relay->link;
    struct cw_err err = {0};

    if (link->fd < 0 || relay_link_input(link, &link_ops, relay, &err) == CW_OK)
        return;
    run_unwatch(run, link->fd);
    relay_link_close(link);
    cw_err_wrap(&err, "relay %s", relay->address);
    if (!run_own_relay_ended(run))
        job_relay_lost(&run->job, err.text, run->now_ns);
}

static void await_end(pid_t pid)
{
    struct timespec t = {.tv_nsec = 1000000};
    int status;

    for (int ms = 0; ms < RELAY_END_MS; ms++) {
        if (waitpid(pid, &status, WNOHANG) != 0)
            return;
        nanosleep(&t, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

void run_stop_relays(struct run *run)
{
    for (uint32_t i = 0; run->relays && i < run->options->relays; i++) {
        relay_link_close(&run->relays[i].link);
        if (run->relays[i].pid > 0)
            kill(run->relays[i].pid, SIGTERM);
    }
    for (uint32_t i = 0; run->relays && i < run->options->relays; i++)
        if (run->relays[i].pid > 0)
            await_end(run->relays[i].pid);
    free(run->relays);
    run->relays = NULL;
}
