#include "tests/sim/process.h"
#include "common/channel.h"
#include "common/cred.h"
#include "common/setup.h"
#include "tests/sim/datagrams.h"
#include "tests/sim/descriptors.h"
#include "tests/sim/image.h"
#include "tests/sim/program.h"
#include "tests/sim/relay.h"
#include "tests/sim/sim.h"
#include "tests/sim/slot.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define LINES_MAX 8 /* on their way */

/* An allocation of a process: all go when it ends. */
struct chunk {
    struct chunk *next;
    struct chunk *prev;
    uint64_t unused[2]; /* what follows is aligned as malloc() aligns */
};

void *process_alloc(size_t size)
{
    struct sim_process *p = process_now();
    struct chunk *chunk;

    if (p && p->slot)
        return slot_alloc(p->slot, size);
    chunk = malloc(sizeof(*chunk) + size);
    if (!chunk)
        abort();
    chunk->prev = NULL;
    chunk->next = p ? p->memory : NULL;
    if (chunk->next)
        chunk->next->prev = chunk;
    if (p)
        p->memory = chunk;
    return chunk + 1;
}

void process_free(void *at)
{
    struct chunk *chunk = (struct chunk *)at - 1;

    if (slot_has(at)) {
        slot_free(at);
        return;
    }
    if (chunk->next)
        chunk->next->prev = chunk->prev;
    if (chunk->prev)
        chunk->prev->next = chunk->next;
    else if (process_now())
        process_now()->memory = chunk->next;
    free(chunk);
}

static void tell(struct sim_process *p, enum process_news_kind kind, const void *bytes, size_t size)
{
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

/* --- life ----------------------------------------------------------------------------------------
 */

static void fill_setup(struct sim_process *p, uint64_t fault_event)
{
    struct sim_rank *r = &sim.rank[p->rank];
    struct cw_setup setup = {.process = {.rank = p->rank, .incarnation = p->incarnation},
                             .flags = CW_SETUP_CONTENTS_END,
                             .ranks = sim.plan.ranks,
                             .spin_ns = sim.plan.spin_ns,
                             .resume_ms = sim.plan.resume_ms,
                             .fault_event = fault_event,
                             .early = r->early,
                             .early_size = r->early_size};
    uint8_t job_key[CW_KEY_SIZE];

    relay_address(setup.address, sizeof(setup.address), sim.plan.homes[p->rank]);
    if (sim.plan.channel) {
        setup.flags |= CW_SETUP_CHANNEL;
        setup.channel_ranks = sim_ranks_beside(p->rank, setup.channel_rank);
        setup.channel_bytes = cw_channel_bytes(setup.channel_ranks, sim.plan.channel_log);
        setup.channel_disk = sim.plan.channel_file;
        setup.mailbox_bytes = SIM_MEMORY / sim.plan.ranks;
    }
    if (sim.plan.image_one_in)
        strcpy(setup.image_address[0], "unix:/simulated/images");
    setup.image_servers = sim.plan.image_one_in > 0;
    memcpy(setup.job, sim.job_id, sizeof(setup.job));
    cw_cred_job_key(job_key, sim.relay_key, sim.job_id);
    cw_cred_rank_key(setup.key, job_key, p->rank, p->incarnation);
    p->setup = malloc(CW_SETUP_MAX);
    if (!p->setup)
        abort();
    p->setup_size = cw_setup_put(p->setup, &setup);
}

static struct sim_process *process_new(uint32_t rank, uint32_t incarnation, uint64_t fault_event)
{
    struct sim_process *p = calloc(1, sizeof(*p));

    if (!p)
        abort();
    p->rank = rank;
    p->incarnation = incarnation;
    p->host = sim.relay[sim.plan.homes[rank]]->host;
    fill_setup(p, fault_event);
    p->next = sim.processes;
    sim.processes = p;
    sim.rank[rank].process = p;
    return p;
}

struct sim_process *process_start(uint32_t rank, uint32_t incarnation, uint64_t fault_event)
{
    struct sim_process *p = process_new(rank, incarnation, fault_event);

    if (sim.plan.image_one_in) {
        p->slot = slot_take(rank, p);
        p->library = p->slot->library;
        p->control_fd = descriptor_give(p->slot->number, (struct descriptor){.control = p});
        task_start_on(&p->task, p->slot->stack, program_main, p);
    } else {
        p->library = library_take();
        p->control_fd = descriptor_new((struct descriptor){.control = p});
        task_start(&p->task, program_main, p);
    }
    p->task.process = p;
    sim_trace("%u.%u starts", rank, incarnation);
    return p;
}

struct sim_process *process_go_on(const struct sim_image *image, uint32_t incarnation)
{
    struct sim_process *p = process_new(image->rank, incarnation, 0);

    p->slot = image->slot;
    p->library = p->slot->library;
    slot_take_again(p->slot, p);
    image_put_back(image, p);
    p->control_fd = descriptor_give(p->slot->number, (struct descriptor){.control = p});
    task_go_on(&p->task, p->slot->stack, image->at);
    p->task.process = p;
    sim_trace("%u.%u starts from image %u", p->rank, incarnation, image->number);
    tell(p, NEWS_INITIALIZED, NULL, 0);
    return p;
}

static void release(struct sim_process *p)
{
    for (struct chunk *chunk = p->memory, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    p->memory = NULL;
    if (p->slot)
        slot_release(p->slot);
    else
        library_release(p->library);
    p->library = NULL;
    free(p->setup);
    p->setup = NULL;
}

static void end(struct sim_process *p, int status)
{
    uint64_t delay = sim_below(sim.plan.news_delay_ns);

    p->ended = true;
    p->status = status;
    p->news_ns = sim.now_ns + sim_below(sim.plan.news_delay_ns);
    if (p->relay_socket)
        socket_die(p->relay_socket, delay);
    p->relay_socket = NULL;
    image_owner_ended(p);
    datagrams_owner_ended(p);
    sim.rank[p->rank].ended_step = sim.steps;
    descriptor_free(p->control_fd);
    task_drop(&p->task);
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

bool process_can_run(const struct sim_process *p)
{
    return !p->ended && sim.now_ns >= p->stopped_ns && task_is_awake(&p->task);
}

/* The dispatcher will hear of it. */
static bool end_is_to_come(const struct sim_process *p)
{
    return !p->reaped && !p->left && !p->end_wait.waits &&
           hosts_reach(p->host, SIM_HOST_DISPATCHER);
}

uint64_t process_deadline_ns(const struct sim_process *p)
{
    if (p->ended)
        return end_is_to_come(p) ? p->news_ns : UINT64_MAX;
    if (sim.now_ns < p->stopped_ns)
        return p->stopped_ns;
    return task_deadline_ns(&p->task);
}

/* Whether all of its host would have woken one that sleeps: none was killed or stopped when it had
 * taken that on itself, and all have bells where this one waits for its own. */
static bool others_wake(const struct sim_process *sleeper)
{
    bool at_bell = !sleeper->task.sleeping;

    for (uint32_t rank = 0; rank < sim.plan.ranks; rank++) {
        const struct sim_process *other = sim.rank[rank].process;

        if (sim.plan.hosts[rank] != sim.plan.hosts[sleeper->rank])
            continue;
        if (sim.rank[rank].ended_step >= sleeper->task.waiting_since ||
            (other && sim.now_ns < other->stopped_ns) ||
            (at_bell && other && other != sleeper && !other->ended && !datagrams_has(other)))
            return false;
    }
    return true;
}

static bool sleeps_in_channel(const struct sim_process *p)
{
    bool sleeps = p->task.sleeping || p->task.fds_count == TASK_FDS_MAX;

    return !p->ended && p->task.waiting && sleeps && sim.now_ns >= p->stopped_ns;
}

void processes_check_sleep(void)
{
    uint32_t rank;

    for (struct sim_process *p = sim.processes; p; p = p->next) {
        if (sleeps_in_channel(p) && others_wake(p) && p->library->device_was_not_woken(&rank))
            sim_fail("%u.%u sleeps, and rank %u has not woken it", p->rank, p->incarnation, rank);
    }
}

void process_resume(struct sim_process *p)
{
    task_resume(&p->task);
    if (p->task.ended)
        end(p, p->status);
}

void processes_go_on(void)
{
    for (struct sim_process *p = sim.processes; p; p = p->next)
        if (process_can_run(p) && sim_one_in(2))
            process_resume(p);
}

void process_end(int status)
{
    struct sim_process *p = process_now();

    sim_trace("%u.%u ends (status %#x)", p->rank, p->incarnation, (unsigned)status);
    p->status = status;
    task_end();
}

void process_tell(enum process_news_kind kind, const void *bytes, size_t size)
{
    tell(process_now(), kind, bytes, size);
}

void process_print(uint64_t number, uint64_t line)
{
    if (process_now()->news_count < LINES_MAX)
        process_tell(NEWS_LINE, &(struct process_line){number, line}, sizeof(struct process_line));
}
