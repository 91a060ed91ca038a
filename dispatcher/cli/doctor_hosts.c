#include "dispatcher/cli/doctor_hosts.h"
#include "common/fd.h"
#include "common/together.h"
#include "dispatcher/cli/doctor.h"
#include "dispatcher/doctor/links.h"
#include "dispatcher/program/resolve.h"

#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct examination {
    struct look_config config;
    struct links links;
    struct tcp_probe_server server;
    struct findings findings; /* of this machine, and of all hosts together */
    uint8_t token[TCP_PROBE_TOKEN];
    char own_name[HOST_NAME_MAX + 1];
    char causeway[PATH_MAX];
    char directory[PATH_MAX];
    char program[PATH_MAX];
};

/* --- hosts, several at a time --- */

static void look_at_one(void *ctx, uint32_t host)
{
    struct examination *e = ctx;

    look_at(&e->links.host[host], &e->config);
}

static void reach_one(void *ctx, uint32_t host)
{
    struct examination *e = ctx;

    links_reach(&e->links, host);
}

static void leave_one(void *ctx, uint32_t host)
{
    struct examination *e = ctx;

    look_free(&e->links.host[host]);
}

/* --- this machine --- */

static void begin_to_listen(struct examination *e)
{
    struct cw_err err;

    randombytes_buf(e->token, sizeof(e->token));
    e->links.token = e->config.token = e->token;
    if (tcp_probe_serve(&e->server, e->token, &err) < 0)
        findings_add(&e->findings, DOCTOR_MISSING,
                     "this machine cannot listen for TCP: %s; relays of jobs have to", err.text);
    else
        e->links.port = e->server.port;
}

static void find_program(struct examination *e, const char *name)
{
    struct cw_err err;

    if (program_resolve(name, NULL, e->program, sizeof(e->program), &err) < 0)
        findings_add(&e->findings, DOCTOR_MISSING, "%s", err.text);
    else
        e->config.program = e->program;
}

static int begin(struct examination *e, const struct host_options *options, const char *program)
{
    ssize_t n = readlink("/proc/self/exe", e->causeway, sizeof(e->causeway) - 1);

    e->links.host = calloc(options->list.count, sizeof(*e->links.host));
    if (!e->links.host || !getcwd(e->directory, sizeof(e->directory)))
        return -1;
    e->links.count = options->list.count;
    for (uint32_t i = 0; i < e->links.count; i++) {
        e->links.host[i].name = options->list.host[i].name;
        e->links.host[i].visit = VISIT_NONE;
    }
    e->causeway[n > 0 ? n : 0] = '\0';
    gethostname(e->own_name, sizeof(e->own_name) - 1);
    e->links.own_name = e->own_name;
    e->config.directory = e->directory;
    e->config.visit =
        (struct visit_config){.launcher = options->launcher,
                              .launcher_args = options->launcher_args,
                              .own_host = e->own_name,
                              .causeway = options->agent ? options->agent : e->causeway};
    if (program)
        find_program(e, program);
    cw_raise_descriptor_limit(); /* a launcher's process has three pipes, and each look a loop */
    signal(SIGPIPE, SIG_IGN);    /* a launcher may have ended when it is asked */
    begin_to_listen(e);
    return 0;
}

/* --- all of them --- */

/* Returns whether something is missing. */
static bool print_all(const struct examination *e)
{
    bool missing = false;

    for (uint32_t i = 0; i < e->links.count; i++) {
        missing |= doctor_print(e->links.host[i].name, &e->links.host[i].findings);
        missing |= doctor_print(e->links.host[i].name, &e->links.host[i].visit.report.findings);
    }
    return doctor_print("", &e->findings) || missing;
}

int doctor_hosts(const struct host_options *options, const char *program)
{
    struct examination e = {0};
    bool missing;

    if (begin(&e, options, program) < 0) {
        perror("causeway doctor");
        free(e.links.host);
        return 1;
    }
    cw_together(e.links.count, DOCTOR_HOSTS_MAX, look_at_one, &e);
    cw_together(e.links.count, DOCTOR_HOSTS_MAX, reach_one, &e);
    look_compare(e.links.host, e.links.count, &e.findings);
    missing = print_all(&e);
    cw_together(e.links.count, DOCTOR_HOSTS_MAX, leave_one, &e);
    tcp_probe_end(&e.server);
    findings_free(&e.findings);
    free(e.links.host);
    return missing;
}
