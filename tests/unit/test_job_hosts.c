/* The job core: slots belong to hosts, which are lost and come back. */
#include "common/setup.h"
#include "tests/unit/job_fixture.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <string.h>

SUITE("hosts of a job");

/* Host 0 has slots 0, 1 and 2; host 1 has 3, host 2 has 4. */
static const uint32_t slot_host[SLOTS] = {0, 0, 0, 1, 2};

/* The ranks begin on these slots. */
static void begin(const uint32_t *rank_slot, uint32_t count_of_slots, uint32_t ranks_max)
{
    const struct job_config config = {
        .ranks = RANKS, .recover = true, .restarts_max = 100, .alive_timeout_ns = TIMEOUT};
    struct job_slot made_of[SLOTS] = {0};

    for (uint32_t i = 0; i < count_of_slots; i++)
        made_of[i] = (struct job_slot){.host = slot_host[i], .ranks_max = ranks_max};
    make_on(&config, made_of, count_of_slots, rank_slot);
}

static void starts(uint32_t rank, uint32_t slot)
{
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    CU_ASSERT_EQUAL(order.process.rank, rank);
    CU_ASSERT_EQUAL(order.slot, slot);
}

static void run_on(const uint32_t *rank_slot, uint32_t count_of_slots, uint32_t ranks_max)
{
    begin(rank_slot, count_of_slots, ranks_max);
    for (uint32_t i = 0; i < RANKS; i++) {
        starts(i, rank_slot[i]);
        job_rank_started(&job, i, NOW);
    }
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
}

/* What is counted for the slots is what the ranks say. */
static void slots_agree(void)
{
    uint32_t counted[SLOTS] = {0};

    for (uint32_t i = 0; i < RANKS; i++)
        counted[ranks[i].slot] += ranks[i].state != JOB_RANK_ENDED;
    for (uint32_t i = 0; i < SLOTS; i++)
        CU_ASSERT_EQUAL(slots[i].ranks, counted[i]);
}

/* Ranks are where they were placed. */
static const uint32_t apart[RANKS] = {0, 1, 3};

TEST(first_on_the_own_host)
{
    run_on(apart, SLOTS, 1);
    job_rank_ended(&job, 1, KILLED(SIGKILL), NOW);
    starts(1, 1);
    job_start_failed(&job, 1, 1, NOW, "no");
    starts(1, 2);
    job_start_failed(&job, 1, 1, NOW, "no");
    starts(1, 4); /* of another host: that of rank 2 has no free one */
    job_rank_started(&job, 1, NOW);
    slots_agree();
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
}

TEST(lost_host_takes_its_ranks)
{
    run_on(apart, SLOTS, 1);
    host_is(LIFE_DEAD, 1, NOW);
    CU_ASSERT_EQUAL(job_next(&job, NOW, &order), JOB_DOWN);
    CU_ASSERT_EQUAL(order.process.rank, 2);
    CU_ASSERT_EQUAL(order.remains, JOB_REMAINS_LEAVE);
    CU_ASSERT_FALSE(order.hung);
    CU_ASSERT_STRING_EQUAL(order.why, LOST);
    starts(2, 4);
    job_rank_started(&job, 2, NOW);
    CU_ASSERT_EQUAL(ranks[2].restarts, 1);
    CU_ASSERT_TRUE(job_rank_runs(&job, 0) && job_rank_runs(&job, 1));
    slots_agree();
}

/* Slots 3 and 4 are at another site than the others. */
static void run_on_sites(bool any_site)
{
    const struct job_config config = {.ranks = RANKS,
                                      .recover = true,
                                      .any_site = any_site,
                                      .restarts_max = 100,
                                      .alive_timeout_ns = TIMEOUT};
    struct job_slot made_of[SLOTS] = {0};

    for (uint32_t i = 0; i < SLOTS; i++)
        made_of[i] = (struct job_slot){.host = slot_host[i], .site = i >= 3, .ranks_max = 1};
    make_on(&config, made_of, SLOTS, apart);
    for (uint32_t i = 0; i < RANKS; i++) {
        starts(i, apart[i]);
        job_rank_started(&job, i, NOW);
    }
}

TEST(first_at_the_own_site)
{
    run_on_sites(true);
    host_is(LIFE_DEAD, 1, NOW);
    starts(2, 4); /* the free slot 2 is elsewhere */
    job_rank_started(&job, 2, NOW);
    host_is(LIFE_DEAD, 2, NOW);
    CU_ASSERT_EQUAL(ranks[2].slot, 2);
    slots_agree();
}

/* It may be out of reach from the whole site, so its slots come last. */
TEST(away_from_where_the_relay_was_lost)
{
    run_on_sites(true);
    process_is(LIFE_SUSPECT, 2, "no route", NOW);
    job_rank_ended(&job, 2, EXITED(CW_EXIT_DEVICE), NOW);
    starts(2, 2); /* though its own slot is free */
    job_rank_started(&job, 2, NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    process_is(LIFE_SUSPECT, 0, "no route", NOW);
    job_rank_ended(&job, 0, EXITED(CW_EXIT_DEVICE), NOW);
    starts(0, 3);
    job_rank_started(&job, 0, NOW);
    slots_agree();
}

TEST(where_the_relay_was_lost_if_nowhere_else)
{
    run_on_sites(false);
    process_is(LIFE_SUSPECT, 2, "no route", NOW);
    job_rank_ended(&job, 2, EXITED(CW_EXIT_DEVICE), NOW);
    starts(2, 3);
    slots_agree();
}

TEST(at_the_own_site_alone)
{
    run_on_sites(false);
    host_is(LIFE_DEAD, 1, NOW);
    starts(2, 4);
    job_rank_started(&job, 2, NOW);
    host_is(LIFE_DEAD, 2, NOW);
    signals(SIGTERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "2 of 5 slots are on lost hosts"));
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "--restart-at grid"));
}

TEST(lost_host_is_not_used)
{
    run_on(apart, SLOTS, 1);
    host_is(LIFE_DEAD, 2, NOW); /* nobody is there */
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    host_is(LIFE_DEAD, 1, NOW);
    starts(2, 2);
    job_start_failed(&job, 2, 1, NOW, "no");
    signals(SIGTERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "started on no free slot"));
}

TEST(host_that_is_back_is_used)
{
    run_on(apart, SLOTS, 1);
    host_is(LIFE_DEAD, 1, NOW);
    starts(2, 4);
    job_rank_started(&job, 2, NOW);
    host_is(LIFE_BACK, 1, NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING); /* it stays where it is */
    host_is(LIFE_DEAD, 2, NOW + JOB_BACKOFF_MAX_NS);
    CU_ASSERT_EQUAL(next_at(NOW + 2 * JOB_BACKOFF_MAX_NS), JOB_START);
    CU_ASSERT_EQUAL(order.slot, 2); /* the next from 4 on that is free */
    job_start_failed(&job, 2, 1, NOW, "no");
    starts(2, 3);
}

TEST(too_few_slots)
{
    static const uint32_t filled[RANKS] = {0, 1, 2};

    run_on(filled, SLOTS, 1);
    host_is(LIFE_DEAD, 0, NOW);
    ends(1, "rank 2 (./prog) " LOST ", and there is no free slot for it: 3 of 5 slots are "
            "on lost hosts; give more hosts, as --spares, or let ranks share slots with "
            "--oversubscribe");
}

/* The ranks of one relay go where that goes, though other slots are free, and nowhere else. */
TEST(bound_to_a_host)
{
    static const uint32_t filled[RANKS] = {0, 1, 3};

    run_on(filled, SLOTS, 2);
    for (uint32_t i = 0; i < RANKS; i++)
        job_bind(&job, i, i < 2 ? 0 : 1);
    job_rank_ended(&job, 0, KILLED(SIGKILL), NOW);
    starts(0, 0);
    job_start_failed(&job, 0, 1, NOW, "no");
    starts(0, 2);
    job_rank_started(&job, 0, NOW);
    run_well(1);
    job_bind(&job, 0, 1);
    host_is(LIFE_DEAD, 0, NOW + JOB_BACKOFF_MAX_NS);
    CU_ASSERT_EQUAL(next_at(NOW + 2 * JOB_BACKOFF_MAX_NS), JOB_START);
    CU_ASSERT_EQUAL(order.slot, 3); /* which it shares, and slot 4 is free */
    job_start_failed(&job, 0, 1, NOW, "no");
    signals(SIGTERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "started on no free slot"));
}

/* It waits for its relay there, and both are to go on elsewhere. */
TEST(bound_anew_before_it_is_started)
{
    run_on(apart, SLOTS, 1);
    job_bind(&job, 2, 2);
    host_is(LIFE_DEAD, 1, NOW);
    starts(2, 4);
    job_bind(&job, 2, 0);
    host_is(LIFE_DEAD, 2, NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    job_start_failed(&job, 2, 1, NOW, "the host is lost");
    starts(2, 2);
    slots_agree();
}

/* When none is free any more, those with the fewest ranks. */
TEST(slots_are_shared)
{
    static const uint32_t filled[RANKS] = {0, 1, 2};

    run_on(filled, SLOTS, 2);
    host_is(LIFE_DEAD, 0, NOW);
    starts(0, 3);
    starts(1, 4);
    starts(2, 3);
    for (uint32_t i = 0; i < RANKS; i++)
        job_rank_started(&job, i, NOW);
    CU_ASSERT_EQUAL(slots[3].ranks, 2);
    slots_agree();
    host_is(LIFE_DEAD, 1, NOW); /* there is room for one of its two */
    signals(SIGTERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "rank 2 (./prog) was on host b"));
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "4 of 5 slots are on lost hosts"));
}

/* More ranks than slots from the beginning. A start that fails on a shared slot is not tried again
 * on others. */
TEST(shared_from_the_beginning)
{
    static const uint32_t together[RANKS] = {0, 0, 0};

    run_on(together, 1, 3);
    CU_ASSERT_EQUAL(slots[0].ranks, 3);
    run_well(1);
    CU_ASSERT_EQUAL(slots[0].ranks, 2);
    job_rank_ended(&job, 2, KILLED(SIGKILL), NOW);
    starts(2, 0);
    CU_ASSERT_EQUAL(slots[0].ranks, 2);
    job_start_failed(&job, 2, 127, NOW, "exec: No such file");
    signals(SIGTERM);
    CU_ASSERT_EQUAL(job.exit_code, 127);
}

/* A rank that waits to be started again there goes elsewhere, for the same reason as before. */
TEST(waiting_rank_moves)
{
    run_on(apart, SLOTS, 1);
    for (int i = 0; i < 2; i++) {
        job_rank_ended(&job, 2, KILLED(SIGKILL), NOW);
        if (i == 0) {
            starts(2, 3);
            job_rank_started(&job, 2, NOW);
        }
    }
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING); /* it waits for a moment */
    host_is(LIFE_DEAD, 1, NOW);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_BACKOFF_MIN_NS), JOB_START);
    CU_ASSERT_EQUAL(order.slot, 4);
    CU_ASSERT_STRING_EQUAL(order.why, "was killed by signal 9 (Killed)");
    CU_ASSERT_EQUAL(ranks[2].restarts, 2);
}

/* What its watcher's end was heard of first. */
TEST(watcher_is_lost_before_its_host)
{
    run_on(apart, SLOTS, 1);
    process_is(LIFE_DEAD, 2, "lost its watcher", NOW);
    host_is(LIFE_DEAD, 1, NOW);
    CU_ASSERT_EQUAL(job_next(&job, NOW, &order), JOB_DOWN);
    CU_ASSERT_EQUAL(order.remains, JOB_REMAINS_LEAVE);
    CU_ASSERT_STRING_EQUAL(order.why, LOST);
    starts(2, 4);
    CU_ASSERT_EQUAL(ranks[2].restarts, 1);
}

/* A host that is lost before its ranks were ever started. */
TEST(first_start_moves)
{
    begin(apart, SLOTS, 1);
    host_is(LIFE_DEAD, 1, NOW);
    starts(0, 0);
    starts(1, 1);
    starts(2, 4);
    host_is(LIFE_DEAD, 2, NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING); /* it is not known whether it starts */
    job_start_failed(&job, 2, 1, NOW, "no");
    starts(2, 2);
    CU_ASSERT_EQUAL(order.process.incarnation, 1);
    job_rank_started(&job, 2, NOW);
    CU_ASSERT_EQUAL(ranks[2].restarts, 0);
    slots_agree();
}

TEST(first_start_finds_no_slot)
{
    begin(apart, 4, 1);
    host_is(LIFE_DEAD, 0, NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_DONE);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "rank 0 (./prog) " LOST ", and there is no free"));
}

/* It says that it has started what is out of reach. */
TEST(started_on_a_lost_host)
{
    begin(apart, SLOTS, 1);
    starts(0, 0);
    starts(1, 1);
    starts(2, 3);
    host_is(LIFE_DEAD, 1, NOW);
    job_rank_started(&job, 2, NOW);
    CU_ASSERT_EQUAL(job_next(&job, NOW, &order), JOB_DOWN);
    CU_ASSERT_EQUAL(order.remains, JOB_REMAINS_LEAVE);
    CU_ASSERT_STRING_EQUAL(order.why, "was started on a host that is lost");
    starts(2, 4);
    CU_ASSERT_EQUAL(order.process.incarnation, 2);
}

TEST(lost_host_without_recovery)
{
    run_on(apart, SLOTS, 1);
    job.config.recover = false;
    host_is(LIFE_DEAD, 0, NOW);
    signals(SIGTERM);
    CU_ASSERT_STRING_EQUAL(job.reason, "rank 0 (./prog) " LOST);
    job_rank_ended(&job, 2, KILLED(SIGTERM), NOW);
    ends(1, "rank 0 (./prog) " LOST);
}

/* Its ranks count as ended: the job does not wait for them. */
TEST(lost_host_while_the_job_ends)
{
    run_on(apart, SLOTS, 1);
    job.config.kill_after_ns = JOB_GRACE_NS;
    job_interrupt(&job, SIGINT, NOW);
    signals(SIGINT);
    job_rank_ended(&job, 0, KILLED(SIGINT), NOW);
    job_rank_ended(&job, 1, KILLED(SIGINT), NOW);
    host_is(LIFE_DEAD, 1, NOW);
    ends(128 + SIGINT, "ended by signal 2 (Interrupt)");
}

TEST(ended_rank_is_not_started_again)
{
    run_on(apart, SLOTS, 1);
    run_well(2);
    host_is(LIFE_DEAD, 1, NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    run_well(0);
    run_well(1);
    ends(0, "");
}

/* Of a host that is not heard nothing is known: its ranks are silent from when it is heard again.
 */
TEST(suspect_host_excuses_its_ranks)
{
    uint64_t now_ns = NOW;

    run_on(apart, SLOTS, 1);
    host_is(LIFE_SUSPECT, 1, NOW);
    for (; now_ns <= NOW + 3 * TIMEOUT; now_ns += PERIOD) {
        process_is(LIFE_BACK, 0, NULL, now_ns);
        process_is(LIFE_BACK, 1, NULL, now_ns);
        CU_ASSERT_EQUAL(job_next(&job, now_ns, &order), JOB_NOTHING);
        CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 2, PERIOD, now_ns), "starting");
    }
    host_is(LIFE_BACK, 1, now_ns);
    for (uint64_t end_ns = now_ns + TIMEOUT; now_ns < end_ns; now_ns += PERIOD) {
        process_is(LIFE_BACK, 0, NULL, now_ns);
        process_is(LIFE_BACK, 1, NULL, now_ns);
        CU_ASSERT_EQUAL(job_next(&job, now_ns, &order), JOB_NOTHING);
    }
    CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 2, PERIOD, now_ns), "hung");
    CU_ASSERT_EQUAL(job_next(&job, now_ns, &order), JOB_DOWN);
    CU_ASSERT_EQUAL(order.process.rank, 2);
    CU_ASSERT_TRUE(order.hung);
}

/* It is silent, and loses its relay, because it has ended: how is told later. */
TEST(rank_that_has_ended_is_not_taken_for_hung)
{
    uint64_t now_ns = NOW;

    run_on(apart, SLOTS, 1);
    process_is(LIFE_ENDED, 2, NULL, NOW);
    job_rank_lost(&job, 2, 1, 0, 0, "its connection ended", NOW);
    for (; now_ns <= NOW + 3 * TIMEOUT; now_ns += PERIOD) {
        process_is(LIFE_BACK, 0, NULL, now_ns);
        process_is(LIFE_BACK, 1, NULL, now_ns);
        CU_ASSERT_EQUAL(job_next(&job, now_ns, &order), JOB_NOTHING);
        CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 2, PERIOD, now_ns), "starting");
    }
    job_rank_ended(&job, 2, SIGKILL, now_ns);
    CU_ASSERT_EQUAL(job_next(&job, now_ns, &order), JOB_DOWN);
    CU_ASSERT_FALSE(order.hung);
}

/* One that was lost is heard again for a moment: that does not say that it can be used. */
TEST(suspect_host_stays_away)
{
    run_on(apart, SLOTS, 1);
    host_is(LIFE_DEAD, 2, NOW);
    host_is(LIFE_SUSPECT, 2, NOW);
    host_is(LIFE_BACK, 2, NOW);
    CU_ASSERT_TRUE(slots[4].away);
    host_is(LIFE_BACK, 2, NOW);
    CU_ASSERT_FALSE(slots[4].away);
}
