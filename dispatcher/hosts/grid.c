#include "dispatcher/hosts/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void grid_free(struct grid *grid)
{
    for (uint32_t i = 0; i < grid->sites; i++)
        free(grid->site[i].host);
    free(grid->site);
    *grid = (struct grid){0};
}

uint32_t grid_find(const struct grid *grid, const char *name)
{
    for (uint32_t i = 0; i < grid->sites; i++)
        if (strcmp(grid->site[i].name, name) == 0)
            return i;
    return GRID_OUTSIDE;
}

static bool has_machine(const struct grid_site *site, const char *name)
{
    for (uint32_t i = 0; i < site->hosts; i++)
        if (strcasecmp(site->host[i].name, name) == 0)
            return true;
    return strcasecmp(site->gateway.host, name) == 0;
}

static uint32_t site_of_machine(const struct grid *grid, const char *name)
{
    uint32_t found = GRID_OUTSIDE;

    for (uint32_t i = 0; i < grid->sites; i++) {
        if (!has_machine(&grid->site[i], name))
            continue;
        if (found != GRID_OUTSIDE)
            return GRID_OUTSIDE;
        found = i;
    }
    return found;
}

int grid_here(const struct grid *grid, const char *said, const char *machine, uint32_t *site,
              struct cw_err *err)
{
    *site = said ? grid_find(grid, said) : site_of_machine(grid, machine);
    if (!said || *site != GRID_OUTSIDE || strcmp(said, "-") == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL,
                      "--here %s: grid %s has no such site ('-': this machine is at none)", said,
                      grid->name);
}

void grid_tcp_address(const struct grid *grid, uint32_t site, uint32_t host, uint32_t port,
                      char text[CW_ADDRESS_MAX])
{
    const char *name = grid->site[site].host[host].name;

    snprintf(text, CW_ADDRESS_MAX, strchr(name, ':') ? "tcp:[%s]:%u" : "tcp:%s:%u", name, port);
}

uint32_t grid_door_of_relay(const struct grid *grid, uint32_t at, uint32_t to)
{
    return grid->site[at].relay.port + 1u + to;
}

uint32_t grid_door_of_ckptsrv(const struct grid *grid, uint32_t at, uint32_t to)
{
    return grid_door_of_relay(grid, at, to) + GRID_SITES_MAX;
}

void grid_keys(const struct grid *grid, char text[GRID_KEYS_BYTES])
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < grid->sites; i++) {
        const char *key = grid->site[i].key;
        bool again = false;

        for (uint32_t j = 0; j < i; j++)
            again |= strcmp(grid->site[j].key, key) == 0;
        if (key[0] && !again)
            used +=
                (size_t)snprintf(text + used, GRID_KEYS_BYTES - used, "%s%s", used ? ":" : "", key);
    }
}
