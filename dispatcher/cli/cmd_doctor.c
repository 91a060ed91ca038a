#include "common/parse.h"
#include "dispatcher/cli/commands.h"
#include "dispatcher/cli/doctor.h"
#include "dispatcher/program/tool.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: causeway doctor [PROGRAM]\n"
    "       causeway doctor --hostfile FILE|--host LIST [OPTION...] [PROGRAM]\n"
    "       causeway doctor -f FILE [--here SITE] [--timeout TIME]\n"
    "\n"
    "Looks whether this machine, or each host of a job, has what Causeway needs, and whether\n"
    "PROGRAM, found as a shell would, can run under it; of hosts also, whether they can be logged\n"
    "in to and reach each other. Each line says ok, warning or missing, and what to do. Of a "
    "grid:\n"
    "each gateway, relay and host, and the ways between sites, which it measures and draws.\n"
    "\n"
    "  --host LIST           hosts, as NAME,NAME...\n"
    "  --hostfile FILE       hosts, as for causeway run\n"
    "  --launcher COMMAND    how they are reached: ssh (default), srun or another command\n"
    "  --launcher-args ARGS  its further arguments\n"
    "  --agent PATH          of causeway on the hosts (default: as here)\n"
    "  -f, --file FILE       a grid file, as for causeway up\n"
    "  --here SITE           this machine is at that site; -: at none (default: by its name)\n"
    "  --timeout TIME        of a grid: for a connection, and for a host to report\n"
    "                        (default 22s, 60s)\n"
    "  --help                this text\n"
    "\n"
    "Exit code: 0 all that is needed is there, 1 something is missing, 2 bad usage.\n";

enum { OPTION_HELP = 'h', OPTION_GRID = 'f', OPTION_HERE = 256, OPTION_TIMEOUT, OPTION_OF_HOSTS };

/* Of those that causeway run has for hosts. */
static const enum host_option host_options[] = {HOST_OPTION_HOST, HOST_OPTION_HOSTFILE,
                                                HOST_OPTION_LAUNCHER, HOST_OPTION_LAUNCHER_ARGS,
                                                HOST_OPTION_AGENT};
#define HOST_OPTIONS_HERE (sizeof(host_options) / sizeof(*host_options))
#define OWN_OPTIONS 4

struct doctor_options {
    bool help;
    const char *grid; /* NULL: not given, as the next one */
    const char *here;
    uint64_t time_ns; /* 0: not given */
    struct host_options hosts;
    const char *program; /* NULL: none */
};

static int take_own(struct doctor_options *o, int option, struct cw_err *err)
{
    switch (option) {
    case OPTION_HELP:
        o->help = true;
        break;
    case OPTION_GRID:
        o->grid = optarg;
        break;
    case OPTION_HERE:
        o->here = optarg;
        break;
    default:
        if (cw_parse_duration("--timeout", optarg, &o->time_ns, err) < 0)
            return err->code;
        if (o->time_ns < DOCTOR_GRID_TIME_NS_MIN || o->time_ns > DOCTOR_GRID_TIME_NS_MAX)
            return cw_err_set(err, CW_EINVAL, "--timeout '%s': expected 0.1 s to 600 s", optarg);
    }
    return CW_OK;
}

static int check(const struct doctor_options *o, struct cw_err *err)
{
    if (o->grid && (o->hosts.given || o->program))
        return cw_err_set(err, CW_EINVAL, "%s: not with -f: the grid file names the hosts%s",
                          o->program ? o->program : "options of hosts",
                          o->program ? ", and programs are sent to them" : "");
    if (!o->grid && (o->here || o->time_ns))
        return cw_err_set(err, CW_EINVAL, "%s is for a grid: give -f FILE",
                          o->here ? "--here" : "--timeout");
    return CW_OK;
}

static int parse(struct doctor_options *o, int argc, char **argv, struct cw_err *err)
{
    struct option of_hosts[HOST_OPTIONS];
    struct option all[HOST_OPTIONS_HERE + OWN_OPTIONS + 1] = {
        {"help", no_argument, NULL, OPTION_HELP},
        {"here", required_argument, NULL, OPTION_HERE},
        {"timeout", required_argument, NULL, OPTION_TIMEOUT},
        {"file", required_argument, NULL, OPTION_GRID}};
    int option;

    host_options_list(of_hosts, OPTION_OF_HOSTS);
    for (size_t i = 0; i < HOST_OPTIONS_HERE; i++)
        all[i + OWN_OPTIONS] = of_hosts[host_options[i]];
    optind = 0; /* start anew, whoever used getopt before */
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:hf:", all, NULL)) != -1) {
        if (option == '?' || option == ':')
            return cw_parse_option_error(option, argv, "causeway doctor", err);
        if ((option < OPTION_OF_HOSTS
                 ? take_own(o, option, err)
                 : host_options_take(&o->hosts, (enum host_option)(option - OPTION_OF_HOSTS),
                                     optarg, err)) < 0)
            return err->code;
    }
    if (argc - optind > 1)
        return cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; expected one PROGRAM at most",
                          argv[optind + 1]);
    o->program = argv[optind];
    if (!o->help && check(o, err) < 0)
        return err->code;
    return o->hosts.given && !o->help ? host_options_complete(&o->hosts, 1, getenv, err) : CW_OK;
}

static int examine(const char *program)
{
    struct doctor d = {.output = malloc(TOOL_OUTPUT_MAX)};
    bool missing;

    if (!d.output) {
        fputs("causeway doctor: no memory\n", stderr);
        return 1;
    }
    doctor_check_library(&d);
    doctor_check_machine(&d);
    doctor_check_images(&d);
    if (program)
        doctor_check_program(&d, program);
    free(d.output);
    missing = doctor_print("", &d.findings);
    findings_free(&d.findings);
    return missing;
}

static int carry_out(const struct doctor_options *o)
{
    if (o->help)
        return fputs(usage, stdout) < 0;
    if (o->grid)
        return doctor_grid(o->grid, o->here, o->time_ns);
    return o->hosts.list.count ? doctor_hosts(&o->hosts, o->program) : examine(o->program);
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_options options = {0};
    struct cw_err err = {0};
    int code = 2;

    host_options_init(&options.hosts);
    if (parse(&options, argc, argv, &err) < 0)
        fprintf(stderr, "causeway doctor: %s\n", err.text);
    else
        code = carry_out(&options);
    host_options_free(&options.hosts);
    return code;
}
