#include "dispatcher/doctor/links.h"

#include <stdio.h>
#include <string.h>

#define PORTS "the kernel chooses (net.ipv4.ip_local_port_range)"

/* As the relays of a job are told: by the address that ssh used, else by name. */
static const char *address_of(const struct look *l)
{
    const char *at = strchr(l->name, '@');

    if (l->visit.report.own[0])
        return l->visit.report.own;
    return at ? at + 1 : l->name;
}

/* The host connects. */
static int ask(const struct links *links, struct look *l, const char *address, uint16_t port,
               struct cw_err *err)
{
    struct request request = {.type = REQUEST_REACH, .port = port};
    int code;

    memcpy(request.token, links->token, sizeof(request.token));
    snprintf(request.address, sizeof(request.address), "%.*s", (int)REQUEST_ADDRESS_MAX, address);
    code = l->gone ? CW_ECLOSED : visit_ask(&l->visit, &request, err);
    if (l->gone || code == CW_OK || code == CW_ESYS)
        return code;
    l->gone = true;
    findings_add(&l->findings, DOCTOR_MISSING,
                 "it was there, and answers no more: %s; is it overloaded?", err->text);
    return code;
}

static void reach_it(const struct links *links, struct look *l)
{
    struct cw_err err;

    if (l->port && tcp_probe_ask(address_of(l), l->port, links->token, &err) < 0)
        findings_add(&l->findings, DOCTOR_MISSING,
                     "this machine does not reach it over TCP: %s; let no firewall close its ports "
                     "that " PORTS " to this machine, or use --relay-at cluster",
                     err.text);
}

static void reach_back(const struct links *links, struct look *l)
{
    const char *peer = l->visit.report.peer;
    struct cw_err err;

    if (links->port && ask(links, l, peer[0] ? peer : links->own_name, links->port, &err) < 0 &&
        !l->gone)
        findings_add(&l->findings, DOCTOR_MISSING,
                     "it does not reach this machine over TCP: %s; let no firewall close the ports "
                     "here that " PORTS " to it",
                     err.text);
}

static void reach_next(const struct links *links, struct look *l, const struct look *next)
{
    struct cw_err err;

    if (ask(links, l, address_of(next), next->port, &err) < 0 && !l->gone)
        findings_add(
            &l->findings, DOCTOR_MISSING,
            "it does not reach %s over TCP: %s; let no firewall close the ports that " PORTS
            " between hosts, or use --relay-at cluster",
            next->name, err.text);
}

void links_reach(const struct links *links, uint32_t host)
{
    struct look *l = &links->host[host];
    const struct look *next = &links->host[(host + 1) % links->count];

    if (!l->there || l->here)
        return;
    reach_it(links, l);
    reach_back(links, l);
    if (next != l && next->there && !next->here && next->port)
        reach_next(links, l, next);
}
