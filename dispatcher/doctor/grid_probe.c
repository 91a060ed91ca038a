#include "dispatcher/doctor/grid_probe.h"
#include "common/together.h"
#include "dispatcher/doctor/causes.h"

#include <stdio.h>
#include <string.h>

static struct host_check *relay_host(const struct grid_probe *p, uint32_t site)
{
    return &p->check[p->first[site] + p->grid->site[site].relay.host];
}

/* --- within a site --- */

void grid_probe_within(struct grid_probe *p, uint32_t number)
{
    const struct grid_site *site = &p->grid->site[p->site[number]];
    const char *name = site->host[site->relay.host].name;
    struct host_check *c = &p->check[number], *relay = relay_host(p, p->site[number]);
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    if (c == relay || !c->there || !relay->port)
        return;
    tcp_probe_address(name, relay->port, address);
    if (host_check_reach(c, address, &err) < 0)
        findings_add(&c->findings, DOCTOR_MISSING,
                     "it does not reach %s, where the relay of its site is, over TCP: %s; let no "
                     "firewall close ports between hosts of a site",
                     name, err.text);
}

/* --- between sites --- */

static int ask(const struct grid_probe *p, uint32_t from, const char *address, struct cw_err *err)
{
    return from == GRID_OUTSIDE ? tcp_probe_ask(address, p->time_ms, p->check->config->token, err)
                                : host_check_reach(relay_host(p, from), address, err);
}

/* A gateway that forwards to the relay alone: it is there, where the tunnel is, and somebody else
 * than a listener of ours. */
static bool gets_to_relay(const struct grid_probe *p, uint32_t from, const struct route *way,
                          uint32_t to)
{
    const struct grid_site *site = &p->grid->site[to];
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    routes_text(way, 1, site->host[site->relay.host].name, site->relay.port, address);
    return ask(p, from, address, &err) < 0 && strstr(err.text, TCP_PROBE_OTHER);
}

static bool can_ask(const struct grid_probe *p, uint32_t from)
{
    return from == GRID_OUTSIDE || (relay_host(p, from)->there && !relay_host(p, from)->gone);
}

static void look_at_way(const struct grid_probe *p, uint32_t from, uint32_t to)
{
    const struct grid_site *site = &p->grid->site[to];
    struct grid_way *way = grid_way_of(p->ways, from, to);
    struct route route[ROUTES_MAX];
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    if (routes_find(p->grid, from, to, route) == 0) {
        way->state = GRID_WAY_NONE;
        return;
    }
    way->over = route->site[route->site[0] == from && route->hops > 1 ? 1 : 0];
    if (!can_ask(p, from) || !relay_host(p, to)->port)
        return;
    routes_text(route, 1, site->host[site->relay.host].name, relay_host(p, to)->port, address);
    way->state = GRID_WAY_OPEN;
    if (ask(p, from, address, &err) == CW_OK)
        return;
    way->relay_alone = strstr(err.text, "prohibited") && gets_to_relay(p, from, route, to);
    if (way->relay_alone)
        return;
    way->state = GRID_WAY_BROKEN;
    strcpy(way->why, err.text);
}

struct round {
    const struct grid_probe *probe;
    uint32_t number;
};

/* The one behind all sites is this machine. */
static void take_part(void *ctx, uint32_t from)
{
    const struct round *r = ctx;
    uint32_t sites = r->probe->grid->sites;

    if (from == sites)
        look_at_way(r->probe, GRID_OUTSIDE, r->number);
    else if (r->number > 0)
        look_at_way(r->probe, from, (from + r->number) % sites);
}

/* --- what was found --- */

/* Where the other direction is open, relays that are there can use that one. */
static void tell_broken(const struct grid_probe *p, uint32_t from, uint32_t to,
                        struct findings *findings)
{
    const struct grid_way *way = grid_way_of(p->ways, from, to);
    const char *advice = causes_advice(way->why);
    bool is_needed = from != GRID_OUTSIDE && grid_way_of(p->ways, to, from)->state != GRID_WAY_OPEN;

    findings_add(findings, is_needed ? DOCTOR_MISSING : DOCTOR_WARNING,
                 "does not get to %s: %s%s%s; or take %s out of its 'reaches'",
                 p->grid->site[to].name, way->why, advice ? "; " : "", advice ? advice : "",
                 p->grid->site[way->over].name);
}

static void tell_way(const struct grid_probe *p, uint32_t from, uint32_t to,
                     struct findings *findings)
{
    const struct grid_way *way = grid_way_of(p->ways, from, to);
    const char *name = p->grid->site[to].name;

    if (way->state == GRID_WAY_BROKEN)
        tell_broken(p, from, to, findings);
    else if (way->state == GRID_WAY_OPEN)
        findings_add(findings, DOCTOR_OK,
                     way->relay_alone ? "gets to the relay of %s, and no other port there"
                                      : "gets to %s",
                     name);
}

void grid_probe_between(struct grid_probe *p)
{
    uint32_t sites = p->grid->sites, parties = sites + (p->here == GRID_OUTSIDE);
    struct round r = {.probe = p};

    for (r.number = 0; r.number < sites; r.number++)
        cw_together(parties, parties, take_part, &r);
    for (uint32_t to = 0; to < sites; to++) {
        if (p->here == GRID_OUTSIDE)
            tell_way(p, GRID_OUTSIDE, to, p->of_machine);
        for (uint32_t from = 0; from < sites; from++)
            if (from != to)
                tell_way(p, from, to, &p->of_site[from]);
    }
}
