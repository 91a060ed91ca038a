#include "tests/sim/process.h"
#include "common/cred.h"
#include "common/setup.h"
#include "tests/sim/coroutine.h"
#include "tests/sim/device_view.h"
#include "tests/sim/program.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_MAX 30
#define WAKE_EARLY_ONE_IN                                                                          \
    64 /* a poll() that returns though nothing came and it is not time yet                         \
        */

/* An allocation of a process: all go when it ends. */
struct chunk {
    struct chunk *next;
    struct chunk *prev;
    uint64_t unused[2]; /* what follows is aligned as malloc() aligns */
};

struct sim_process *process_now;
struct device *sim_device;
struct readings_writer *sim_written;

void *process_alloc(size_t size)
{
    struct chunk *chunk = malloc(sizeof(*chunk) + size);

    if (!chunk)
        abort();
    chunk->prev = NULL;
    chunk->next = process_now->memory;
    if (chunk->next)
        chunk->next->prev = chunk;
    process_now->memory = chunk;
    return chunk + 1;
}

void process_free(void *at)
{
    struct chunk *chunk = (struct chunk *)at - 1;

    if (chunk->next)
        chunk->next->prev = chunk->prev;
    if (chunk->prev)
        chunk->prev->next = chunk->next;
    else
        process_now->memory = chunk->next;
    free(chunk);
}

/* --- life ----------------------------------------------------------------------------------------
 */

static void fill_setup(struct sim_process *p, uint64_t fault_event)
{
    struct sim_rank *r = &sim.rank[p->rank];
    struct cw_setup setup = {.rank = p->rank,
                             .ranks = sim.plan.ranks,
                             .incarnation = p->incarnation,
                             .spin_ns = sim.plan.spin_ns,
                             .fault_event = fault_event,
                             .address = "unix:/simulated",
                             .early = r->early,
                             .early_size = r->early_size};
    uint8_t job_key[CW_KEY_SIZE];

    memcpy(setup.job, sim.job_id, sizeof(setup.job));
    cw_cred_job_key(job_key, sim.relay_key, sim.job_id);
    cw_cred_rank_key(setup.key, job_key, p->rank, p->incarnation);
    p->setup = malloc(CW_SETUP_MAX);
    if (!p->setup)
        abort();
    p->setup_size = cw_setup_put(p->setup, &setup);
    readings_begin(p, r->early, r->early_size);
}

struct sim_process *process_start(uint32_t rank, uint32_t incarnation, uint64_t fault_event)
{
    struct sim_process *p = calloc(1, sizeof(*p));

    if (!p || !(p->device = calloc(1, sizeof(*p->device))))
        abort();
    *p->device = (struct device)DEVICE_BEFORE;
    p->rank = rank;
    p->incarnation = incarnation;
    p->patience = sim_one_in(4) ? 1 + (uint32_t)sim_below(PATIENCE_MAX) : 1;
    p->coroutine = coroutine_new(program_main, p);
    fill_setup(p, fault_event);
    p->next = sim.processes;
    sim.processes = p;
    sim.rank[rank].process = p;
    sim_trace("%u.%u starts", rank, incarnation);
    return p;
}

static void release(struct sim_process *p)
{
    for (struct chunk *chunk = p->memory, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    p->memory = NULL;
    readings_fini(p);
    free(p->device);
    p->device = NULL;
    free(p->setup);
    p->setup = NULL;
}

static void end(struct sim_process *p, int status)
{
    uint64_t delay = sim_below(sim.plan.news_delay_ns);

    p->ended = true;
    p->status = status;
    p->news_ns = sim.now_ns + sim_below(sim.plan.news_delay_ns);
    if (p->link)
        link_die(p->link, delay);
    p->link = NULL;
    coroutine_drop(p->coroutine);
    p->coroutine = NULL;
    release(p);
}

void process_kill(struct sim_process *p, int status)
{
    if (p->ended)
        return;
    sim_trace("%u.%u is killed (status %#x)", p->rank, p->incarnation, (unsigned)status);
    end(p, status);
}

void processes_fini(void)
{
    while (sim.processes) {
        struct sim_process *p = sim.processes;

        sim.processes = p->next;
        if (!p->ended)
            end(p, 0);
        for (size_t i = 0; i < p->news_count; i++)
            free(p->news[i].bytes);
        record_fini(&p->record);
        free(p);
    }
}

/* --- turns ---------------------------------------------------------------------------------------
 */

static bool is_awake(const struct sim_process *p)
{
    return !p->waiting || sim.now_ns >= p->wake_ns ||
           (p->link && (((p->events & POLLIN) && link_readable(p->link)) ||
                        ((p->events & POLLOUT) && link_writable(p->link))));
}

bool process_can_run(const struct sim_process *p)
{
    return !p->ended && sim.now_ns >= p->stopped_ns && is_awake(p);
}

uint64_t process_deadline_ns(const struct sim_process *p)
{
    if (p->ended)
        return p->reaped || p->left ? UINT64_MAX : p->news_ns;
    if (sim.now_ns < p->stopped_ns)
        return p->stopped_ns;
    return p->waiting ? p->wake_ns : sim.now_ns;
}

void process_resume(struct sim_process *p)
{
    process_now = p;
    sim_device = p->device;
    sim_written = &p->readings.written;
    coroutine_resume(p->coroutine);
    process_now = NULL;
    sim_device = NULL;
    sim_written = NULL;
    if (p->ended) {
        /* it asked for its end; it could not go on its own stack */
        p->ended = false;
        end(p, p->status);
    }
}

void process_yield(void)
{
    coroutine_yield(process_now->coroutine);
}

void process_end(int status)
{
    sim_trace("%u.%u ends (status %#x)", process_now->rank, process_now->incarnation,
              (unsigned)status);
    process_now->status = status;
    process_now->ended = true;
    process_yield();
    abort();
}

void process_wait(short events, uint64_t wake_ns)
{
    struct sim_process *p = process_now;

    p->waiting = !sim_one_in(WAKE_EARLY_ONE_IN);
    p->events = events;
    p->wake_ns = wake_ns;
    process_yield();
    p->waiting = false;
}

void process_tell(enum process_news_kind kind, const void *bytes, size_t size)
{
    struct sim_process *p = process_now;
    struct process_news *news = &p->news[p->news_count];

    if (p->left)
        return;
    assert(p->news_count < PROCESS_NEWS_MAX);
    *news = (struct process_news){.kind = kind, .bytes = malloc(size + 1), .size = size};
    if (!news->bytes)
        abort();
    if (size)
        memcpy(news->bytes, bytes, size);
    p->news_count++;
}
