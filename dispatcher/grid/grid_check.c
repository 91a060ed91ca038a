#include "dispatcher/grid/grid_check.h"
#include "dispatcher/grid/routes.h"

static int check_hosts(const struct grid *grid, struct cw_err *err)
{
    uint32_t hosts = 0, slots = 0;

    for (uint32_t i = 0; i < grid->sites; i++) {
        hosts += grid->site[i].hosts;
        for (uint32_t j = 0; j < grid->site[i].hosts; j++)
            slots += grid->site[i].host[j].slots;
    }
    if (hosts > HOSTS_MAX)
        return cw_err_set(err, CW_EINVAL, "%u hosts at all sites; expected at most %d", hosts,
                          HOSTS_MAX);
    if (slots == 0)
        return cw_err_set(err, CW_EINVAL,
                          "no host has a slot for a rank: all 'slots' are 0; expected one host "
                          "with slots = 1, or more");
    return CW_OK;
}

int grid_check(const struct grid *grid, struct cw_err *err)
{
    if (check_hosts(grid, err) < 0)
        return err->code;
    for (uint32_t a = 0; a < grid->sites; a++)
        for (uint32_t b = a + 1; b < grid->sites; b++)
            if (!routes_exist(grid, a, b) && !routes_exist(grid, b, a))
                return cw_err_set(
                    err, CW_EINVAL,
                    "the sites %.63s (line %u) and %.63s (line %u) cannot reach each other: no "
                    "way over at most %u gateways leads from one to the other, in either "
                    "direction; let one of them reach a gateway that leads there ('reaches'), or "
                    "publish one where the other can log in ('published')",
                    grid->site[a].name, grid->site[a].line, grid->site[b].name, grid->site[b].line,
                    SSH_HOPS_MAX);
    return CW_OK;
}
