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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_SECONDS_MAX 240 /* no test takes longer, even under a sanitizer on a busy machine */

static unsigned tests_run;
static unsigned tests_failed;
static char running[256];

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

/* Those of a suite side by side, as they stand in their file. */
static int compare(const void *left, const void *right)
{
    const struct unit_test *a = *(const struct unit_test *const *)left;
    const struct unit_test *b = *(const struct unit_test *const *)right;
    int order = strcmp(a->suite->name, b->suite->name);

    return order ? order : a->line - b->line;
}

static void add_tests(void)
{
    extern const struct unit_test *__start_unit_tests[], *__stop_unit_tests[];
    CU_pSuite suite = NULL;

    qsort(__start_unit_tests, (size_t)(__stop_unit_tests - __start_unit_tests),
          sizeof(*__start_unit_tests), compare);
    for (const struct unit_test **at = __start_unit_tests; at < __stop_unit_tests; at++) {
        const struct unit_test *t = *at;

        if (at == __start_unit_tests || t->suite != at[-1]->suite)
            suite = CU_add_suite_with_setup_and_teardown(
                t->suite->name, t->suite->set_up, t->suite->tear_down, NULL, t->suite->after);
        CU_add_test(suite, t->name, t->run);
    }
    add_engine_tests(); /* the others say themselves that they are there */
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
    add_tests();
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
