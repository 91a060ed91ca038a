#include "dispatcher/doctor/grid_ways.h"

#include <string.h>

static uint32_t row_of(uint32_t from)
{
    return from == GRID_OUTSIDE ? GRID_SITES_MAX : from;
}

struct grid_way *grid_way_of(struct grid_ways *ways, uint32_t from, uint32_t to)
{
    return &ways->from_to[row_of(from)][to];
}

/* --- the picture --- */

static void draw_way(const struct grid *grid, const struct grid_way *way, uint32_t to_site,
                     FILE *to)
{
    static const char *const arrows[] = {[GRID_WAY_UNKNOWN] = "-?->",
                                         [GRID_WAY_NONE] = "",
                                         [GRID_WAY_OPEN] = "---->",
                                         [GRID_WAY_BROKEN] = "-X->"};
    static const char *const words[] = {[GRID_WAY_UNKNOWN] = ": not looked at",
                                        [GRID_WAY_OPEN] = "",
                                        [GRID_WAY_BROKEN] = ": does not get there"};

    if (way->state == GRID_WAY_NONE)
        return;
    fprintf(to, "  %-5s %s", arrows[way->state], grid->site[to_site].name);
    if (way->over != to_site)
        fprintf(to, ", over %s", grid->site[way->over].name);
    fputs(way->relay_alone ? ": to its relay alone" : words[way->state], to);
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
