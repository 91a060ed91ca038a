#include "dispatcher/hosts/ssh_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_login(FILE *to, const struct grid_site *site, const char *user)
{
    if (user[0])
        fprintf(to, "  User %s\n", user);
    if (site->key[0])
        fprintf(to, "  IdentityFile \"%s\"\n", site->key);
}

/* The first `hops` gateways of the way, each by its name here. */
static void put_jumps(FILE *to, const struct grid *grid, const struct route *way, uint32_t hops)
{
    if (hops > 0)
        fputs("  ProxyJump ", to);
    for (uint32_t i = 0; i < hops; i++)
        fprintf(to, "%s" SSH_CONFIG_GATEWAY "%s", i ? "," : "", grid->site[way->site[i]].name,
                i + 1 == hops ? "\n" : "");
}

static void put_gateway(FILE *to, const struct grid *grid, uint32_t number, const struct route *way)
{
    const struct grid_site *site = &grid->site[number];
    const struct ssh_hop *hop = &way->hop[way->hops - 1];

    fprintf(to, "Host " SSH_CONFIG_GATEWAY "\n  HostName %s\n  Port %u\n", site->name, hop->host,
            hop->port);
    put_login(to, site, hop->user);
    put_jumps(to, grid, way, way->hops - 1);
}

static void put_site(FILE *to, const struct grid *grid, uint32_t number, const struct route *way)
{
    const struct grid_site *site = &grid->site[number];

    if (way->hops > 0)
        put_gateway(to, grid, number, way);
    for (uint32_t i = 0; i < site->hosts; i++) {
        fprintf(to, "Host " SSH_CONFIG_HOST "\n  HostName %s\n", site->host[i].name, site->name,
                site->host[i].name);
        put_login(to, site, site->user);
        put_jumps(to, grid, way, way->hops);
    }
}

char *ssh_config_make(const struct grid *grid, uint32_t here)
{
    struct route ways[ROUTES_MAX];
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    bool whole;

    if (!to)
        return NULL;
    fprintf(to, "# How the machines of grid %s are reached; made anew by causeway\n", grid->name);
    for (uint32_t i = 0; i < grid->sites; i++)
        if (routes_find(grid, here, i, ways) > 0)
            put_site(to, grid, i, &ways[0]);
    fputs("Match all\n  BatchMode yes\n  StrictHostKeyChecking yes\n"
          "  Include ~/.ssh/config\n  Include /etc/ssh/ssh_config\n",
          to);
    whole = !ferror(to);
    if (fclose(to) == 0 && whole)
        return text;
    free(text);
    return NULL;
}
