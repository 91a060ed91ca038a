/* The job core: when a rank is started again, and when a crash ends the job. */
#include "common/setup.h"
#include "tests/unit/job_fixture.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <string.h>

SUITE("restart");

static const struct job_config recovering = {
    .ranks = RANKS, .recover = true, .restarts_max = 100, .alive_timeout_ns = TIMEOUT};

static void start_recovering(const struct job_config *config)
{
    make_with(config);
    start_all(RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        job_rank_initialized(&job, i, NOW);
        CU_ASSERT_TRUE(job_rank_up(&job, i, 1, 0, 0, NOW));
    }
}

/* At this time the rank is to be let go of. */
static void goes_down(uint32_t rank, enum job_remains remains, uint64_t now_ns, const char *why)
{
    CU_ASSERT_EQUAL(job_next(&job, now_ns, &order), JOB_DOWN);
    CU_ASSERT_EQUAL(order.process.rank, rank);
    CU_ASSERT_EQUAL(order.remains, remains);
    CU_ASSERT_EQUAL(order.hung, remains == JOB_REMAINS_LEAVE);
    CU_ASSERT_STRING_EQUAL(order.why, why);
}

/* At this time, and not a moment before it, the rank is to be started. */
static void comes_back(uint32_t rank, uint32_t incarnation, uint64_t at_ns, uint64_t now_ns)
{
    if (at_ns > now_ns) {
        CU_ASSERT_EQUAL(job_next(&job, at_ns - 1, &order), JOB_NOTHING);
        CU_ASSERT_EQUAL(job_deadline_ns(&job), at_ns);
    }
    CU_ASSERT_EQUAL(job_next(&job, at_ns, &order), JOB_START);
    CU_ASSERT_EQUAL(order.process.rank, rank);
    CU_ASSERT_EQUAL(order.process.incarnation, incarnation);
    CU_ASSERT_EQUAL(job_next(&job, at_ns, &order), JOB_NOTHING);
    job_rank_started(&job, rank, at_ns);
    CU_ASSERT_EQUAL(ranks[rank].incarnation, incarnation);
    CU_ASSERT_EQUAL(ranks[rank].restarts, incarnation - 1);
}

/* The rank is killed from outside, at this place, which its relay tells first. */
static void dies(uint32_t rank, int signal, uint64_t acts, uint64_t event)
{
    job_rank_up(&job, rank, ranks[rank].incarnation, acts, event, NOW);
    job_rank_lost(&job, rank, ranks[rank].incarnation, acts, event, "closed", NOW);
    job_rank_ended(&job, rank, KILLED(signal), NOW);
}

TEST(crash_is_followed_by_a_restart)
{
    start_recovering(&recovering);
    dies(1, SIGKILL, 5, 3);
    CU_ASSERT_FALSE(job_rank_runs(&job, 1));
    CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 1, PERIOD, NOW), "down");
    goes_down(1, JOB_REMAINS_NOTHING, NOW, "was killed by signal 9 (Killed)");
    comes_back(1, 2, NOW, NOW);
    CU_ASSERT_STRING_EQUAL(order.why, "was killed by signal 9 (Killed)");
    CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 1, PERIOD, NOW), "starting");
    CU_ASSERT_FALSE(job_rank_up(&job, 1, 2, 5, 3, NOW));
    CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 1, PERIOD, NOW), "replaying");
    CU_ASSERT_TRUE(job_rank_live(&job, 1, 2));
    CU_ASSERT_FALSE(job_rank_live(&job, 1, 2));
    CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 1, PERIOD, NOW), "live");
    CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 1, PERIOD, NOW + 4 * PERIOD), "hung");
    for (uint32_t i = 0; i < RANKS; i++)
        run_well(i);
    CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 1, PERIOD, NOW), "ended");
    ends(0, "");
}

/* Before MPI_Init, in MPI_Finalize and after it, all ranks at once. */
TEST(crash_at_any_time)
{
    make_with(&recovering);
    start_all(RANKS);
    job_rank_initialized(&job, 1, NOW);
    job_rank_finalized(&job, 1);
    job_rank_initialized(&job, 2, NOW);
    for (uint32_t i = 0; i < RANKS; i++)
        job_rank_ended(&job, i, KILLED(SIGTERM), NOW);
    CU_ASSERT_EQUAL(job.running, 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        goes_down(i, JOB_REMAINS_NOTHING, NOW, "was killed by signal 15 (Terminated)");
        CU_ASSERT_EQUAL(job_next(&job, NOW, &order), JOB_START);
        CU_ASSERT_EQUAL(order.process.rank, i);
        job_rank_started(&job, i, NOW);
    }
    CU_ASSERT_EQUAL(job_next(&job, NOW, &order), JOB_NOTHING);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_FALSE(ranks[i].called_init || ranks[i].called_finalize);
        run_well(i);
    }
    ends(0, "");
}

/* What cannot go on from an image is started from something else, at once, and that is no crash. */
TEST(one_that_cannot_be_restored_is_no_crash)
{
    start_recovering(&recovering);
    dies(1, SIGKILL, 5, 3);
    goes_down(1, JOB_REMAINS_NOTHING, NOW, "was killed by signal 9 (Killed)");
    comes_back(1, 2, NOW, NOW);
    for (uint32_t i = 0; i < JOB_RESTARTS_MAX + 1; i++) {
        job_rank_from_image(&job, 1, 2);
        job_rank_not_restored(&job, 1);
        job_rank_ended(&job, 1, EXITED(113), NOW);
        goes_down(1, JOB_REMAINS_NOTHING, NOW, "could not be restored");
        CU_ASSERT_EQUAL(job_next(&job, NOW, &order), JOB_START);
        CU_ASSERT_EQUAL(order.process.incarnation, 3 + i);
        job_rank_started(&job, 1, NOW);
        CU_ASSERT_EQUAL(ranks[1].restarts, 1);
    }
    /* what it repeats counts from its image */
    job_rank_from_image(&job, 1, 2);
    job_rank_up(&job, 1, ranks[1].incarnation, 5, 3, NOW);
    CU_ASSERT_EQUAL(ranks[1].to_repeat, 1);
    /* from then on it is a rank like any other */
    job_rank_not_restored(&job, 1);
    CU_ASSERT_FALSE(ranks[1].not_restored);
    for (uint32_t i = 0; i < RANKS; i++)
        run_well(i);
    ends(0, "");
}

TEST(one_that_cannot_be_restored_while_the_job_ends)
{
    start_recovering(&recovering);
    dies(1, SIGKILL, 5, 3);
    goes_down(1, JOB_REMAINS_NOTHING, NOW, "was killed by signal 9 (Killed)");
    comes_back(1, 2, NOW, NOW);
    job_rank_from_image(&job, 1, 2);
    job_rank_not_restored(&job, 1);
    job_fail(&job, 7, NOW, "enough");
    job_rank_ended(&job, 1, EXITED(113), NOW);
    CU_ASSERT_EQUAL(ranks[1].state, JOB_RANK_ENDED);
}

/* One that ended well is not needed any more. */
TEST(crash_after_another_ended_well)
{
    start_recovering(&recovering);
    run_well(0);
    run_well(2);
    dies(1, SIGKILL, 1, 1);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_rank_started(&job, 1, NOW);
    run_well(1);
    ends(0, "");
}

TEST(program_errors_are_not_restarted)
{
    start_recovering(&recovering);
    job_rank_ended(&job, 1, EXITED(3), NOW);
    signals(SIGTERM);
    CU_ASSERT_STRING_EQUAL(job.reason,
                           "rank 1 (./prog) exited with code 3 without calling MPI_Finalize");
    start_recovering(&recovering);
    job_rank_ended(&job, 1, EXITED(0), NOW);
    signals(SIGTERM);
    start_recovering(&recovering);
    job_rank_ended(&job, 1, EXITED(CW_EXIT_DEVICE), NOW);
    signals(SIGTERM);
    start_recovering(&recovering);
    job_rank_finalized(&job, 1);
    job_rank_ended(&job, 1, EXITED(3), NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    CU_ASSERT_EQUAL(job.exit_code, 3);
}

TEST(nothing_is_restarted_while_the_job_ends)
{
    start_recovering(&recovering);
    dies(0, SIGKILL, 1, 1);
    job_fail(&job, 4, NOW, "why");
    goes_down(0, JOB_REMAINS_NOTHING, NOW, "was killed by signal 9 (Killed)");
    signals(SIGTERM);
    job_rank_ended(&job, 1, KILLED(SIGTERM), NOW);
    job_rank_ended(&job, 2, KILLED(SIGSEGV), NOW);
    ends(4, "why");
}

/* The user's own signal is no crash. */
TEST(signal_passed_on)
{
    start_recovering(&recovering);
    job_signal_passed_on(&job, SIGUSR1);
    dies(0, SIGUSR1, 1, 1);
    signals(SIGTERM);
    CU_ASSERT_EQUAL(job.exit_code, 128 + SIGUSR1);
}

TEST(fault_at_the_same_place)
{
    start_recovering(&recovering);
    dies(1, SIGSEGV, 7, 4);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_rank_started(&job, 1, NOW);
    dies(1, SIGSEGV, 7, 4);
    signals(SIGTERM);
    CU_ASSERT_EQUAL(job.exit_code, 128 + SIGSEGV);
    CU_ASSERT_STRING_EQUAL(job.reason,
                           "rank 1 (./prog) was killed by signal 11 (Segmentation fault) again at "
                           "the same event (4): a fault of the program, which a restart does not "
                           "mend");
}

/* Another place, another signal, or one from outside: no proof. */
TEST(fault_elsewhere)
{
    static const struct {
        int signal;
        uint64_t acts;
        uint64_t event;
    } then[] = {{SIGSEGV, 8, 4}, {SIGSEGV, 7, 5}, {SIGBUS, 7, 4}, {SIGKILL, 7, 4}};

    for (size_t i = 0; i < sizeof(then) / sizeof(*then); i++) {
        start_recovering(&recovering);
        dies(1, SIGSEGV, 7, 4);
        CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
        job_rank_started(&job, 1, NOW);
        dies(1, then[i].signal, then[i].acts, then[i].event);
        CU_ASSERT_EQUAL(next_at(NOW + JOB_BACKOFF_MAX_NS), JOB_START);
    }
    start_recovering(&recovering);
    for (int i = 0; i < 5; i++) { /* from outside it may come as often as it likes */
        dies(1, SIGTERM, 7, 4);
        CU_ASSERT_EQUAL(next_at(NOW + JOB_BACKOFF_MAX_NS), JOB_START);
        job_rank_started(&job, 1, NOW);
    }
}

/* Three times in all, but never twice in succession. */
TEST(fault_with_another_between)
{
    static const int then[] = {SIGSEGV, SIGKILL, SIGSEGV};

    start_recovering(&recovering);
    for (int i = 0; i < 3; i++) {
        dies(1, then[i], 7, 4);
        CU_ASSERT_EQUAL(next_at(NOW + JOB_BACKOFF_MAX_NS), JOB_START);
        job_rank_started(&job, 1, NOW);
    }
}

/* The exit status comes before the relay's word: that is waited for. */
TEST(fault_whose_place_comes_late)
{
    for (int same = 0; same < 2; same++) {
        start_recovering(&recovering);
        job_rank_ended(&job, 1, KILLED(SIGSEGV), NOW);
        CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
        job_rank_started(&job, 1, NOW);
        job_rank_lost(&job, 1, 1, 7, 4, "closed", NOW); /* of the one before */
        job_rank_initialized(&job, 1, NOW);
        job_rank_ended(&job, 1, KILLED(SIGSEGV), NOW);
        CU_ASSERT_EQUAL(next_at(NOW + JOB_PLACE_NS / 2), JOB_NOTHING);
        job_rank_lost(&job, 1, 2, same ? 7 : 8, 4, "closed", NOW + JOB_PLACE_NS / 2);
        CU_ASSERT_EQUAL(next_at(NOW + JOB_PLACE_NS / 2), same ? JOB_SIGNAL : JOB_START);
    }
}

TEST(fault_whose_place_never_comes)
{
    start_recovering(&recovering);
    dies(1, SIGSEGV, 7, 4);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_rank_started(&job, 1, NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    job_rank_up(&job, 1, 2, 7, 4, NOW);
    job_rank_ended(&job, 1, KILLED(SIGSEGV), NOW);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_PLACE_NS - 1), JOB_NOTHING);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + JOB_PLACE_NS);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_PLACE_NS), JOB_NOTHING);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_PLACE_NS + JOB_BACKOFF_MIN_NS), JOB_START);
}

/* Before it has connected there is no place to wait for. */
TEST(fault_before_mpi)
{
    make_with(&recovering);
    start_all(RANKS);
    job_rank_ended(&job, 1, KILLED(SIGABRT), NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_rank_started(&job, 1, NOW);
    job_rank_ended(&job, 1, KILLED(SIGABRT), NOW);
    signals(SIGTERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "signal 6 (Aborted) again at the same event (0)"));
}

TEST(backoff_while_nothing_moves)
{
    uint64_t wait = JOB_BACKOFF_MIN_NS;

    start_recovering(&recovering);
    dies(1, SIGKILL, 7, 4);
    goes_down(1, JOB_REMAINS_NOTHING, NOW, "was killed by signal 9 (Killed)");
    comes_back(1, 2, NOW, NOW);
    for (uint32_t i = 3; i < 14; i++) {
        dies(1, SIGKILL, 7, 2); /* while it repeated */
        goes_down(1, JOB_REMAINS_NOTHING, NOW, "was killed by signal 9 (Killed)");
        comes_back(1, i, NOW + wait, NOW);
        wait = wait * 2 < JOB_BACKOFF_MAX_NS ? wait * 2 : JOB_BACKOFF_MAX_NS;
    }
    CU_ASSERT_EQUAL(wait, JOB_BACKOFF_MAX_NS);
    dies(1, SIGKILL, 8, 4); /* it came further: at once again */
    goes_down(1, JOB_REMAINS_NOTHING, NOW, "was killed by signal 9 (Killed)");
    comes_back(1, 14, NOW, NOW);
    dies(1, SIGKILL, 8, 4);
    goes_down(1, JOB_REMAINS_NOTHING, NOW, "was killed by signal 9 (Killed)");
    comes_back(1, 15, NOW + JOB_BACKOFF_MIN_NS, NOW);
}

/* How far it came is known only after it ended. */
TEST(backoff_is_cut_short)
{
    start_recovering(&recovering);
    dies(1, SIGKILL, 7, 4);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_rank_started(&job, 1, NOW);
    job_rank_up(&job, 1, 2, 7, 4, NOW);
    job_rank_ended(&job, 1, KILLED(SIGKILL), NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    job_rank_lost(&job, 1, 2, 9, 5, "closed", NOW + 1);
    CU_ASSERT_EQUAL(next_at(NOW + 1), JOB_START);
}

/* Its relay says how far it came only when the next process runs. */
TEST(place_that_comes_late)
{
    for (uint64_t acts = 7; acts <= 8; acts++) {
        start_recovering(&recovering);
        job_rank_up(&job, 1, 1, 0, 0, NOW);
        job_rank_ended(&job, 1, KILLED(SIGSEGV), NOW);
        CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
        job_rank_started(&job, 1, NOW);
        job_rank_lost(&job, 1, 1, 7, 4, "closed", NOW);
        job_rank_up(&job, 1, 2, 7, 4, NOW);
        job_rank_ended(&job, 1, KILLED(SIGSEGV), NOW);
        CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
        job_rank_lost(&job, 1, 2, acts, 4, "closed", NOW);
        CU_ASSERT_EQUAL(job.ending, acts == 7);
    }
}

/* It gets the signals too, and its end is waited for. */
TEST(job_ends_while_a_rank_is_started)
{
    make_with(&recovering);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job.config.kill_after_ns = JOB_GRACE_NS;
    job_interrupt(&job, SIGTERM, NOW);
    signals(SIGTERM);
    job_rank_started(&job, 1, NOW);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_GRACE_NS), JOB_SIGNAL);
    job_rank_ended(&job, 1, KILLED(SIGKILL), NOW);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_GRACE_NS), JOB_NOTHING);
    CU_ASSERT_EQUAL(next_at(NOW + 2 * JOB_GRACE_NS), JOB_SIGNAL);
    job_start_failed(&job, 0, 1, NOW, "killed");
    CU_ASSERT_EQUAL(next_at(NOW + 2 * JOB_GRACE_NS), JOB_DONE);
}

TEST(budget_of_restarts)
{
    struct job_config config = recovering;

    config.restarts_max = 2;
    start_recovering(&config);
    for (uint32_t i = 0; i < 2; i++) {
        dies(1, SIGKILL, 7 + i, 4);
        CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
        job_rank_started(&job, 1, NOW);
    }
    dies(1, SIGKILL, 100, 4);
    signals(SIGTERM);
    CU_ASSERT_EQUAL(job.exit_code, 128 + SIGKILL);
    CU_ASSERT_STRING_EQUAL(job.reason, "rank 1 (./prog) was killed by signal 9 (Killed), after 2 "
                                       "restarts (--max-restarts)");
}

/* Each rank has its own budget. */
TEST(budget_of_another_rank)
{
    struct job_config config = recovering;

    config.restarts_max = 1;
    start_recovering(&config);
    for (uint32_t i = 0; i < RANKS; i++) {
        dies(i, SIGKILL, 7, 4);
        CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
        CU_ASSERT_EQUAL(order.process.rank, i);
        job_rank_started(&job, i, NOW);
    }
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
}

TEST(unlogged_rank)
{
    start_recovering(&recovering);
    CU_ASSERT_TRUE(job_rank_restartable(&job, 1));
    CU_ASSERT_TRUE(job_rank_unlogged(&job, 1, "MPI was called from a second thread", NOW));
    CU_ASSERT_FALSE(job_rank_unlogged(&job, 1, "again", NOW));
    CU_ASSERT_FALSE(job_rank_restartable(&job, 1));
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    dies(0, SIGKILL, 1, 1); /* the others can be */
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_rank_started(&job, 0, NOW);
    dies(1, SIGKILL, 1, 1);
    signals(SIGTERM);
    CU_ASSERT_EQUAL(job.exit_code, 128 + SIGKILL);
    CU_ASSERT_STRING_EQUAL(job.reason,
                           "rank 1 (./prog) was killed by signal 9 (Killed), and it cannot be "
                           "restarted because MPI was called from a second thread");
}

/* It has crashed, and is to be started again; only now it is known that this must not be. */
TEST(unlogged_while_down)
{
    start_recovering(&recovering);
    dies(1, SIGKILL, 1, 1);
    goes_down(1, JOB_REMAINS_NOTHING, NOW, "was killed by signal 9 (Killed)");
    CU_ASSERT_TRUE(job_rank_unlogged(&job, 1, "it shares a file", NOW));
    signals(SIGTERM);
    CU_ASSERT_EQUAL(job.exit_code, 128 + SIGKILL);
    CU_ASSERT_STRING_EQUAL(job.reason, "rank 1 (./prog) was killed by signal 9 (Killed), and it "
                                       "cannot be restarted because it shares a file");
}

TEST(repeating)
{
    start_recovering(&recovering);
    CU_ASSERT_FALSE(job_rank_repeats(&job, 1));
    dies(1, SIGKILL, 1, 1);
    CU_ASSERT_FALSE(job_rank_repeats(&job, 1));
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_rank_started(&job, 1, NOW);
    CU_ASSERT_TRUE(job_rank_repeats(&job, 1));
    job_rank_up(&job, 1, 2, 1, 1, NOW);
    CU_ASSERT_TRUE(job_rank_repeats(&job, 1));
    job_rank_live(&job, 1, 2);
    CU_ASSERT_FALSE(job_rank_repeats(&job, 1));
}

TEST(all_ranks_unlogged)
{
    start_recovering(&recovering);
    CU_ASSERT_TRUE(job_rank_unlogged(&job, JOB_NO_RANK, "the log is full", NOW));
    CU_ASSERT_FALSE(job_rank_unlogged(&job, JOB_NO_RANK, "the log is full", NOW));
    dies(2, SIGKILL, 1, 1);
    signals(SIGTERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "because the log is full"));
}

/* It runs, but its relay has lost it. */
TEST(relay_loses_a_rank)
{
    start_recovering(&recovering);
    job_rank_lost(&job, 1, 1, 7, 4, "connection reset", NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + JOB_LOST_NS);
    goes_down(1, JOB_REMAINS_KILL, NOW + JOB_LOST_NS, "lost its relay: connection reset");
    comes_back(1, 2, NOW + JOB_LOST_NS, NOW + JOB_LOST_NS);
    job_rank_lost(&job, 1, 1, 7, 4, "again, of the one before", NOW);
    CU_ASSERT_EQUAL(next_at(NOW + 2 * JOB_LOST_NS), JOB_NOTHING);
}

TEST(rank_loses_its_relay)
{
    start_recovering(&recovering);
    process_is(LIFE_SUSPECT, 1, "connection reset", NOW);
    job_rank_ended(&job, 1, EXITED(CW_EXIT_DEVICE), NOW);
    goes_down(1, JOB_REMAINS_NOTHING, NOW, "lost its relay: connection reset");
    comes_back(1, 2, NOW, NOW);
}

TEST(rank_loses_its_relay_without_recovery)
{
    start(2);
    process_is(LIFE_SUSPECT, 1, "connection reset", NOW);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_LOST_NS - 1), JOB_NOTHING);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_LOST_NS), JOB_SIGNAL);
    CU_ASSERT_EQUAL(job.exit_code, 1);
    CU_ASSERT_STRING_EQUAL(job.reason, "rank 1 (./prog) lost its relay: connection reset");
}

/* The job's own reason comes first, and nobody is restarted meanwhile. */
TEST(relay_is_gone)
{
    start_recovering(&recovering);
    process_is(LIFE_SUSPECT, 1, "connection reset", NOW - 1);
    job_relay_lost(&job, "relay unix:r: closed", NOW);
    job_relay_lost(&job, "another", NOW);
    dies(2, SIGKILL, 1, 1);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_LOST_NS - 1), JOB_NOTHING);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + JOB_LOST_NS);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_LOST_NS), JOB_SIGNAL);
    CU_ASSERT_STRING_EQUAL(job.reason, "relay unix:r: closed");
}

TEST(watcher_is_gone)
{
    start_recovering(&recovering);
    process_is(LIFE_DEAD, 1, "lost the process that watched it", NOW);
    goes_down(1, JOB_REMAINS_KILL, NOW, "lost the process that watched it");
    comes_back(1, 2, NOW, NOW);
}

/* Looks as often as it should, while the ranks other than `silent` give signs of life. */
static void time_passes(uint32_t silent, uint64_t from_ns, uint64_t to_ns)
{
    for (uint64_t t = from_ns; t < to_ns; t += PERIOD) {
        for (uint32_t i = 0; i < RANKS; i++)
            if (i != silent)
                process_is(LIFE_BACK, i, NULL, t);
        CU_ASSERT_EQUAL(job_next(&job, t, &order), JOB_NOTHING);
        CU_ASSERT_TRUE(job_deadline_ns(&job) <= t + TIMEOUT / 4);
    }
}

TEST(silent_rank_is_replaced)
{
    start_recovering(&recovering);
    time_passes(1, NOW, NOW + TIMEOUT);
    CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 1, PERIOD, NOW + TIMEOUT), "hung");
    goes_down(1, JOB_REMAINS_LEAVE, NOW + TIMEOUT, "gave no sign of life for 10 s");
    comes_back(1, 2, NOW + TIMEOUT, NOW + TIMEOUT);
    job_life(&job, /* it wakes up: too late */
             &(struct life_event){
                 .what = LIFE_BACK, .host = LIFE_NO_HOST, .process = {.rank = 1, .incarnation = 1}},
             NOW + 2 * TIMEOUT - 1);
    CU_ASSERT_EQUAL(ranks[1].life.heard_ns, NOW + TIMEOUT);
}

/* A silence that nobody could hear does not count. */
TEST(dispatcher_was_stopped)
{
    start_recovering(&recovering);
    time_passes(RANKS, NOW, NOW + TIMEOUT);
    CU_ASSERT_EQUAL(job_next(&job, NOW + 100 * TIMEOUT, &order), JOB_NOTHING);
    time_passes(1, NOW + 100 * TIMEOUT, NOW + 101 * TIMEOUT - 2 * PERIOD);
    goes_down(1, JOB_REMAINS_LEAVE, NOW + 101 * TIMEOUT, "gave no sign of life for 10 s");
}

/* Who cannot be restarted may be silent: perhaps it was stopped on purpose. */
TEST(silence_without_recovery)
{
    start(RANKS);
    for (uint64_t t = NOW; t < NOW + 3 * TIMEOUT; t += PERIOD)
        CU_ASSERT_EQUAL(job_next(&job, t, &order), JOB_NOTHING);
    CU_ASSERT_STRING_EQUAL(job_rank_condition(&job, 1, PERIOD, NOW + TIMEOUT), "hung");
    start_recovering(&recovering);
    job_rank_unlogged(&job, 1, "why", NOW);
    time_passes(1, NOW, NOW + 3 * TIMEOUT);
}

/* A start that fails is tried on the next free slot, on each once. */
TEST(other_slots_are_tried)
{
    static const uint32_t expected[] = {1, 3, 4};

    start_recovering(&recovering);
    job.slots.count = SLOTS;
    dies(1, SIGKILL, 1, 1);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
        CU_ASSERT_EQUAL(order.slot, expected[i]);
        CU_ASSERT_EQUAL(order.process.incarnation, 2);
        CU_ASSERT_EQUAL(order.again, i > 0);
        if (i < 2)
            job_start_failed(&job, 1, 127, NOW, "exec: No such file");
    }
    job_rank_started(&job, 1, NOW);
    CU_ASSERT_EQUAL(ranks[1].restarts, 1);
    dies(2, SIGKILL, 1, 1); /* the slot that rank 1 left is free for others */
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    CU_ASSERT_EQUAL(order.slot, 2);
    job_start_failed(&job, 2, 127, NOW, "exec: No such file");
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    CU_ASSERT_EQUAL(order.slot, 3);
    job_start_failed(&job, 2, 127, NOW, "exec: No such file");
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    CU_ASSERT_EQUAL(order.slot, 1);
}

TEST(no_slot_is_left)
{
    start_recovering(&recovering);
    dies(1, SIGKILL, 1, 1);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_start_failed(&job, 1, 127, NOW, "starting rank 1 (/p): exec: No such file or directory");
    signals(SIGTERM);
    CU_ASSERT_EQUAL(job.exit_code, 127);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "rank 1 was killed by signal 9 (Killed), and "));
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "incarnation 2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(job.reason, "/p): exec: No such file"));
}

/* Where it hung may be a host out of reach. */
TEST(hung_rank_moves)
{
    start_recovering(&recovering);
    job.slots.count = SLOTS;
    time_passes(1, NOW, NOW + TIMEOUT);
    CU_ASSERT_EQUAL(next_at(NOW + TIMEOUT), JOB_START);
    CU_ASSERT_EQUAL(order.slot, 3);
}

/* The first start has no other slot to try: the job never was. */
TEST(first_start_fails)
{
    make_with(&recovering);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_rank_started(&job, 0, NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_start_failed(&job, 1, 127, NOW, "starting rank 1: exec");
    signals(SIGTERM);
    job_rank_ended(&job, 0, KILLED(SIGTERM), NOW);
    ends(127, "starting rank 1: exec");
}

/* What is said of a former incarnation changes nothing. */
TEST(news_of_the_former)
{
    start_recovering(&recovering);
    dies(1, SIGKILL, 7, 4);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_START);
    job_rank_started(&job, 1, NOW);
    CU_ASSERT_FALSE(job_rank_up(&job, 1, 1, 0, 0, NOW));
    CU_ASSERT_FALSE(job_rank_live(&job, 1, 1));
    CU_ASSERT_FALSE(ranks[1].up || ranks[1].live);
    job_rank_lost(&job, 1, 1, 7, 4, "closed", NOW);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_LOST_NS), JOB_NOTHING);
}
