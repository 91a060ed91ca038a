#include "common/options.h"
#include "dispatcher/cli/commands.h"
#include "dispatcher/cli/grid_services.h"

#include <getopt.h>

static const char up_usage[] =
    "usage: causeway up -f FILE [--site NAME] [--here SITE]\n"
    "\n"
    "Starts the services of all sites of a grid: at each site a relay, a checkpoint server, and\n"
    "doors, by which ranks reach those of other sites; where a site lets nothing in, it is\n"
    "published. What runs already is left as it is. Each is a process of the user there, which "
    "goes\n"
    "on until causeway down.\n"
    "\n";

static const char down_usage[] =
    "usage: causeway down -f FILE [--site NAME] [--here SITE]\n"
    "\n"
    "Ends the services of all sites of a grid, and removes what they kept there but for images.\n"
    "Jobs that have their relays there end.\n"
    "\n";

struct up_options {
    struct grid_services_options grid;
    bool help;
};

#define AT(field) offsetof(struct up_options, field)

static const struct cw_option list[] = {
    {"file", "f", "FILE", CW_OPTION_TEXT, AT(grid.file),
     .help = "the grid: docs/grid.md has the format"},
    {"site", .argument = "NAME", CW_OPTION_TEXT, AT(grid.site),
     .help = "only of this site; where nothing gets in, to be run on a machine there"},
    {"here", .argument = "SITE", CW_OPTION_TEXT, AT(grid.here),
     .help = "the site of this machine (default: the one that has its name among its hosts, or as "
             "gateway; - is none)"},
    {"help", .at = AT(help), .help = "this text"},
    {0}};

static int parse(struct up_options *o, const struct cw_options *options, int argc, char **argv,
                 struct cw_err *err)
{
    if (cw_options_parse(options, argc, argv, o, NULL, err) < 0 || o->help)
        return err->code;
    if (optind < argc)
        return cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see %s --help", argv[optind],
                          options->command);
    return o->grid.file ? CW_OK
                        : cw_err_set(err, CW_EINVAL,
                                     "no -f FILE, which says what the grid is; see %s --help",
                                     options->command);
}

static int run(const char *command, const char *op, const char *usage, int argc, char **argv)
{
    const struct cw_option_group groups[] = {{NULL, list, 0}, {0}};
    const struct cw_options options = {
        .command = command,
        .usage = usage,
        .groups = groups,
        .end = "\nExit code: 0, 1 when something failed, 2 bad usage or a wrong grid file.\n"};
    struct up_options o = {.grid = {.command = command, .op = op}};
    struct cw_err err = {0};

    if (parse(&o, &options, argc, argv, &err) < 0) {
        fprintf(stderr, "%s: %s\n", command, err.text);
        return 2;
    }
    if (!o.help)
        return grid_services(&o.grid);
    cw_options_help(&options, stdout);
    return 0;
}

int cmd_up(int argc, char **argv)
{
    return run("causeway up", "start", up_usage, argc, argv);
}

int cmd_down(int argc, char **argv)
{
    return run("causeway down", "stop", down_usage, argc, argv);
}
