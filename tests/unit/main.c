/* Runs the suites and prints TAP (Test Anything Protocol). An argument chooses the tests whose
 * "SUITE: TEST" contains it. */
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEST_SECONDS_MAX 240 /* no test takes longer, even under a sanitizer on a busy machine */

static unsigned tests_run;
static unsigned tests_failed;
static char running[256];

static void (*const suites[])(void) = {
    add_copy_tests,       add_cred_tests,
    add_fault_tests,      add_frame_tests,
    add_input_tests,      add_job_events_tests,
    add_job_tests,        add_keyfile_tests,
    add_log_tests,        add_match_tests,
    add_options_tests,    add_out_tests,
    add_output_tests,     add_parse_tests,
    add_pmi_tests,        add_program_tests,
    add_readings_tests,   add_restart_tests,
    add_rundir_tests,     add_services_tests,
    add_homes_tests,      add_setup_tests,
    add_status_tests,     add_transport_tests,
    add_watcher_tests,    add_active_tests,
    add_divergence_tests, add_cut_tests,
    add_large_tests,      add_log_bounds_tests,
    add_matching_tests,   add_memory_tests,
    add_probe_tests,      add_random_recovery_tests,
    add_random_tests,     add_recovery_large_tests,
    add_recovery_tests,   add_session_tests,
    add_link_tests,       add_uring_tests,
    add_ring_tests,       add_wire_tests,
    add_engine_tests,
};

static void on_test_start(const CU_pTest test, const CU_pSuite suite)
{
    snprintf(running, sizeof(running), "Bail out! %s: %s takes too long\n", suite->pName,
             test->pName);
    alarm(TEST_SECONDS_MAX);
}

/* Async-signal-safe: a test that hangs may hold any lock. */
static void on_alarm(int signal_number)
{
    (void)signal_number;
    if (write(STDOUT_FILENO, running, strlen(running)) < 0)
        _exit(2);
    _exit(1);
}

static void on_test_complete(const CU_pTest test, const CU_pSuite suite,
                             const CU_pFailureRecord failures)
{
    alarm(0);
    if (!test->fActive)
        return;
    tests_run++;
    tests_failed += failures != NULL;
    printf("%s %u - %s: %s\n", failures ? "not ok" : "ok", tests_run, suite->pName, test->pName);
    for (CU_pFailureRecord r = failures; r; r = r->pNext)
        printf("# %s:%u: %s\n", r->strFileName ? r->strFileName : "?", r->uiLineNumber,
               r->strCondition ? r->strCondition : "?");
}

static void on_suite_failure(const CU_pSuite suite)
{
    tests_run++;
    tests_failed++;
    printf("not ok %u - %s: its set-up or tear-down\n", tests_run, suite->pName);
}

/* Those whose names contain `filter`, or, with "--part" and "K/N", every N-th from the K-th on. */
static void choose(const char *filter, unsigned part, unsigned parts)
{
    char name[256];
    unsigned number = 0;

    for (CU_pSuite suite = CU_get_registry()->pSuite; suite; suite = suite->pNext) {
        bool any = false;

        for (CU_pTest test = suite->pTest; test; test = test->pNext) {
            snprintf(name, sizeof(name), "%s: %s", suite->pName, test->pName);
            test->fActive = parts ? number++ % parts == part - 1 : strstr(name, filter) != NULL;
            any |= test->fActive;
        }
        suite->fActive = any;
    }
}

int main(int argc, char **argv)
{
    unsigned part = 0;
    unsigned parts = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, on_alarm);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++)
        suites[i]();
    if (argc > 2 && strcmp(argv[1], "--part") == 0 &&
        (sscanf(argv[2], "%u/%u", &part, &parts) != 2 || part < 1 || part > parts)) {
        fprintf(stderr, "--part %s: expected K/N\n", argv[2]);
        return 2;
    }
    if (argc > 1)
        choose(argv[1], part, parts);
    CU_set_fail_on_inactive(CU_FALSE);
    CU_set_test_start_handler(on_test_start);
    CU_set_test_complete_handler(on_test_complete);
    CU_set_suite_init_failure_handler(on_suite_failure);
    CU_set_suite_cleanup_failure_handler(on_suite_failure);
    CU_run_all_tests();
    printf("1..%u\n", tests_run);
    CU_cleanup_registry();
    return tests_failed > 0;
}
