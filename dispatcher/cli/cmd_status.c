/* `causeway status`: how the jobs of this user stand, or the services of a grid. */
#include "common/options.h"
#include "dispatcher/cli/commands.h"
#include "dispatcher/cli/grid_services.h"
#include "dispatcher/status/status_client.h"
#include "dispatcher/status/status_table.h"
#include "dispatcher/status/table.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] =
    "usage: causeway status [--json] [JOB]\n"
    "       causeway status [--json] -f FILE [--site NAME] [--here SITE]\n"
    "\n"
    "Shows the ranks of a running job: where each runs, its incarnation (1 until it is "
    "restarted),\n"
    "its state, how many events its relay has numbered for it, and what the relay keeps to be "
    "able\n"
    "to restart it. JOB is the pid of its causeway run, or the beginning of its identifier. "
    "Without\n"
    "it: the job that runs, or a list when there are several.\n"
    "\n";

struct status_options {
    bool json;
    bool help;
    const char *job;                   /* NULL: any */
    struct grid_services_options grid; /* file NULL: it is about jobs */
};

#define AT(field) offsetof(struct status_options, field)

static const struct cw_option list[] = {
    {"json", .at = AT(json), .help = "the document as it is, one line a job"},
    {"file", "f", "FILE", CW_OPTION_TEXT, AT(grid.file),
     .help = "of a grid, in place of a job: its relays and other services, at which site and host "
             "they are, and whether they run"},
    {"site", .argument = "NAME", CW_OPTION_TEXT, AT(grid.site), .help = "only those of this site"},
    {"here", .argument = "SITE", CW_OPTION_TEXT, AT(grid.here),
     .help = "the site of this machine, as for causeway up"},
    {"help", .at = AT(help), .help = "this text"},
    {0}};

static const struct cw_options options = {
    .command = "causeway status",
    .usage = usage,
    .groups = (const struct cw_option_group[]){{NULL, list, 0}, {0}},
    .end = "\n"
           "Exit code: 0, 1 when there is no such job or it does not answer, or a service of the "
           "grid\n"
           "does not run, 2 bad usage.\n"};

static int parse(struct status_options *o, int argc, char **argv, struct cw_err *err)
{
    if (cw_options_parse(&options, argc, argv, o, NULL, err) < 0)
        return err->code;
    if ((o->grid.site || o->grid.here) && !o->grid.file)
        return cw_err_set(err, CW_EINVAL, "--site and --here are for -f FILE, a grid");
    if (o->grid.file && argc > optind)
        return cw_err_set(err, CW_EINVAL, "-f is about a grid, and '%s' about a job", argv[optind]);
    if (argc - optind > 1)
        return cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see causeway status --help",
                          argv[optind + 1]);
    o->job = argv[optind];
    return CW_OK;
}

static void show(const struct status_options *o, const json_t *document)
{
    if (o->json)
        table_put_json(document);
    else
        status_table_job(stdout, document);
}

/* Directories whose dispatcher does not answer are told, and nothing else is done about them. */
static void show_all(const struct status_options *o, const struct status_found *found, int count)
{
    json_t *documents = json_array();

    for (int i = 0; i < count; i++) {
        if (found[i].document)
            json_array_append(documents, found[i].document);
        else
            fprintf(stderr, "causeway status: %s\n", found[i].err.text);
    }
    if (json_array_size(documents) == 1 || o->json)
        for (size_t i = 0; i < json_array_size(documents); i++)
            show(o, json_array_get(documents, i));
    else if (json_array_size(documents))
        status_table_jobs(stdout, documents);
    json_decref(documents);
}

static int run_status(const struct status_options *o, struct status_found *found, int count)
{
    struct cw_err err = {0};
    int chosen = status_choose(found, count, o->job, &err);

    if (!o->job)
        show_all(o, found, count);
    else if (chosen >= 0)
        show(o, found[chosen].document);
    /* without a name several jobs are as good as one */
    if (chosen < 0 && (o->job || err.code == CW_ENOTFOUND)) {
        fprintf(stderr, "causeway status: %s\n", err.text);
        return 1;
    }
    if (fflush(stdout) == 0)
        return 0;
    perror("causeway status: standard output");
    return 1;
}

int cmd_status(int argc, char **argv)
{
    struct status_options o = {.grid = {.command = "causeway status", .op = "look"}};
    struct status_found found[STATUS_JOBS_MAX];
    struct cw_err err = {0};
    int count, code;

    if (parse(&o, argc, argv, &err) < 0) {
        fprintf(stderr, "causeway status: %s\n", err.text);
        return 2;
    }
    if (o.help) {
        cw_options_help(&options, stdout);
        return 0;
    }
    if (o.grid.file) {
        o.grid.json = o.json;
        return grid_services(&o.grid);
    }
    count = status_find(found);
    code = run_status(&o, found, count);
    status_forget(found, count);
    return code;
}
