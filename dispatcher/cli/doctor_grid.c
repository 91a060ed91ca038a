#include "common/keyfile.h"
#include "common/together.h"
#include "dispatcher/cli/doctor.h"
#include "dispatcher/doctor/causes.h"
#include "dispatcher/doctor/compare.h"
#include "dispatcher/doctor/gate_check.h"
#include "dispatcher/doctor/grid_ways.h"
#include "dispatcher/hosts/grid_state.h"
#include "dispatcher/hosts/ssh_config.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_IN_MS 1000000ull

struct grid_host_name {
    char text[SSH_CONFIG_NAME_MAX + 1];
};

struct examination {
    struct grid_place place;
    uint64_t time_ns;
    uint8_t key[CW_KEY_SIZE];
    char keys[GRID_KEYS_BYTES]; /* for tunnels */
    struct gate_check gates;
    struct host_checks hosts; /* those of a site one after the other, with each of the next ones */
    struct grid_host_name *name;
    uint32_t *site;
    uint32_t first[GRID_SITES_MAX]; /* host of each site */
    bool open[GRID_SITES_MAX];      /* its gateways let us in */
    struct findings of_site[GRID_SITES_MAX];
    struct grid_ways ways;
};

/* --- its begin --- */

/* The grid's key; it may be that none was made yet. */
static int read_key(struct examination *e, struct cw_err *err)
{
    char path[PATH_MAX];

    if (grid_state_path(&e->place.grid, GRID_STATE_KEY, path, err) < 0)
        return err->code;
    if (cw_key_load(path, e->key, err) == CW_OK)
        e->gates.key = e->key;
    return e->gates.key || err->code == CW_ENOTFOUND ? CW_OK : err->code;
}

static void name_hosts(struct examination *e, uint32_t site)
{
    const struct grid_site *s = &e->place.grid.site[site];

    for (uint32_t i = 0; i < s->hosts; i++) {
        uint32_t at = e->first[site] + i;

        snprintf(e->name[at].text, sizeof(e->name[at].text), SSH_CONFIG_HOST, s->host[i].name,
                 s->name);
        e->hosts.check[at].name = e->name[at].text;
        if (s->causeway[0])
            e->hosts.check[at].causeway = s->causeway;
        e->site[at] = site;
    }
}

static int list_hosts(struct examination *e, struct cw_err *err)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < e->place.grid.sites; i++) {
        e->first[i] = count;
        count += e->place.grid.site[i].hosts;
    }
    if (host_checks_init(&e->hosts, count, err) < 0)
        return err->code;
    e->name = calloc(count, sizeof(*e->name));
    e->site = calloc(count, sizeof(*e->site));
    if (!e->name || !e->site)
        return cw_err_set(err, CW_ENOMEM, "no memory for %u hosts", count);
    for (uint32_t i = 0; i < e->place.grid.sites; i++)
        name_hosts(e, i);
    return CW_OK;
}

/* The keys for logins are for our tunnels, and those of hosts. */
static int begin(struct examination *e, const char *file, const char *here, struct cw_err *err)
{
    if (grid_place_open(&e->place, file, here, err) < 0 || read_key(e, err) < 0 ||
        list_hosts(e, err) < 0)
        return err->code;
    grid_keys(&e->place.grid, e->keys);
    if (e->keys[0])
        setenv(SSH_KEYS_VARIABLE, e->hosts.config.ssh_keys = e->keys, 1);
    e->hosts.config.launcher = "ssh";
    e->hosts.config.launcher_args = e->place.ssh_args;
    e->hosts.config.time_ns = e->time_ns;
    e->gates.place = &e->place;
    e->gates.file = file;
    e->gates.time_ms = (uint32_t)((e->time_ns ? e->time_ns : DOCTOR_GRID_OPEN_NS) / NS_IN_MS);
    return CW_OK;
}

/* --- sites and hosts --- */

static void check_gate(void *ctx, uint32_t site)
{
    struct examination *e = ctx;

    e->open[site] = gate_check(&e->gates, site, &e->of_site[site]);
}

static void check_host(void *ctx, uint32_t host)
{
    struct examination *e = ctx;

    if (e->open[e->site[host]])
        host_check_begin(&e->hosts.check[host]);
}

static struct host_check *relay_host(const struct examination *e, uint32_t site)
{
    return &e->hosts.check[e->first[site] + e->place.grid.site[site].relay.host];
}

/* --- within a site --- */

static void reach_relay(void *ctx, uint32_t number)
{
    const struct examination *e = ctx;
    const struct grid_site *site = &e->place.grid.site[e->site[number]];
    const char *name = site->host[site->relay.host].name;
    struct host_check *c = &e->hosts.check[number], *relay = relay_host(e, e->site[number]);
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

static int ask(const struct examination *e, uint32_t from, const char *address, struct cw_err *err)
{
    return from == GRID_OUTSIDE
               ? tcp_probe_ask(address, e->gates.time_ms, e->hosts.config.token, err)
               : host_check_reach(relay_host(e, from), address, err);
}

/* A gateway that forwards to the relay alone: it is there, where the tunnel is, and somebody else
 * than a listener of ours. */
static bool gets_to_relay(const struct examination *e, uint32_t from, const struct route *way,
                          uint32_t to)
{
    const struct grid_site *site = &e->place.grid.site[to];
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    routes_text(way, 1, site->host[site->relay.host].name, site->relay.port, address);
    return ask(e, from, address, &err) < 0 && strstr(err.text, TCP_PROBE_OTHER);
}

static bool can_ask(const struct examination *e, uint32_t from)
{
    return from == GRID_OUTSIDE || (relay_host(e, from)->there && !relay_host(e, from)->gone);
}

static void look_at_way(struct examination *e, uint32_t from, uint32_t to)
{
    const struct grid_site *site = &e->place.grid.site[to];
    struct grid_way *way = grid_way_of(&e->ways, from, to);
    struct route route[ROUTES_MAX];
    char address[CW_ADDRESS_MAX];
    struct cw_err err;

    if (routes_find(&e->place.grid, from, to, route) == 0) {
        way->state = GRID_WAY_NONE;
        return;
    }
    way->over = route->site[route->site[0] == from && route->hops > 1 ? 1 : 0];
    if (!can_ask(e, from) || !relay_host(e, to)->port)
        return;
    routes_text(route, 1, site->host[site->relay.host].name, relay_host(e, to)->port, address);
    way->state = GRID_WAY_OPEN;
    if (ask(e, from, address, &err) == CW_OK)
        return;
    way->relay_alone = strstr(err.text, "prohibited") && gets_to_relay(e, from, route, to);
    if (way->relay_alone)
        return;
    way->state = GRID_WAY_BROKEN;
    strcpy(way->why, err.text);
}

struct round {
    struct examination *of;
    uint32_t number;
};

/* The one behind all sites is this machine. */
static void take_part(void *ctx, uint32_t from)
{
    const struct round *r = ctx;
    uint32_t sites = r->of->place.grid.sites;

    if (from == sites)
        look_at_way(r->of, GRID_OUTSIDE, r->number);
    else if (r->number > 0)
        look_at_way(r->of, from, (from + r->number) % sites);
}

/* Where the other direction is open, relays that are there can use that one. */
static void tell_way(struct examination *e, uint32_t from, uint32_t to, struct findings *findings)
{
    const struct grid_way *way = grid_way_of(&e->ways, from, to);
    const char *advice = causes_advice(way->why), *name = e->place.grid.site[to].name;
    bool is_needed =
        from != GRID_OUTSIDE && grid_way_of(&e->ways, to, from)->state != GRID_WAY_OPEN;

    if (way->state == GRID_WAY_BROKEN)
        findings_add(findings, is_needed ? DOCTOR_MISSING : DOCTOR_WARNING,
                     "does not get to %s: %s%s%s; or take %s out of its 'reaches'", name, way->why,
                     advice ? "; " : "", advice ? advice : "", e->place.grid.site[way->over].name);
    else if (way->state == GRID_WAY_OPEN)
        findings_add(findings, DOCTOR_OK,
                     way->relay_alone ? "gets to the relay of %s, and no other port there"
                                      : "gets to %s",
                     name);
}

/* All of them, in rounds, in each of which a site sends to one other and receives from one. */
static void probe_between(struct examination *e)
{
    uint32_t sites = e->place.grid.sites, parties = sites + (e->place.here == GRID_OUTSIDE);
    struct round r = {.of = e};

    for (r.number = 0; r.number < sites; r.number++)
        cw_together(parties, parties, take_part, &r);
    for (uint32_t to = 0; to < sites; to++) {
        if (e->place.here == GRID_OUTSIDE)
            tell_way(e, GRID_OUTSIDE, to, &e->hosts.findings);
        for (uint32_t from = 0; from < sites; from++)
            if (from != to)
                tell_way(e, from, to, &e->of_site[from]);
    }
}

/* --- all of it --- */

static void check_all(struct examination *e)
{
    cw_together(e->place.grid.sites, e->place.grid.sites, check_gate, e);
    cw_together(e->hosts.count, DOCTOR_GRID_HOSTS_MAX, check_host, e);
    cw_together(e->hosts.count, DOCTOR_GRID_HOSTS_MAX, reach_relay, e);
    probe_between(e);
    compare_hosts(e->hosts.check, e->hosts.count, &e->hosts.findings);
}

/* Returns whether something is missing. */
static bool print_all(struct examination *e)
{
    bool missing = false;

    for (uint32_t i = 0; i < e->place.grid.sites; i++) {
        missing |= doctor_print(e->place.grid.site[i].name, &e->of_site[i]);
        for (uint32_t j = e->first[i]; j < e->hosts.count && e->site[j] == i; j++)
            missing |= doctor_print(e->hosts.check[j].name, &e->hosts.check[j].findings);
    }
    missing |= doctor_print("this machine", &e->hosts.findings);
    putchar('\n');
    grid_ways_draw(&e->ways, &e->place.grid, e->place.here, stdout);
    return missing;
}

static void release(struct examination *e)
{
    host_checks_end(&e->hosts, DOCTOR_GRID_HOSTS_MAX);
    for (uint32_t i = 0; i < e->place.grid.sites; i++)
        findings_free(&e->of_site[i]);
    sodium_memzero(e->key, sizeof(e->key));
    grid_free(&e->place.grid);
    free(e->name);
    free(e->site);
    free(e);
}

int doctor_grid(const char *file, const char *here, uint64_t time_ns)
{
    struct examination *e = calloc(1, sizeof(*e));
    struct cw_err err;
    int code = 1;

    if (!e) {
        fputs("causeway doctor: no memory\n", stderr);
        return 1;
    }
    e->time_ns = time_ns;
    if (begin(e, file, here, &err) < 0) {
        fprintf(stderr, "causeway doctor: %s\n", err.text);
        code = err.code == CW_EINVAL ? 2 : 1;
    } else {
        check_all(e);
        code = print_all(e);
    }
    release(e);
    return code;
}
