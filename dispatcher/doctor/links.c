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
static int ask(const struct links *links, struct look *l, enum request_type type,
               const char *address, uint16_t port, struct cw_err *err)
{
    struct request request = {.type = type, .port = port};
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

/* It connects to this machine. */
static int ask_back(const struct links *links, struct look *l, enum request_type type,
                    struct cw_err *err)
{
    const char *peer = l->visit.report.peer;

    return ask(links, l, type, peer[0] ? peer : links->own_name, links->port, err);
}

static bool reach_it(const struct links *links, struct look *l)
{
    struct tcp_probe_result result;
    struct cw_err err;

    if (l->port &&
        tcp_probe_ask(address_of(l), l->port, links->token, false, &result, &err) == CW_OK)
        return true;
    if (l->port)
        findings_add(&l->findings, DOCTOR_MISSING,
                     "this machine does not reach it over TCP: %s; let no firewall close its ports "
                     "that " PORTS " to this machine, or use --relay-at cluster",
                     err.text);
    return false;
}

static bool reach_back(const struct links *links, struct look *l)
{
    struct cw_err err;

    if (links->port && ask_back(links, l, REQUEST_REACH, &err) == CW_OK)
        return true;
    if (links->port && !l->gone)
        findings_add(&l->findings, DOCTOR_MISSING,
                     "it does not reach this machine over TCP: %s; let no firewall close the ports "
                     "here that " PORTS " to it",
                     err.text);
    return false;
}

static void reach_next(const struct links *links, struct look *l, const struct look *next)
{
    struct cw_err err;

    if (ask(links, l, REQUEST_REACH, address_of(next), next->port, &err) < 0 && !l->gone)
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
    l->reached = reach_it(links, l);
    l->reached &= reach_back(links, l);
    if (next != l && next->there && !next->here && next->port)
        reach_next(links, l, next);
}

static double megabytes_a_second(uint64_t bytes, uint64_t time_ns)
{
    return time_ns ? (double)bytes / (double)time_ns * 1e3 : 0;
}

void links_measure(const struct links *links, uint32_t host)
{
    struct look *l = &links->host[host];
    const uint64_t *back = l->visit.report.answer.value; /* as of REQUEST_MEASURE */
    struct tcp_probe_result forth;
    struct cw_err err;

    if (!l->reached || l->gone)
        return;
    if (tcp_probe_ask(address_of(l), l->port, links->token, true, &forth, &err) < 0 ||
        ask_back(links, l, REQUEST_MEASURE, &err) < 0)
        findings_add(&l->findings, DOCTOR_WARNING,
                     "its connection with this machine was not measured: %s; try again", err.text);
    else
        findings_add(&l->findings, DOCTOR_OK,
                     "TCP: round trip %.3f ms, %.0f MB/s there, %.0f MB/s back",
                     (double)forth.round_ns / 1e6, megabytes_a_second(forth.bytes, forth.time_ns),
                     megabytes_a_second(back[1], back[2]));
}
