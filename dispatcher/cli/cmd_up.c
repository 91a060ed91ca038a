#include "common/parse.h"
#include "dispatcher/cli/commands.h"
#include "dispatcher/cli/grid_services.h"

#include <getopt.h>
#include <stdio.h>

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

static const char options_usage[] =
    "  -f, --file FILE      the grid: docs/grid.md has the format\n"
    "  --site NAME          only of this site; where nothing gets in, to be run on a machine "
    "there\n"
    "  --here SITE          the site of this machine (default: the one that has its name among "
    "its\n"
    "                       hosts, or as gateway; - is none)\n"
    "  --help               this text\n"
    "\n"
    "Exit code: 0, 1 when something failed, 2 bad usage or a wrong grid file.\n";

static int parse(struct grid_services_options *o, bool *help, int argc, char **argv,
                 struct cw_err *err)
{
    const struct cw_option options[] = {{"file", 'f', .text = &o->file},
                                        {"site", .text = &o->site},
                                        {"here", .text = &o->here},
                                        {"help", .flag = help},
                                        {0}};

    if (cw_parse_options(argc, argv, o->command, options, err) < 0 || *help)
        return err->code;
    if (optind < argc)
        return cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see %s --help", argv[optind],
                          o->command);
    return o->file ? CW_OK
                   : cw_err_set(err, CW_EINVAL,
                                "no -f FILE, which says what the grid is; see %s "
                                "--help",
                                o->command);
}

static int run(struct grid_services_options *o, const char *usage, int argc, char **argv)
{
    struct cw_err err = {0};
    bool help = false;

    if (parse(o, &help, argc, argv, &err) < 0) {
        fprintf(stderr, "%s: %s\n", o->command, err.text);
        return 2;
    }
    if (!help)
        return grid_services(o);
    printf("%s%s", usage, options_usage);
    return 0;
}

int cmd_up(int argc, char **argv)
{
    struct grid_services_options o = {.command = "causeway up", .op = "start"};

    return run(&o, up_usage, argc, argv);
}

int cmd_down(int argc, char **argv)
{
    struct grid_services_options o = {.command = "causeway down", .op = "stop"};

    return run(&o, down_usage, argc, argv);
}
