#include "dispatcher/cli/doctor_hosts.h"
#include "common/together.h"
#include "dispatcher/cli/doctor.h"
#include "dispatcher/doctor/links.h"
#include "dispatcher/program/resolve.h"

#include <stdio.h>
#include <unistd.h>

struct examination {
    struct host_checks hosts;
    struct links links;
    struct tcp_probe_server server;
    char own_name[HOST_NAME_MAX + 1];
    char program[PATH_MAX];
};

/* --- hosts, several at a time --- */

static void check_one(void *ctx, uint32_t host)
{
    host_check_begin(&((struct examination *)ctx)->hosts.check[host]);
}

static void reach_one(void *ctx, uint32_t host)
{
    links_reach(&((const struct examination *)ctx)->links, host);
}

/* --- this machine --- */

static void begin_to_listen(struct examination *e)
{
    struct cw_err err;

    if (tcp_probe_serve(&e->server, e->hosts.config.token, &err) < 0)
        findings_add(&e->hosts.findings, DOCTOR_MISSING,
                     "this machine cannot listen for TCP: %s; relays of jobs have to", err.text);
    e->links = (struct links){&e->hosts, e->server.port, e->own_name};
}

static void find_program(struct examination *e, const char *name)
{
    struct cw_err err;

    if (program_resolve(name, NULL, e->program, sizeof(e->program), &err) < 0)
        findings_add(&e->hosts.findings, DOCTOR_MISSING, "%s", err.text);
    else
        e->hosts.config.program = e->program;
}

static int begin(struct examination *e, const struct host_options *options, const char *program,
                 struct cw_err *err)
{
    if (host_checks_init(&e->hosts, options->list.count, err) < 0)
        return err->code;
    gethostname(e->own_name, sizeof(e->own_name) - 1);
    e->hosts.config.launcher = options->launcher;
    e->hosts.config.launcher_args = options->launcher_args;
    e->hosts.config.own_host = e->own_name;
    for (uint32_t i = 0; i < e->hosts.count; i++) {
        e->hosts.check[i].name = options->list.host[i].name;
        if (options->agent)
            e->hosts.check[i].causeway = options->agent;
    }
    if (program)
        find_program(e, program);
    begin_to_listen(e);
    return CW_OK;
}

/* --- all of them --- */

static bool check_all(struct examination *e)
{
    bool missing = false;

    cw_together(e->hosts.count, DOCTOR_HOSTS_MAX, check_one, e);
    cw_together(e->hosts.count, DOCTOR_HOSTS_MAX, reach_one, e);
    host_checks_compare(&e->hosts);
    for (uint32_t i = 0; i < e->hosts.count; i++)
        missing |= doctor_print_host(&e->hosts.check[i]);
    return doctor_print("", &e->hosts.findings) || missing;
}

int doctor_hosts(const struct host_options *options, const char *program)
{
    struct examination e = {0};
    struct cw_err err;
    int code = 1;

    if (begin(&e, options, program, &err) < 0)
        fprintf(stderr, "causeway doctor: %s\n", err.text);
    else
        code = check_all(&e);
    tcp_probe_end(&e.server);
    host_checks_end(&e.hosts, DOCTOR_HOSTS_MAX);
    return code;
}
