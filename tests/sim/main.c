/* build/sim --seeds FROM:COUNT [--jobs N] [--channel | --hosts]: runs the simulator under so many
 * seeds, and tells of those that fail. build/sim --trace SEED [--channel | --hosts] tells all that
 * happens under one. */
#include "tests/sim/coroutine.h"
#include "tests/sim/payload.h"
#include "tests/sim/sim.h"
#include "tests/sim/slot.h"

#include <malloc.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#include <execinfo.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 64
#define FAILURES_SHOWN 10 /* by a line */
#define STORIES_SHOWN 3   /* ... with their last steps */
#define STORY_LINES 40
#define FRAMES_SHOWN 20
#define CRASH_STACK_BYTES (64u << 10)
#define KEPT_BYTES (64 << 20) /* memory that is used again from seed to seed */

struct totals {
    uint64_t seeds;
    uint64_t failed;
    uint64_t faults;
    uint64_t restarts;
    uint64_t cuts;
    uint64_t rerouted;
    uint64_t kills;
    uint64_t losses;
    uint64_t moves;
    uint64_t images;
    uint64_t trims;
    uint64_t restored;
    uint64_t given_up;
    uint64_t detected;
    uint64_t steps;
};

static volatile uint64_t seed_now;
static volatile bool tracing_now;
static struct sim_always always; /* --channel, --hosts */
static char own_path[PATH_MAX];
static uint8_t crash_stack[CRASH_STACK_BYTES];

static const char *always_option(void)
{
    return always.hosts ? " --hosts" : always.channel ? " --channel" : "";
}

/* The last steps of a seed, by another process: this one may not be able to. */
static void show_story(uint64_t seed)
{
    char command[PATH_MAX + 64];
    pid_t child;

    fflush(stdout);
    snprintf(command, sizeof(command), "%s --trace %llu%s | tail -n %d", own_path,
             (unsigned long long)seed, always_option(), STORY_LINES);
    child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(2);
    }
    waitpid(child, NULL, 0);
}

static void say_crashed(void)
{
    char text[128];
    int n =
        snprintf(text, sizeof(text), "not ok - seed %llu: crashed; see build/sim --trace %llu%s\n",
                 (unsigned long long)seed_now, (unsigned long long)seed_now, always_option());

    if (tracing_now || write(STDOUT_FILENO, text, (size_t)n) != n)
        return;
    show_story(seed_now);
}

/* An assertion of the code under test, or a fault of it. */
static void on_crash(int number)
{
    void *frames[FRAMES_SHOWN];

    (void)number;
    if (tracing_now)
        backtrace_symbols_fd(frames, backtrace(frames, FRAMES_SHOWN), STDOUT_FILENO);
    say_crashed();
    _exit(1);
}

/* With named receives only, faults must change nothing of what the programs compute. */
static void compare_with_calm(const struct sim_plan *plan, struct sim_result *result)
{
    struct sim_plan calm_plan = *plan;
    struct sim_result calm;

    calm_plan.fault_one_in = calm_plan.cut_one_in = calm_plan.kill_one_in = 0;
    calm_plan.image_one_in = calm_plan.lose_one_in = 0;
    sim_run(&calm_plan, false, &calm);
    if (calm.failed) {
        *result = calm;
        return;
    }
    for (uint32_t i = 0; i < plan->ranks && !result->failed; i++)
        if (calm.hashes[i] != result->hashes[i]) {
            result->failed = true;
            snprintf(result->why, sizeof(result->why),
                     "rank %u computes something else with faults than without", i);
        }
}

static void run_seed(uint64_t seed, bool tracing, struct sim_result *result)
{
    struct sim_plan plan = sim_plan_of(seed, &always);

    seed_now = seed;
    tracing_now = tracing;
    sim_run(&plan, tracing, result);
    if (!result->failed && !result->given_up && plan.mode == SIM_ORDERED &&
        (plan.fault_one_in || plan.cut_one_in || plan.image_one_in || plan.lose_one_in))
        compare_with_calm(&plan, result);
}

static void say_failed(uint64_t seed, const char *why, uint64_t before)
{
    if (before >= FAILURES_SHOWN)
        return;
    printf("not ok - seed %llu: %s; see build/sim --trace %llu%s\n", (unsigned long long)seed, why,
           (unsigned long long)seed, always_option());
    if (before < STORIES_SHOWN)
        show_story(seed);
}

static void run_seeds(uint64_t from, uint64_t count, uint64_t stride, struct totals *totals)
{
    struct sim_result result;

    for (uint64_t i = 0; i < count; i += stride) {
        run_seed(from + i, false, &result);
        totals->seeds++;
        totals->faults += result.faults;
        totals->restarts += result.restarts;
        totals->cuts += result.cuts;
        totals->rerouted += result.rerouted;
        totals->kills += result.kills;
        totals->losses += result.losses;
        totals->moves += result.moves;
        totals->images += result.images;
        totals->trims += result.trims;
        totals->restored += result.restored;
        totals->given_up += result.given_up;
        totals->detected += result.detected;
        totals->steps += result.steps;
        if (result.failed)
            say_failed(from + i, result.why, totals->failed++);
    }
    fflush(stdout);
}

static int summary(const struct totals *t, double seconds)
{
    printf("# %llu seeds, %llu faults, %llu restarts, %llu cuts, %llu routes changed, "
           "%llu relays killed, %llu hosts lost, %llu relays moved, %llu images, "
           "%llu logs trimmed to one, %llu processes from one, %llu jobs "
           "given up, %llu "
           "divergences found, %llu steps, "
           "%.1f s, %.0f seeds/s\n",
           (unsigned long long)t->seeds, (unsigned long long)t->faults,
           (unsigned long long)t->restarts, (unsigned long long)t->cuts,
           (unsigned long long)t->rerouted, (unsigned long long)t->kills,
           (unsigned long long)t->losses, (unsigned long long)t->moves,
           (unsigned long long)t->images, (unsigned long long)t->trims,
           (unsigned long long)t->restored, (unsigned long long)t->given_up,
           (unsigned long long)t->detected, (unsigned long long)t->steps, seconds,
           (double)t->seeds / seconds);
    if (t->failed)
        printf("# %llu seeds failed\n", (unsigned long long)t->failed);
    else
        printf("ok - %llu seeds\n", (unsigned long long)t->seeds);
    return t->failed ? 1 : 0;
}

static void add(struct totals *to, const struct totals *t)
{
    to->seeds += t->seeds;
    to->failed += t->failed;
    to->faults += t->faults;
    to->restarts += t->restarts;
    to->cuts += t->cuts;
    to->rerouted += t->rerouted;
    to->kills += t->kills;
    to->losses += t->losses;
    to->moves += t->moves;
    to->images += t->images;
    to->trims += t->trims;
    to->restored += t->restored;
    to->given_up += t->given_up;
    to->detected += t->detected;
    to->steps += t->steps;
}

/* One process for each share of the seeds; returns where its totals come from. */
static int start_job(uint64_t from, uint64_t count, uint64_t jobs)
{
    struct totals totals = {0};
    int ends[2];

    if (pipe(ends) < 0) {
        perror("sim: pipe");
        exit(2);
    }
    if (fork() == 0) {
        run_seeds(from, count, jobs, &totals);
        exit(write(ends[1], &totals, sizeof(totals)) != sizeof(totals));
    }
    close(ends[1]);
    return ends[0];
}

static void run_jobs(uint64_t from, uint64_t count, uint64_t jobs, struct totals *totals)
{
    int from_job[JOBS_MAX];

    for (uint64_t i = 0; i < jobs; i++)
        from_job[i] = start_job(from + i, count > i ? count - i : 0, jobs);
    for (uint64_t i = 0; i < jobs; i++) {
        struct totals t = {0};

        /* one that crashed says nothing, and has said why */
        if (read(from_job[i], &t, sizeof(t)) != sizeof(t))
            t.failed = 1;
        add(totals, &t);
        close(from_job[i]);
    }
    while (wait(NULL) > 0)
        ;
}

static int trace(uint64_t seed)
{
    struct sim_result result;

    setvbuf(stdout, NULL, _IOLBF, 0);
    run_seed(seed, true, &result);
    if (result.failed)
        printf("not ok - seed %llu: %s\n", (unsigned long long)seed, result.why);
    else
        printf("ok - seed %llu%s\n", (unsigned long long)seed,
               result.detected ? ": a divergence, found out" : "");
    return result.failed;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: sim --seeds FROM:COUNT [--jobs N] [--channel | --hosts]\n"
            "       sim --trace SEED [--channel | --hosts]\n"
            "  --channel  ranks have channel memory under each seed, not under a third alone\n"
            "  --hosts    hosts may be lost under each seed, not under a fourth alone\n");
    return 2;
}

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What the command line asks for. */
struct request {
    unsigned long long from;
    unsigned long long count;
    unsigned long long jobs;
    bool traces;
    unsigned long long traced;
};

/* False: it asks for nothing that there is. */
static bool parse(int argc, char **argv, struct request *request)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 's'}, {"jobs", required_argument, NULL, 'j'},
        {"trace", required_argument, NULL, 't'}, {"channel", no_argument, NULL, 'c'},
        {"hosts", no_argument, NULL, 'h'},       {0}};
    bool ok = true;
    int c;

    *request = (struct request){.from = 1, .jobs = 1};
    while (ok && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 's')
            ok = sscanf(optarg, "%llu:%llu", &request->from, &request->count) == 2;
        else if (c == 'j')
            ok = sscanf(optarg, "%llu", &request->jobs) == 1;
        else if (c == 't')
            ok = request->traces = sscanf(optarg, "%llu", &request->traced) == 1;
        else if (c == 'h')
            always.hosts = true;
        else
            ok = always.channel = c == 'c';
    }
    return ok && optind == argc && !(always.hosts && always.channel) &&
           (request->traces ||
            (request->count > 0 && request->jobs > 0 && request->jobs <= JOBS_MAX));
}

int main(int argc, char **argv)
{
    /* on a stack of its own: that of a task may be full */
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    struct request request;
    struct totals totals = {0};
    double start = seconds_now();

    if (readlink("/proc/self/exe", own_path, sizeof(own_path) - 1) < 0 ||
        !parse(argc, argv, &request))
        return usage();
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_set_death_callback(say_crashed);
#endif
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    payload_init();
    sigaltstack(&(stack_t){.ss_sp = crash_stack, .ss_size = sizeof(crash_stack)}, NULL);
    sigaction(SIGABRT, &crash, NULL);
    sigaction(SIGSEGV, &crash, NULL);
    if (request.traces)
        return trace(request.traced);
    if (request.jobs == 1)
        run_seeds(request.from, request.count, 1, &totals);
    else
        run_jobs(request.from, request.count, request.jobs, &totals);
    slots_fini();
    coroutine_fini();
    libraries_fini();
    return summary(&totals, seconds_now() - start);
}
