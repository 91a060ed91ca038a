#include "dispatcher/doctor/gate_check.h"
#include "common/hello.h"
#include "common/transport.h"
#include "dispatcher/doctor/causes.h"
#include "dispatcher/hosts/routes.h"
#include "dispatcher/hosts/ssh_config.h"
#include "tunnels/ssh_address.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RELAY_ANSWER_MS 5000 /* between two answers of a relay */

/* --- its relay --- */

static int end_job(struct cw_wire *wire, struct cw_session *session, struct cw_err *err)
{
    uint8_t frame[CW_FRAME_HEADER];

    cw_frame_begin(session, frame, CW_FRAME_JOB_END, 0);
    return cw_write_all(wire, frame, sizeof(frame), RELAY_ANSWER_MS, err);
}

static int open_job(int fd, const uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    struct cw_hello hello = {.role = CW_ROLE_DISPATCHER, .rank = 1};
    struct cw_wire wire = {.fd = fd};
    struct cw_session session = {0};
    struct cw_welcome welcome;
    uint8_t job_key[CW_KEY_SIZE];

    randombytes_buf(hello.job, sizeof(hello.job));
    cw_cred_job_key(job_key, key, hello.job);
    if (cw_hello_open(&wire, &session, &hello, job_key, RELAY_ANSWER_MS, &welcome, err) < 0)
        return err->code;
    return end_job(&wire, &session, err);
}

static bool is_off(const char *address, const char *said)
{
    struct ssh_address ssh;
    struct cw_err err;

    if (!ssh_address_inner(address))
        return strstr(said, "Connection refused");
    return ssh_address_parse(&ssh, address, &err) == CW_OK &&
           causes_nobody_listens(said, ssh.host, ssh.port);
}

enum relay_found relay_check(const char *address, uint32_t time_ms, const uint8_t *key,
                             struct cw_err *err)
{
    struct cw_address at;
    enum relay_found found = RELAY_LISTENS;
    int fd;

    if (cw_address_parse(&at, address, err) < 0)
        return RELAY_NO_WAY;
    fd = cw_connect_within(&at, time_ms, err);
    if (fd < 0)
        return is_off(address, err->text) ? RELAY_OFF : RELAY_NO_WAY;
    if (key)
        found = open_job(fd, key, err) == CW_OK ? RELAY_TAKES : RELAY_OTHER;
    close(fd);
    return found;
}

/* --- its gateways --- */

struct gate {
    const struct gate_check *check;
    const struct grid_site *site;
    const char *host; /* of its relay */
    struct route way;
    struct findings *findings;
};

static bool is_not_published(const struct gate *g, const struct cw_err *err)
{
    const struct ssh_hop *last = &g->way.hop[g->way.hops - 1];

    return g->way.hops > 1 && !g->site->gateway.host[0] &&
           causes_nobody_listens(err->text, last->host, last->port);
}

static void tell_no_way(const struct gate *g, const struct cw_err *err)
{
    const char *advice = causes_advice(err->text);

    if (is_not_published(g, err))
        findings_add(
            g->findings, DOCTOR_MISSING,
            "it is not published at port %u of %s: 'causeway up -f %s --site %s' on one of "
            "its hosts opens that from inside; its hosts are looked at then",
            g->site->published_port, g->check->place->grid.site[g->site->published_at].name,
            g->check->file, g->site->name);
    else if (g->way.hops == 0)
        findings_add(g->findings, DOCTOR_MISSING,
                     "its relay cannot be reached from here, at the same site: %s%s%s", err->text,
                     advice ? "; " : "", advice ? advice : "");
    else
        findings_add(g->findings, DOCTOR_MISSING,
                     "%s%s%s; try by hand: ssh %s -o BatchMode=no -o StrictHostKeyChecking=ask "
                     "gateway.%s true; its hosts are looked at when that works",
                     err->text, advice ? "; " : "", advice ? advice : "", g->check->place->ssh_args,
                     g->site->name);
}

static void tell_gateways(const struct gate *g)
{
    const struct ssh_hop *last = &g->way.hop[g->way.hops - 1];

    if (g->way.hops > 0)
        findings_add(g->findings, DOCTOR_OK,
                     "%s port %u (%u gateway%s from here) is known, lets us in, and forwards",
                     last->host, last->port, g->way.hops, g->way.hops > 1 ? "s" : "");
}

static void tell_relay(const struct gate *g, enum relay_found found, const struct cw_err *err)
{
    unsigned port = g->site->relay.port;

    switch (found) {
    case RELAY_OFF:
        findings_add(g->findings, DOCTOR_WARNING,
                     "its relay does not run: nobody listens at port %u of %s; 'causeway up -f "
                     "%s' starts it",
                     port, g->host, g->check->file);
        break;
    case RELAY_OTHER:
        findings_add(g->findings, DOCTOR_MISSING,
                     "at port %u of %s is no relay that takes the key of this grid: %s; end what "
                     "listens there, then 'causeway up -f %s' starts the relay",
                     port, g->host, err->text, g->check->file);
        break;
    case RELAY_LISTENS:
        findings_add(g->findings, DOCTOR_WARNING,
                     "somebody listens at port %u of %s, but this machine has no key of the grid; "
                     "'causeway up -f %s' makes one",
                     port, g->host, g->check->file);
        break;
    default:
        findings_add(g->findings, DOCTOR_OK, "its relay at port %u of %s takes the grid's key",
                     port, g->host);
    }
}

bool gate_check(const struct gate_check *check, uint32_t number, struct findings *findings)
{
    const struct grid_site *site = &check->place->grid.site[number];
    struct gate g = {.check = check,
                     .site = site,
                     .host = site->host[site->relay.host].name,
                     .findings = findings};
    struct route ways[ROUTES_MAX];
    char address[CW_ADDRESS_MAX];
    enum relay_found found;
    struct cw_err err;

    if (routes_find(&check->place->grid, check->place->here, number, ways) == 0) {
        findings_add(findings, DOCTOR_MISSING,
                     "no way leads there from this machine: see 'reaches' in %s, or say by --here "
                     "at which site this machine is",
                     check->file);
        return false;
    }
    g.way = ways[0];
    routes_text(&g.way, 1, g.host, site->relay.port, address);
    found = relay_check(address, check->time_ms, check->key, &err);
    if (found == RELAY_NO_WAY) {
        tell_no_way(&g, &err);
        return g.way.hops == 0;
    }
    tell_gateways(&g);
    tell_relay(&g, found, &err);
    return true;
}
