#include "dispatcher/doctor/grid_ways.h"

#include <string.h>

#define NS_IN_US 1000u

static uint32_t row_of(uint32_t from)
{
    return from == GRID_OUTSIDE ? GRID_SITES_MAX : from;
}

struct grid_way *grid_way_of(struct grid_ways *ways, uint32_t from, uint32_t to)
{
    return &ways->from_to[row_of(from)][to];
}

const char *grid_way_text(const struct grid_way *way, char *text, size_t size)
{
    const struct tcp_probe_result *seen = &way->seen;

    if (seen->round_ns == 0)
        snprintf(text, size, "not measured");
    else
        snprintf(text, size, "round trip %.1f ms, %.1f MB/s", (double)seen->round_ns / 1e6,
                 seen->time_ns ? (double)seen->bytes / (double)seen->time_ns * 1e3 : 0);
    return text;
}

void grid_ways_rtt(const struct grid_ways *ways, const struct grid *grid, struct routes_rtt *rtt)
{
    for (uint32_t from = 0; from <= GRID_SITES_MAX; from++)
        for (uint32_t to = 0; to < grid->sites; to++) {
            const struct grid_way *way = &ways->from_to[from][to];
            uint64_t us = way->seen.round_ns / NS_IN_US;

            if (way->state == GRID_WAY_OPEN && way->is_leg && way->seen.round_ns)
                rtt->us[from][to] = us == 0 ? 1 : us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
        }
}

/* --- the picture --- */

static void draw_way(const struct grid *grid, const struct grid_way *way, uint32_t to_site,
                     FILE *to)
{
    static const char *const arrows[] = {[GRID_WAY_UNKNOWN] = "-?->",
                                         [GRID_WAY_NONE] = "",
                                         [GRID_WAY_OPEN] = "---->",
                                         [GRID_WAY_BROKEN] = "-X->"};
    char text[64];

    if (way->state == GRID_WAY_NONE)
        return;
    fprintf(to, "  %-5s %-12s ", arrows[way->state], grid->site[to_site].name);
    if (way->state == GRID_WAY_OPEN)
        fputs(grid_way_text(way, text, sizeof(text)), to);
    else
        fputs(way->state == GRID_WAY_BROKEN ? "does not get there" : "not looked at", to);
    if (way->over != to_site)
        fprintf(to, ", over %s", grid->site[way->over].name);
    fputc('\n', to);
}

static void draw_ways(struct grid_ways *ways, const struct grid *grid, uint32_t from, FILE *to)
{
    for (uint32_t i = 0; i < grid->sites; i++)
        if (i != from)
            draw_way(grid, grid_way_of(ways, from, i), i, to);
}

static void draw_gateway(const struct grid *grid, const struct grid_site *site, FILE *to)
{
    if (site->gateway.host[0])
        fprintf(to, "gateway %s%s%s port %u", site->gateway.user, site->gateway.user[0] ? "@" : "",
                site->gateway.host, site->gateway.port);
    else
        fprintf(to, "published at %s, port %u", grid->site[site->published_at].name,
                site->published_port);
}

static void draw_hosts(const struct grid_site *site, FILE *to)
{
    for (uint32_t i = 0; i < site->hosts; i++) {
        fprintf(to, "  %-18s %u slots", site->host[i].name, site->host[i].slots);
        if (site->relay.host == i)
            fprintf(to, ", relay at port %u", site->relay.port);
        if (site->ckptsrv.host == i)
            fprintf(to, ", checkpoint server at port %u", site->ckptsrv.port);
        fputc('\n', to);
    }
}

void grid_ways_draw(struct grid_ways *ways, const struct grid *grid, uint32_t here, FILE *to)
{
    fprintf(to, "grid %s\n", grid->name);
    if (here == GRID_OUTSIDE) {
        fputs("this machine, at none of its sites\n", to);
        draw_ways(ways, grid, GRID_OUTSIDE, to);
    }
    for (uint32_t i = 0; i < grid->sites; i++) {
        fprintf(to, "%s%s: ", grid->site[i].name, i == here ? ", where this machine is" : "");
        draw_gateway(grid, &grid->site[i], to);
        fputc('\n', to);
        draw_hosts(&grid->site[i], to);
        draw_ways(ways, grid, i, to);
    }
}
