#include "dispatcher/doctor/links.h"

#include <stdio.h>
#include <string.h>

#define PORTS "the kernel chooses (net.ipv4.ip_local_port_range)"

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

static void reach_it(const struct links *links, struct host_check *c)
{
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    address_of(c, address);
    if (c->port &&
        tcp_probe_ask(address, TCP_PROBE_CONNECT_MS, links->hosts->config.token, &err) < 0)
        findings_add(&c->findings, DOCTOR_MISSING,
                     "this machine does not reach it over TCP: %s; let no firewall close its ports "
                     "that " PORTS " to this machine, or use --relay-at cluster",
                     err.text);
}

static void reach_back(const struct links *links, struct host_check *c)
{
    const char *peer = c->session.facts.peer;
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    tcp_probe_address(peer[0] ? peer : links->own_name, links->port, address);
    if (links->port && ask(c, address, &err) < 0)
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

void links_reach(const struct links *links, uint32_t host)
{
    struct host_check *c = &links->hosts->check[host];
    const struct host_check *next = &links->hosts->check[(host + 1) % links->hosts->count];

    if (!c->there || c->here)
        return;
    reach_it(links, c);
    reach_back(links, c);
    if (next != c && next->there && !next->here && next->port)
        reach_next(c, next);
}
