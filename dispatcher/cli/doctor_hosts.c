#include "common/together.h"
#include "dispatcher/cli/doctor.h"
#include "dispatcher/doctor/compare.h"
#include "dispatcher/program/resolve.h"

#include <stdio.h>
#include <unistd.h>

#define PORTS "the kernel chooses (net.ipv4.ip_local_port_range)"

struct examination {
    struct host_checks hosts;
    struct tcp_probe_server server;
    char own_name[HOST_NAME_MAX + 1];
    char program[PATH_MAX];
};

/* --- hosts, several at a time --- */

static void check_one(void *ctx, uint32_t host)
{
    host_check_begin(&((struct examination *)ctx)->hosts.check[host]);
}

/* --- which of them reach each other over TCP, as relays, ranks and servers have to --- */

/* As the relays of a job are told: by the address that ssh used, else by name. */
static void address_of(const struct host_check *c, char address[CW_ADDRESS_MAX])
{
    const char *own = c->session.facts.own, *at = strchr(c->name, '@');

    tcp_probe_address(own[0] ? own : at ? at + 1 : c->name, c->port, address);
}

/* The host connects. */
static int ask(struct host_check *c, const char *address, struct cw_err *err)
{
    if (c->gone || host_check_reach(c, address, err) == CW_OK || !c->gone)
        return c->gone ? CW_OK : err->code;
    findings_add(&c->findings, DOCTOR_MISSING,
                 "it was there, and answers no more: %s; is it overloaded?", err->text);
    return CW_OK;
}

static void reach_it(const struct examination *e, struct host_check *c)
{
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    address_of(c, address);
    if (c->port && tcp_probe_ask(address, TCP_PROBE_CONNECT_MS, e->hosts.config.token, &err) < 0)
        findings_add(&c->findings, DOCTOR_MISSING,
                     "this machine does not reach it over TCP: %s; let no firewall close its ports "
                     "that " PORTS " to this machine, or use --relay-at cluster",
                     err.text);
}

static void reach_back(const struct examination *e, struct host_check *c)
{
    const char *peer = c->session.facts.peer;
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    tcp_probe_address(peer[0] ? peer : e->own_name, e->server.port, address);
    if (e->server.port && ask(c, address, &err) < 0)
        findings_add(&c->findings, DOCTOR_MISSING,
                     "it does not reach this machine over TCP: %s; let no firewall close the ports "
                     "here that " PORTS " to it",
                     err.text);
}

static void reach_next(struct host_check *c, const struct host_check *next)
{
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    address_of(next, address);
    if (ask(c, address, &err) < 0)
        findings_add(
            &c->findings, DOCTOR_MISSING,
            "it does not reach %s over TCP: %s; let no firewall close the ports that " PORTS
            " between hosts, or use --relay-at cluster",
            next->name, err.text);
}

static void reach_one(void *ctx, uint32_t host)
{
    const struct examination *e = ctx;
    struct host_check *c = &e->hosts.check[host];
    const struct host_check *next = &e->hosts.check[(host + 1) % e->hosts.count];

    if (!c->there || c->here)
        return;
    reach_it(e, c);
    reach_back(e, c);
    if (next != c && next->there && !next->here && next->port)
        reach_next(c, next);
}

/* --- this machine --- */

static void begin_to_listen(struct examination *e)
{
    struct cw_err err;

    if (tcp_probe_serve(&e->server, e->hosts.config.token, &err) < 0)
        findings_add(&e->hosts.findings, DOCTOR_MISSING,
                     "this machine cannot listen for TCP: %s; relays of jobs have to", err.text);
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
        if (options->causeway)
            e->hosts.check[i].causeway = options->causeway;
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
    compare_hosts(e->hosts.check, e->hosts.count, &e->hosts.findings);
    for (uint32_t i = 0; i < e->hosts.count; i++)
        missing |= doctor_print(e->hosts.check[i].name, &e->hosts.check[i].findings);
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
