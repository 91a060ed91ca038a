#include "dispatcher/hosts/routes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOOPBACK "127.0.0.1"

struct search {
    const struct grid *grid;
    uint32_t to;
    bool passed[GRID_SITES_MAX];
    struct route way; /* so far */
    struct route *best;
    uint32_t found, enough; /* ways */
};

/* Fewest gateways; of the same, that which was found first. */
static void keep(struct search *s)
{
    uint32_t at = s->found;

    while (at > 0 && s->way.hops < s->best[at - 1].hops)
        at--;
    if (at == ROUTES_MAX)
        return;
    s->found += s->found < ROUTES_MAX;
    memmove(&s->best[at + 1], &s->best[at], (s->found - at - 1) * sizeof(*s->best));
    s->best[at] = s->way;
}

static void add_hop(struct route *way, const struct ssh_hop *hop, uint32_t site)
{
    way->hop[way->hops] = *hop;
    way->site[way->hops++] = site;
}

static bool reaches(const struct grid *grid, uint32_t from, uint32_t to)
{
    return from == GRID_OUTSIDE ? grid->reaches[to] : grid->site[from].reaches[to];
}

/* One leg: from a machine of `from` to one of `to`, with what was passed until there. False: there
 * is none, or there would be too many gateways. */
static bool go(struct search *s, uint32_t from, uint32_t to)
{
    const struct grid_site *next = &s->grid->site[to];
    bool is_published = !next->gateway.host[0];
    /* its port is on the loopback device of a gateway, at which one may not be yet */
    uint32_t needed = is_published && s->way.hops == 0 ? 2 : 1;
    struct ssh_hop door = {.port = next->published_port, .host = LOOPBACK};

    if (s->way.hops + needed > SSH_HOPS_MAX)
        return false;
    if (is_published ? next->published_at != from || from == GRID_OUTSIDE
                     : !reaches(s->grid, from, to))
        return false;
    if (!is_published) {
        add_hop(&s->way, &next->gateway, to);
        return true;
    }
    if (needed == 2)
        add_hop(&s->way, &s->grid->site[from].gateway, from);
    strcpy(door.user, next->user);
    add_hop(&s->way, &door, to);
    return true;
}

static void search(struct search *s, uint32_t from)
{
    struct route before = s->way;

    if (from == s->to) {
        keep(s);
        return;
    }
    if (from != GRID_OUTSIDE)
        s->passed[from] = true;
    for (uint32_t next = 0; next < s->grid->sites && s->found < s->enough; next++) {
        if (!s->passed[next] && go(s, from, next))
            search(s, next);
        s->way = before;
    }
    if (from != GRID_OUTSIDE)
        s->passed[from] = false;
}

uint32_t routes_find(const struct grid *grid, uint32_t from, uint32_t to,
                     struct route route[ROUTES_MAX])
{
    struct search s = {.grid = grid, .to = to, .best = route, .enough = UINT32_MAX};

    search(&s, from);
    return s.found;
}

bool routes_exist(const struct grid *grid, uint32_t from, uint32_t to)
{
    struct route route[ROUTES_MAX];
    struct search s = {.grid = grid, .to = to, .best = route, .enough = 1};

    search(&s, from);
    return s.found > 0;
}

struct text {
    char *at;
    size_t used;
    bool full;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...)
{
    size_t room = CW_ADDRESS_MAX - t->used;
    va_list ap;
    int size;

    va_start(ap, fmt);
    size = vsnprintf(t->at + t->used, room, fmt, ap);
    va_end(ap);
    if (size < 0 || (size_t)size >= room)
        t->full = true;
    else
        t->used += (size_t)size;
}

static void put_place(struct text *t, const char *host, uint16_t port)
{
    put(t, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

static void put_way(struct text *t, const struct route *way)
{
    for (uint32_t i = 0; i < way->hops; i++) {
        const struct ssh_hop *hop = &way->hop[i];

        put(t, "%s%s%s", i ? "," : "", hop->user, hop->user[0] ? "@" : "");
        put_place(t, hop->host, hop->port);
    }
}

bool routes_text(const struct route *route, uint32_t ways, const char *host, uint16_t port,
                 char text[CW_ADDRESS_MAX])
{
    struct text t = {.at = text};

    put(&t, "%s", route[0].hops ? SSH_SCHEME : "tcp:");
    for (uint32_t i = 0; i < ways; i++) {
        put(&t, "%s", i ? "+" : "");
        put_way(&t, &route[i]);
    }
    put(&t, "%s", route[0].hops ? "/" : "");
    put_place(&t, host, port);
    if (t.full)
        text[0] = '\0';
    return !t.full;
}

uint32_t routes_address(const struct grid *grid, uint32_t from, uint32_t to, const char *host,
                        uint16_t port, char text[CW_ADDRESS_MAX])
{
    struct route route[ROUTES_MAX];
    uint32_t ways = routes_find(grid, from, to, route);

    text[0] = '\0';
    while (ways > 0 && !routes_text(route, ways, host, port, text))
        ways--;
    return ways;
}
