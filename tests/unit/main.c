/* Runs the suites and prints TAP (Test Anything Protocol).
 *
 *   unit [OPTION...] [TEXT...]    the tests whose "SUITE: TEST" contains one of the texts; all
 * without a text
 *
 *   --quick           without the slow tests
 *   --slow            the slow tests only
 *   --without TEXT    without the tests whose names contain the text; may be given up to 8 times
 *   --draw K/N SEED   of these about K of N, chosen by the seed */
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEST_SECONDS_MAX 240 /* no test takes longer, even under a sanitizer on a busy machine */

static unsigned tests_run;
static unsigned tests_failed;
static char running[256];

static void (*const suites[])(void) = {
    add_clock_tests,
    add_copy_tests,
    add_counts_tests,
    add_cred_tests,
    add_fault_tests,
    add_files_tests,
    add_frame_tests,
    add_frames_tests,
    add_shift_tests,
    add_hello_tests,
    add_kept_tests,
    add_loop_tests,
    add_party_tests,
    add_rank_session_tests,
    add_supply_tests,
    add_input_tests,
    add_job_events_tests,
    add_job_state_tests,
    add_job_tests,
    add_job_hosts_tests,
    add_keyfile_tests,
    add_lockfile_tests,
    add_ledger_tests,
    add_journal_tests,
    add_commit_tests,
    add_restore_tests,
    add_stage_tests,
    add_left_tests,
    add_left_out_tests,
    add_log_tests,
    add_point_tests,
    add_arena_tests,
    add_match_tests,
    add_options_tests,
    add_out_tests,
    add_output_tests,
    add_parse_tests,
    add_plan_tests,
    add_pmi_tests,
    add_program_tests,
    add_relay_restarts_tests,
    add_inputs_tests,
    add_readings_tests,
    add_restart_tests,
    add_rundir_tests,
    add_secret_tests,
    add_homes_tests,
    add_hosts_tests,
    add_setup_tests,
    add_status_tests,
    add_transport_tests,
    add_watcher_tests,
    add_active_tests,
    add_divergence_tests,
    add_cut_tests,
    add_large_tests,
    add_log_bounds_tests,
    add_matching_tests,
    add_memory_tests,
    add_share_tests,
    add_start_from_point_tests,
    add_random_points_tests,
    add_probe_tests,
    add_recovery_large_tests,
    add_recovery_tests,
    add_resume_tests,
    add_take_tests,
    add_return_tests,
    add_return_link_tests,
    add_return_job_tests,
    add_party_tests,
    add_door_tests,
    add_link_tests,
    add_uring_tests,
    add_ring_tests,
    add_wire_tests,
    add_dial_tests,
    add_disk_tests,
    add_doctor_tests,
    add_engine_tests,
    add_wait_policy_tests,
    add_contents_tests,
    add_store_tests,
    add_log_disk_tests,
    add_waiting_tests,
    add_places_tests,
    add_trim_tests,
    add_output_places_tests,
    add_rank_input_tests,
    add_rank_io_tests,
    add_launch_tests,
    add_interrupted_tests,
    add_grid_file_tests,
    add_grid_ways_tests,
    add_grid_job_tests,
    add_routes_tests,
    add_services_tests,
    add_known_hosts_tests,
    add_ssh_address_tests,
    add_stripe_tests,
    add_launch_command_tests,
    add_mux_tests,
    add_agents_tests,
    add_machine_tests,
    add_agent_lies_tests,
    add_images_tests,
    add_servers_tests,
    add_image_stream_tests,
    add_ckptsrv_tests,
};

/* Take more than 2 s, or 10 s under a sanitizer. Tests of engines are there once for each engine.
 */
static const char *const slow[] = {
    "trace of memory: every_bound_on_memory",
    "trace of memory: memory_is_spent_",
    "trace of recovery in large messages: ",
    ": client_that_stops_reading",
    ": large_messages_among_all",
    "ring: what_passes_arrives",
    "group commit: another_journal_holds_everything",
    "restored journals: power_is_lost_at_any_time",
};

#define WITHOUT_MAX 8

struct choice {
    char *const *texts; /* NULL-terminated */
    const char *without[WITHOUT_MAX];
    int without_count;
    bool quick;
    bool slow;
    unsigned part; /* of `parts`, by the seed; parts is 0 without --draw */
    unsigned parts;
    const char *seed;
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

static bool is_slow(const char *name)
{
    for (size_t i = 0; i < sizeof(slow) / sizeof(*slow); i++)
        if (strstr(name, slow[i]))
            return true;
    return false;
}

static bool is_named(const struct choice *choice, const char *name)
{
    if (!choice->texts[0])
        return true;
    for (char *const *text = choice->texts; *text; text++)
        if (strstr(name, *text))
            return true;
    return false;
}

/* By a hash of the seed and the name (FNV-1a), so that each test is drawn by itself. */
static bool is_drawn(const struct choice *choice, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    if (!choice->parts)
        return true;
    for (const char *c = choice->seed; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3ull;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3ull;
    return (hash >> 32) % choice->parts < choice->part;
}

static bool is_left_out(const struct choice *choice, const char *name)
{
    for (int i = 0; i < choice->without_count; i++)
        if (strstr(name, choice->without[i]))
            return true;
    return false;
}

static bool is_chosen(const struct choice *choice, const char *name)
{
    return is_named(choice, name) && !is_left_out(choice, name) &&
           !(choice->quick && is_slow(name)) && !(choice->slow && !is_slow(name)) &&
           is_drawn(choice, name);
}

static void choose(const struct choice *choice)
{
    char name[256];

    for (CU_pSuite suite = CU_get_registry()->pSuite; suite; suite = suite->pNext) {
        bool any = false;

        for (CU_pTest test = suite->pTest; test; test = test->pNext) {
            snprintf(name, sizeof(name), "%s: %s", suite->pName, test->pName);
            test->fActive = is_chosen(choice, name);
            any |= test->fActive;
        }
        suite->fActive = any;
    }
}

/* False when the arguments make no sense. */
static bool parse(struct choice *choice, int argc, char **argv)
{
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            choice->quick = true;
        } else if (strcmp(argv[i], "--slow") == 0) {
            choice->slow = true;
        } else if (strcmp(argv[i], "--without") == 0 && i + 1 < argc &&
                   choice->without_count < WITHOUT_MAX) {
            choice->without[choice->without_count++] = argv[++i];
        } else if (strcmp(argv[i], "--draw") == 0 && i + 2 < argc &&
                   sscanf(argv[i + 1], "%u/%u", &choice->part, &choice->parts) == 2 &&
                   choice->parts > 0) {
            choice->seed = argv[i + 2];
            i += 2;
        } else {
            return false;
        }
    }
    choice->texts = argv + i;
    return true;
}

int main(int argc, char **argv)
{
    struct choice choice = {0};

    if (!parse(&choice, argc, argv)) {
        fprintf(stderr,
                "usage: unit [--quick | --slow] [--without TEXT] [--draw K/N SEED] [TEXT...]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, on_alarm);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++)
        suites[i]();
    choose(&choice);
    CU_set_fail_on_inactive(CU_FALSE);
    CU_set_test_start_handler(on_test_start);
    CU_set_test_complete_handler(on_test_complete);
    CU_set_suite_init_failure_handler(on_suite_failure);
    CU_set_suite_cleanup_failure_handler(on_suite_failure);
    CU_run_all_tests();
    if (tests_run == 0 && choice.parts > 0) {
        tests_run++;
        puts("ok 1 - unit # SKIP no test was drawn");
    }
    printf("1..%u\n", tests_run);
    CU_cleanup_registry();
    return tests_failed > 0;
}
