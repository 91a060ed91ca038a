/* The job core: every way a job may end. */
#include "tests/unit/job_fixture.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <string.h>

SUITE("job");

#define SECOND_NS 1000000000ull
static void initialize(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        job_rank_initialized(&job, i, NOW);
}

TEST(all_is_well)
{
    start(RANKS);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), UINT64_MAX);
    initialize(RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(job.in_mpi, RANKS - i);
        job_rank_finalized(&job, i);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
        job_rank_ended(&job, i, EXITED(0), NOW);
    }
    ends(0, "");
    CU_ASSERT_FALSE(job.ending);
    CU_ASSERT_FALSE(job.no_mpi);
}

TEST(programs_without_mpi)
{
    start(RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_FALSE(job.no_mpi);
        job_rank_ended(&job, i, EXITED(0), NOW);
    }
    ends(0, "");
    CU_ASSERT_TRUE(job.no_mpi);
}

/* MPI_Init waits for all: whoever ended without it ends the others. */
TEST(one_rank_without_mpi)
{
    start(RANKS);
    job_rank_ended(&job, 1, EXITED(0), NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    job_rank_initialized(&job, 2, NOW);
    signals(SIGTERM);
    job_rank_ended(&job, 2, KILLED(SIGTERM), NOW);
    job_rank_ended(&job, 0, KILLED(SIGTERM), NOW);
    ends(1, "rank 1 (./prog) ended without calling MPI_Init, and 1 others wait for it in MPI");
}

TEST(one_rank_ends_while_others_are_in_mpi)
{
    start(RANKS);
    initialize(2);
    job_rank_ended(&job, 2, EXITED(0), NOW);
    signals(SIGTERM);
    job_rank_ended(&job, 0, EXITED(1), NOW);
    job_rank_ended(&job, 1, EXITED(2), NOW);
    ends(1, "rank 2 (./prog) ended without calling MPI_Init, and 2 others wait for it in MPI");
}

TEST(exit_before_init)
{
    start(RANKS);
    job_rank_ended(&job, 1, EXITED(7), NOW);
    signals(SIGTERM);
    job_rank_ended(&job, 0, KILLED(SIGTERM), NOW);
    job_rank_ended(&job, 2, EXITED(9), NOW);
    ends(7, "rank 1 (./prog) exited with code 7");
}

TEST(exit_within_mpi)
{
    start(2);
    initialize(2);
    job_rank_ended(&job, 0, EXITED(3), NOW);
    signals(SIGTERM);
    job_rank_ended(&job, 1, KILLED(SIGTERM), NOW);
    ends(3, "rank 0 (./prog) exited with code 3 without calling MPI_Finalize");
}

TEST(good_exit_within_mpi)
{
    start(2);
    initialize(2);
    job_rank_ended(&job, 0, EXITED(0), NOW);
    signals(SIGTERM);
    job_rank_ended(&job, 1, KILLED(SIGTERM), NOW);
    ends(1, "rank 0 (./prog) called MPI_Init and ended without MPI_Finalize");
}

TEST(killed)
{
    start(2);
    initialize(2);
    job_rank_ended(&job, 1, KILLED(SIGSEGV) | 0x80, NOW); /* with a core dump */
    signals(SIGTERM);
    job_rank_ended(&job, 0, KILLED(SIGTERM), NOW);
    ends(128 + SIGSEGV, "rank 1 (./prog) was killed by signal 11 (Segmentation fault)");
}

TEST(killed_after_finalize)
{
    start(2);
    initialize(2);
    job_rank_finalized(&job, 0);
    job_rank_ended(&job, 0, KILLED(SIGBUS), NOW);
    signals(SIGTERM);
    job_rank_ended(&job, 1, KILLED(SIGTERM), NOW);
    ends(128 + SIGBUS, "rank 0 (./prog) was killed by signal 7 (Bus error)");
}

/* A bad exit code after MPI_Finalize is the program's own business: the others end by themselves.
 */
TEST(bad_exit_after_finalize)
{
    start(RANKS);
    initialize(RANKS);
    for (uint32_t i = 0; i < RANKS; i++)
        job_rank_finalized(&job, i);
    job_rank_ended(&job, 1, EXITED(4), NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_NOTHING);
    CU_ASSERT_FALSE(job.ending);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), UINT64_MAX);
    job_rank_ended(&job, 0, EXITED(5), NOW);
    job_rank_ended(&job, 2, EXITED(0), NOW);
    ends(4, "rank 1 (./prog) exited with code 4");
}

TEST(failure_is_decided_once)
{
    start(2);
    job_fail(&job, 42, NOW, "MPI_Abort(%d)", 42);
    job_fail(&job, 43, NOW, "another");
    job_rank_initialized(&job, 0, NOW);
    signals(SIGTERM);
    job_rank_ended(&job, 0, EXITED(42), NOW);
    job_rank_ended(&job, 1, KILLED(SIGKILL), NOW);
    ends(42, "MPI_Abort(42)");
}

TEST(failure_before_anything_runs)
{
    make(2);
    job_fail(&job, 127, NOW, "rank 0: no such program");
    ends(127, "rank 0: no such program");
}

TEST(long_reasons_are_cut)
{
    char text[2 * CW_ERR_TEXT_MAX];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    start(1);
    job_fail(&job, 1, NOW, "%s", text);
    CU_ASSERT_EQUAL(strlen(job.reason), CW_ERR_TEXT_MAX - 1);
}

/* After the grace the ranks are killed, again and again until none is left. */
TEST(grace_ends)
{
    start(2);
    job_fail(&job, 1, NOW, "why");
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + JOB_GRACE_NS);
    signals(SIGTERM);
    job_rank_ended(&job, 0, KILLED(SIGTERM), NOW);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_GRACE_NS - 1), JOB_NOTHING);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_GRACE_NS), JOB_SIGNAL);
    CU_ASSERT_EQUAL(job.signal_number, SIGKILL);
    CU_ASSERT_EQUAL(next_at(NOW + JOB_GRACE_NS), JOB_NOTHING);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + 2 * JOB_GRACE_NS);
    CU_ASSERT_EQUAL(next_at(NOW + 2 * JOB_GRACE_NS), JOB_SIGNAL);
    job_rank_ended(&job, 1, KILLED(SIGKILL), NOW);
    ends(1, "why");
}

TEST(interrupt)
{
    start(2);
    initialize(2);
    job.config.kill_after_ns = 30 * SECOND_NS;
    job_interrupt(&job, SIGINT, NOW);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + 30 * SECOND_NS);
    signals(SIGINT);
    job_rank_ended(&job, 0, KILLED(SIGINT), NOW);
    job_rank_ended(&job, 1, EXITED(0), NOW);
    ends(128 + SIGINT, "ended by signal 2 (Interrupt)");
}

TEST(interrupt_twice)
{
    start(2);
    job.config.kill_after_ns = 30 * SECOND_NS;
    job_interrupt(&job, SIGTERM, NOW - JOB_SAME_NS);
    signals(SIGTERM);
    job_interrupt(&job, SIGTERM, NOW);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW);
    signals(SIGKILL);
    job_rank_ended(&job, 0, KILLED(SIGKILL), NOW);
    job_rank_ended(&job, 1, KILLED(SIGKILL), NOW);
    ends(128 + SIGTERM, "ended by signal 15 (Terminated)");
}

/* Both before the driver asked: first the signal, then the kill. */
TEST(interrupt_twice_at_once)
{
    start(1);
    job_interrupt(&job, SIGTERM, NOW);
    job_interrupt(&job, SIGINT, NOW);
    CU_ASSERT_EQUAL(next_at(NOW), JOB_SIGNAL);
    CU_ASSERT_EQUAL(job.signal_number, SIGTERM);
    signals(SIGKILL);
}

/* timeout(1) signals its child, and then its process group, of which that is one. */
TEST(one_signal_that_comes_twice)
{
    start(1);
    job.config.kill_after_ns = 30 * SECOND_NS;
    job_interrupt(&job, SIGTERM, NOW);
    signals(SIGTERM);
    job_interrupt(&job, SIGTERM, NOW + JOB_SAME_NS - 1);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + 30 * SECOND_NS);
}

/* Who writes its last checkpoint has kill_after_ns, unless the program says that it cannot be. */
TEST(out_of_time)
{
    start(2);
    initialize(2);
    job.config.kill_after_ns = 30 * SECOND_NS;
    job_out_of_time(&job, NOW);
    signals(SIGTERM);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + 30 * SECOND_NS);
    job_fail(&job, 1, NOW, "its output cannot be written");
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + 30 * SECOND_NS);
    job_aborted(&job, 1, 9, NOW);
    CU_ASSERT_EQUAL(job_deadline_ns(&job), NOW + JOB_GRACE_NS);
    job_rank_ended(&job, 0, EXITED(0), NOW);
    job_rank_ended(&job, 1, EXITED(9), NOW);
    ends(JOB_EXIT_TIMEOUT, "the job ran out of its time (--timeout)");
}

TEST(interrupt_of_a_failing_job)
{
    start(2);
    job_rank_ended(&job, 0, EXITED(3), NOW);
    signals(SIGTERM);
    job_interrupt(&job, SIGINT, NOW);
    signals(SIGKILL);
    job_rank_ended(&job, 1, KILLED(SIGKILL), NOW);
    ends(3, "rank 0 (./prog) exited with code 3");
}

TEST(timeout)
{
    start(1);
    job_rank_initialized(&job, 0, NOW);
    job_fail(&job, JOB_EXIT_TIMEOUT, NOW, "out of time");
    signals(SIGTERM);
    job_rank_ended(&job, 0, EXITED(0), NOW);
    ends(JOB_EXIT_TIMEOUT, "out of time");
}

/* PMI may tell things twice or late: they change nothing. */
TEST(states_out_of_order)
{
    start(2);
    job_rank_finalized(&job, 0);
    CU_ASSERT_EQUAL(ranks[0].state, JOB_RANK_STARTED);
    job_rank_initialized(&job, 0, NOW);
    job_rank_initialized(&job, 0, NOW);
    CU_ASSERT_EQUAL(job.in_mpi, 1);
    job_rank_finalized(&job, 0);
    job_rank_finalized(&job, 0);
    CU_ASSERT_EQUAL(job.in_mpi, 0);
    job_rank_initialized(&job, 0, NOW);
    CU_ASSERT_EQUAL(ranks[0].state, JOB_RANK_FINALIZED);
    job_rank_ended(&job, 0, EXITED(0), NOW);
    job_rank_initialized(&job, 0, NOW);
    job_rank_finalized(&job, 0);
    CU_ASSERT_EQUAL(ranks[0].state, JOB_RANK_ENDED);
    run_well(1);
    ends(0, "");
}
