/* `causeway run`: an MPI job whose messages all go through a relay. */
#include "dispatcher/cli/commands.h"
#include "dispatcher/options/options.h"
#include "dispatcher/run/driver.h"
#include "dispatcher/run/held_jobs.h"
#include "dispatcher/run/resume.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static int fail(int code, const struct cw_err *err)
{
    fprintf(stderr, "causeway run: %s\n", err->text);
    return code;
}

/* --- a job that is gone on with --- */

/* What may be said of it anew. */
struct again {
    const char *dir;
    uint64_t timeout_ns; /* UINT64_MAX: as before */
    bool stats;
    bool verbose;
};

#define AT(field) offsetof(struct again, field)

static const struct cw_option list[] = {
    {"resume", .argument = "DIR|JOB", CW_OPTION_TEXT, AT(dir)},
    {"timeout", .argument = "TIME", CW_OPTION_TIME, AT(timeout_ns)},
    {"stats", .at = AT(stats)},
    {"verbose", .at = AT(verbose)},
    {0}};

static const struct cw_options options_again = {
    "causeway run --resume", NULL, (const struct cw_option_group[]){{NULL, list, 0}, {0}},
    .program = true};

static int parse_again(struct again *again, int argc, char **argv, struct cw_err *err)
{
    *again = (struct again){.timeout_ns = UINT64_MAX};
    if (cw_options_parse(&options_again, argc, argv, again, NULL, err) < 0)
        return err->code;
    if (optind < argc)
        return cw_err_set(err, CW_EINVAL,
                          "--resume %s: unexpected argument '%s'; the job has its options and "
                          "programs already",
                          again->dir, argv[optind]);
    return CW_OK;
}

static int run_again(const struct again *again, struct kept_job *kept, struct cw_err *err)
{
    struct run_options options;
    int code = 1;

    if (kept_job_enter(kept, err) < 0) {
        state_file_close(kept->state, false);
        return fail(1, err);
    }
    if (run_options_parse(&options, kept->argc, kept->argv, err) < 0) {
        state_file_close(kept->state, false);
        code = fail(2, err);
    } else {
        fault_plan_init(&options.faults); /* drills were for the first time */
        if (again->timeout_ns != UINT64_MAX)
            options.timeout_ns = again->timeout_ns;
        options.stats |= again->stats;
        options.verbose |= again->verbose;
        code = run_job(&options, kept->state);
    }
    run_options_free(&options);
    return code;
}

static int take_up(struct kept_job *kept, const char *job, struct cw_err *err)
{
    char dir[PATH_MAX];

    if (!held_jobs_names(job))
        return kept_job_take(kept, job, STATE_FILE_ON_DISK, err);
    if (held_jobs_find(job, dir, err) < 0)
        return err->code;
    return kept_job_take(kept, dir, STATE_FILE_HELD, err);
}

static int resume(int argc, char **argv)
{
    struct again again;
    struct kept_job kept = {0};
    struct cw_err err = {0};
    int code;

    if (parse_again(&again, argc, argv, &err) < 0)
        return fail(2, &err);
    if (take_up(&kept, again.dir, &err) < 0) {
        state_file_close(kept.state, false);
        code = fail(1, &err);
    } else {
        code = run_again(&again, &kept, &err);
    }
    kept_job_free(&kept);
    return code;
}

static bool is_resume(const char *arg)
{
    return strcmp(arg, "--resume") == 0 || strcmp(arg, "-resume") == 0 ||
           strncmp(arg, "--resume=", strlen("--resume=")) == 0;
}

/* --- a new one --- */

int cmd_run(int argc, char **argv)
{
    struct run_options options;
    struct cw_err err = {0};
    int code = 0;

    if (argc > 1 && is_resume(argv[1]))
        return resume(argc, argv);
    if (run_options_parse(&options, argc, argv, &err) < 0)
        code = fail(2, &err);
    else if (options.help)
        cw_options_help(&run_option_list, stdout);
    else
        code = run_job(&options, NULL);
    run_options_free(&options);
    return code;
}
