#include "dispatcher/cli/commands.h"
#include "dispatcher/cli/doctor.h"

#include <getopt.h>
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
    "\n";

struct doctor_options {
    bool help;
    const char *grid; /* NULL: not given, as the next one */
    const char *here;
    uint64_t time_ns; /* 0: not given */
    struct host_options hosts;
    bool of_hosts;       /* some of these were given */
    const char *program; /* NULL: none */
};

#define AT(field) offsetof(struct doctor_options, field)

static const struct cw_option list[] = {
    {"file", "f", "FILE", CW_OPTION_TEXT, AT(grid), .help = "a grid file, as for causeway up"},
    {"here", .argument = "SITE", CW_OPTION_TEXT, AT(here),
     .help = "this machine is at that site; -: at none (default: by its name)"},
    {"timeout", .argument = "TIME", CW_OPTION_TIME, AT(time_ns), DOCTOR_GRID_TIME_NS_MIN,
     DOCTOR_GRID_TIME_NS_MAX, "0.1 s to 600 s",
     .help = "of a grid: for a connection, and for a host to report (default 22s, 60s)"},
    {"help", "h", .at = AT(help), .help = "this text"},
    {0}};

static const struct cw_options options = {
    "causeway doctor", usage,
    (const struct cw_option_group[]){{NULL, host_list_options, AT(hosts)},
                                     {NULL, host_launch_options, AT(hosts)},
                                     {NULL, list, 0},
                                     {0}},
    "\nExit code: 0 all that is needed is there, 1 something is missing, 2 bad usage.\n", true};

static int check(struct doctor_options *o, const char *const *given, struct cw_err *err)
{
    static const char *const of_hosts[] = {"host",          "hostfile", "launcher",
                                           "launcher-args", "agent",    NULL};
    const char *name = cw_option_first(&options, given, of_hosts);

    o->of_hosts = name;
    if (o->grid && (name || o->program))
        return cw_err_set(err, CW_EINVAL, "%s: not with -f: the grid file names the hosts%s",
                          o->program ? o->program : "options of hosts",
                          o->program ? ", and programs are sent to them" : "");
    if (!o->grid && (o->here || o->time_ns))
        return cw_err_set(err, CW_EINVAL, "%s is for a grid: give -f FILE",
                          o->here ? "--here" : "--timeout");
    if (name && !o->hosts.hostfile && !o->hosts.list.count && !getenv("SLURM_JOB_NODELIST"))
        return cw_err_set(err, CW_EINVAL,
                          "--%s is for a job on several machines: give --host or --hostfile", name);
    return CW_OK;
}

static int parse(struct doctor_options *o, int argc, char **argv, struct cw_err *err)
{
    const char *given[CW_OPTIONS_MAX] = {0};

    if (cw_options_parse(&options, argc, argv, o, given, err) < 0)
        return err->code;
    if (argc - optind > 1)
        return cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; expected one PROGRAM at most",
                          argv[optind + 1]);
    o->program = argv[optind];
    if (o->help || check(o, given, err) < 0)
        return err->code;
    return o->of_hosts ? host_options_complete(&o->hosts, 1, getenv, err) : CW_OK;
}

static int examine(const char *program)
{
    struct doctor d = {0};
    bool missing;

    doctor_check_library(&d);
    doctor_check_machine(&d);
    doctor_check_images(&d);
    if (program)
        doctor_check_program(&d, program);
    missing = doctor_print("", &d.findings);
    findings_free(&d.findings);
    return missing;
}

static int carry_out(const struct doctor_options *o)
{
    if (o->help) {
        cw_options_help(&options, stdout);
        return 0;
    }
    if (o->grid)
        return doctor_grid(o->grid, o->here, o->time_ns);
    return o->hosts.list.count ? doctor_hosts(&o->hosts, o->program) : examine(o->program);
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_options o = {0};
    struct cw_err err = {0};
    int code = 2;

    host_options_init(&o.hosts);
    if (parse(&o, argc, argv, &err) < 0)
        fprintf(stderr, "causeway doctor: %s\n", err.text);
    else
        code = carry_out(&o);
    host_options_free(&o.hosts);
    return code;
}
