#include "tests/unit/job_fixture.h"

#include <CUnit/CUnit.h>
#include <string.h>

struct job job;
struct job_rank ranks[RANKS];
struct job_slot slots[SLOTS];
struct job_order order;

void make_on(const struct job_config *config, const struct job_slot *made_of, uint32_t count,
             const uint32_t *rank_slot)
{
    memset(ranks, 0, sizeof(ranks));
    memcpy(slots, made_of, sizeof(slots));
    for (int i = 0; i < RANKS; i++)
        ranks[i].program = "./prog";
    job_init(&job, config, ranks);
    job_place(&job, slots, count, rank_slot);
}

void make_with(const struct job_config *config)
{
    static const struct job_slot zeroed[SLOTS];

    make_on(config, zeroed, config->ranks, NULL);
}

void make(uint32_t count)
{
    make_with(&(struct job_config){.ranks = count, .restarts_max = 9, .alive_timeout_ns = TIMEOUT});
}

enum job_action next_at(uint64_t now_ns)
{
    enum job_action action;

    do
        action = job_next(&job, now_ns, &order);
    while (action == JOB_DOWN);
    return action;
}

void process_is(enum life_what what, uint32_t rank, const char *text, uint64_t now_ns)
{
    job_life(
        &job,
        &(struct life_event){
            .what = what, .host = LIFE_NO_HOST, .process = job_process(&job, rank), .text = text},
        now_ns);
}

void host_is(enum life_what what, uint32_t host, uint64_t now_ns)
{
    job_life(&job, &(struct life_event){.what = what, .host = host, .text = LOST}, now_ns);
}

void start_all(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
        CU_ASSERT_EQUAL(order.process.rank, i);
        CU_ASSERT_EQUAL(order.slot, i);
        CU_ASSERT_EQUAL(order.process.incarnation, 1);
        CU_ASSERT_FALSE(order.again);
        job_rank_started(&job, i, NOW);
    }
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
}

void start(uint32_t count)
{
    make(count);
    start_all(count);
}

void run_well(uint32_t rank)
{
    job_rank_initialized(&job, rank, NOW);
    job_rank_finalized(&job, rank);
    job_rank_ended(&job, rank, EXITED(0), NOW);
}

void ends(int exit_code, const char *reason)
{
    CU_ASSERT_EQUAL(next_at(NOW), JOB_DONE);
    CU_ASSERT_EQUAL(job.exit_code, exit_code);
    CU_ASSERT_STRING_EQUAL(job.reason, reason);
    CU_ASSERT_EQUAL(job.running, 0);
    CU_ASSERT_EQUAL(job.in_mpi, 0);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), UINT64_MAX);
}

void signals(int signal)
{
    CU_ASSERT_EQUAL(next_at(NOW), JOB_SIGNAL);
    CU_ASSERT_EQUAL(job.signal_number, signal);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
}
