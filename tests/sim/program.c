#include "tests/sim/program.h"
#include "tests/sim/payload.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <string.h>

#define EARLY_READINGS_MAX 20
#define LINGER_MAX 3 /* turns between MPI_Finalize and the end of the process */
#define SPIN_MAX 200000u
#define READINGS_MAX 1000 /* more than one frame holds */
#define READINGS_ONE_IN 30
#define WAITS_ONE_IN 20
#define WAIT_NS_MAX 400000
#define INIT_PAUSE_NS 500000
#define RANDOM_MAX 100 /* bytes asked for at once */

/* --- the state -----------------------------------------------------------------------------------
 */

uint64_t program_mix(uint64_t hash, uint64_t what)
{
    hash = (hash ^ what) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

void program_see(struct program *g, uint64_t what)
{
    g->hash = program_mix(g->hash, what);
}

uint64_t program_choose(struct program *g, uint64_t bound)
{
    uint64_t bits = codec_random(&g->random);

    if (sim.plan.mode != SIM_ORDERED)
        bits = program_mix(bits, g->hash);
    return (bits >> 16) % bound;
}

size_t program_size(struct program *g)
{
    static const size_t near[] = {16, 2048, 8192, 16384, 65536, 262144};
    size_t max = sim.plan.message_max;
    size_t size;

    switch (program_choose(g, 8)) {
    case 0:
        return 0;
    case 1:
        size = near[program_choose(g, 6)] + program_choose(g, 65) - 32;
        break;
    case 2:
        size = program_choose(g, 40000);
        break;
    case 3:
        size = program_choose(g, 12) == 0 ? program_choose(g, 600000) : 20;
        break;
    default:
        size = program_choose(g, 200);
    }
    if ((ssize_t)size < 0)
        size = 0;
    return size <= max ? size : size % (max + 1);
}

/* --- what the steps have in common
 * ----------------------------------------------------------------------------
 */

void program_acted(struct program *g, struct record_act act, uint64_t clock, uint64_t hash)
{
    act.clock = clock;
    act.hash = hash;
    record_act(g->process, &act);
}

void program_check_count(const struct program *g)
{
    uint64_t acts = program_library()->device_look().acts;

    if (acts != g->process->record.act_count)
        program_wrong(g, "rank %u, incarnation %u, counts %llu acts after act %zu",
                      g->process->rank, g->process->incarnation, (unsigned long long)acts,
                      g->process->record.act_count);
}

void program_happened(struct program *g, struct record_event event)
{
    event.clock = program_polls();
    event.hash = g->hash;
    record_event(g->process, &event);
    program_see(g, event.tag ^ event.size << 40 ^ event.status ^ (uint64_t)event.type << 60);
}

struct program_request *program_open(struct program *g, int spare)
{
    for (int i = 0; i < PROGRAM_OPEN_MAX - spare; i++)
        if (!g->request[i].open) {
            g->request[i] = (struct program_request){.open = true};
            return &g->request[i];
        }
    return NULL;
}

/* --- time ----------------------------------------------------------------------------------------
 */

/* It waits for nothing, and nobody else can do anything about it. */
static void check_spinning(struct program *g)
{
    if (g->polls_step != sim.steps)
        g->polls = 0;
    g->polls_step = sim.steps;
    if (++g->polls < SPIN_MAX)
        return;
    sim_fail("rank %u, incarnation %u, polls for ever, at poll %llu", g->process->rank,
             g->process->incarnation, (unsigned long long)program_polls());
    task_yield();
}

/* As what a call of MPI does again and again while it waits. */
bool program_poll(struct program *g)
{
    unsigned count;

    check_spinning(g);
    g->process->record.polling = true;
    count = program_library()->ucp_worker_progress(g->worker);
    g->process->record.polling = false;
    program_ask_left(g);
    program_see(g, count);
    return count > 0;
}

/* As MPI_Test. */
bool program_test(struct program *g)
{
    program_library()->device_call();
    return program_poll(g);
}

/* As MPI_Wait: one call, which asks again and again. */
void program_wait(struct program *g, struct program_request *r)
{
    program_library()->device_call();
    while (!r->done)
        program_poll(g);
    program_library()->ucp_request_release(r->user);
    if (r->receiving)
        process_free(r->buffer);
    r->open = false;
}

static uint64_t see_bytes(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t sum = size;

    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + at[i];
    return sum;
}

/* Something that libc says, and that is different each time. */
static uint64_t ask_libc(struct program *g)
{
    const struct library *libc = program_library();
    clockid_t clock = (clockid_t)program_choose(g, 3) - 1; /* -1: there is none */
    struct timespec t = {0};
    struct timeval day;
    struct rusage usage;
    struct tms times;
    uint8_t bytes[RANDOM_MAX];
    ssize_t n;

    switch (program_choose(g, 8)) {
    case 0:
        n = libc->getrandom(bytes, 1 + program_choose(g, sizeof(bytes)), 0);
        return see_bytes(bytes, n > 0 ? (size_t)n : 0);
    case 1:
        return (uint64_t)libc->times(&times) ^ (uint64_t)times.tms_utime << 32;
    case 2:
        libc->getrusage(RUSAGE_SELF, &usage);
        return (uint64_t)usage.ru_minflt;
    case 3:
        libc->gettimeofday(&day, NULL);
        return (uint64_t)day.tv_usec ^ (uint64_t)day.tv_sec << 32;
    case 4:
        return (uint64_t)libc->time(NULL);
    default:
        n = libc->clock_gettime(clock, &t);
        return (uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 32 ^ (uint64_t)n << 60;
    }
}

static uint64_t ask_ns(void)
{
    struct timespec t;

    program_library()->clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A loop that does nothing else; the clock may tell the same again, but never goes back. */
static void wait_on_clock(struct program *g)
{
    uint64_t now = ask_ns();
    uint64_t until = now + program_choose(g, WAIT_NS_MAX);

    while (now < until) {
        uint64_t next = ask_ns();

        if (next < now)
            sim_fail("rank %u: the clock goes back", g->process->rank);
        now = next;
        program_see(g, now);
    }
}

void program_read_clock(struct program *g)
{
    uint64_t count = program_choose(g, READINGS_ONE_IN) ? 1 : program_choose(g, READINGS_MAX);

    if (!program_choose(g, WAITS_ONE_IN))
        wait_on_clock(g);
    for (uint64_t i = 0; i < count; i++)
        program_see(g, ask_libc(g));
}

/* --- from the start ------------------------------------------------------------------------------
 */

static void make_endpoints(struct program *g)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    uint32_t words[2];
    size_t size;

    program_library()->ucp_worker_get_address(g->worker, &address, &size);
    assert(size == sizeof(words));
    memcpy(words, address, size);
    for (words[1] = 0; words[1] < g->ranks; words[1]++) {
        params.address = (const ucp_address_t *)words;
        program_library()->ucp_ep_create(g->worker, &params, &g->ep[words[1]]);
    }
}

static void open_device(struct program *g)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_REQUEST_SIZE, .request_size = 32};
    ucp_worker_params_t worker_params = {0};
    ucp_am_handler_param_t parts = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                  UCP_AM_HANDLER_PARAM_FIELD_CB,
                                    .id = PROGRAM_PARTS_ID,
                                    .cb = program_on_parts};
    ucp_context_h context;

    program_library()->ucp_init_version(UCP_API_MAJOR, 0, &params, NULL, &context);
    program_library()->ucp_worker_create(context, &worker_params, &g->worker);
    program_library()->ucp_worker_set_am_handler(g->worker, PROGRAM_ACTIVE_ID, program_on_active,
                                                 NULL, 0);
    program_library()->ucp_worker_set_am_recv_handler(g->worker, &parts);
    make_endpoints(g);
}

/* As MPI_Init, which asks the dispatcher, and so ends after that has heard of what went before. */
static void wait_for_dispatcher(void)
{
    const struct sim_process *p = process_now();

    while (sim.plan.copies &&
           (!sim.rank[p->rank].initialized || !hosts_reach(p->host, SIM_HOST_DISPATCHER)))
        task_wait(NULL, 0, sim.now_ns + INIT_PAUSE_NS);
}

void program_main(void *process)
{
    struct program *g = process_alloc(sizeof(*g));

    *g = (struct program){.process = process,
                          .ranks = sim.plan.ranks,
                          .random = sim_mix(sim.plan.program_seed, process_now()->rank)};
    process_now()->program = g;
    program_library()->device_begin();
    for (uint64_t i = program_choose(g, EARLY_READINGS_MAX); i > 0; i--)
        program_see(g, ask_libc(g));
    open_device(g);
    process_tell(NEWS_INITIALIZED, NULL, 0);
    wait_for_dispatcher();
    if (sim.plan.mode == SIM_ORDERED)
        program_run_ordered(g);
    else
        program_run_racy(g);
    program_close(g);
    program_library()->ucp_worker_destroy(g->worker);
    process_tell(NEWS_FINALIZED, NULL, 0);
    program_read_clock(g);
    for (uint64_t i = program_choose(g, LINGER_MAX); i > 0; i--)
        task_yield();
    g->process->record.whole = true; /* it may not be the one that began */
    g->process->record.hash = g->data ^ g->data_sum;
    process_end(0);
}
