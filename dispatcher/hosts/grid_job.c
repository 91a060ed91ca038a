#include "dispatcher/hosts/grid_job.h"
#include "dispatcher/hosts/grid_file.h"
#include "dispatcher/hosts/grid_state.h"
#include "dispatcher/hosts/ssh_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void grid_job_free(struct grid_job *job)
{
    grid_free(&job->grid);
    free(job->relay);
    free(job->link);
    free(job->server);
    free(job->rank_relay);
    free(job->rank_server);
    *job = (struct grid_job){0};
}

/* --- what is kept of the grid --- */

static int take_key(struct grid_job *job, struct cw_err *err)
{
    if (grid_state_path(&job->grid, GRID_STATE_KEY, job->key_file, err) < 0)
        return err->code;
    if (access(job->key_file, F_OK) == 0)
        return CW_OK;
    return cw_err_set(
        err, CW_ENOTFOUND,
        "grid %s: there is no key of it (%s); 'causeway up' makes one, and starts its "
        "relays",
        job->grid.name, job->key_file);
}

int grid_job_open(struct grid_job *job, const char *file, const char *here, struct cw_err *err)
{
    char machine[HOST_NAME_MAX_BYTES + 1] = "";

    job->logs_at = GRID_OUTSIDE;
    gethostname(machine, sizeof(machine) - 1);
    if (grid_file_read(&job->grid, file, err) < 0 ||
        grid_here(&job->grid, here, machine, &job->here, err) < 0)
        return err->code;
    return grid_state_ssh_args(&job->grid, job->here, NULL, job->ssh_args, err) < 0 ||
                   take_key(job, err) < 0
               ? err->code
               : CW_OK;
}

int grid_job_keep_logs_at(struct grid_job *job, const char *site, struct cw_err *err)
{
    const struct grid *grid = &job->grid;
    char names[CW_ERR_TEXT_MAX];
    size_t used = 0;

    job->logs_at = grid_find(grid, site);
    if (job->logs_at != GRID_OUTSIDE)
        return CW_OK;
    for (uint32_t i = 0; i < grid->sites && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                 grid->site[i].name);
    return cw_err_set(err, CW_EINVAL, "--relay-at %s: expected a site of grid %s: %s", site,
                      grid->name, names);
}

/* --- hosts --- */

static int add_host(const struct grid_job *job, uint32_t site, const struct grid_host *host,
                    struct host_list *list, struct cw_err *err)
{
    const struct grid_site *s = &job->grid.site[site];
    struct host one = {
        .slots = host->slots, .site = site, .causeway = s->causeway[0] ? s->causeway : NULL};
    char name[SSH_CONFIG_NAME_MAX + 1];

    snprintf(name, sizeof(name), SSH_CONFIG_HOST, host->name, s->name);
    if (host_name_take(&one, name, strlen(name), err) < 0)
        return err->code;
    return host_list_add(list, &one, err);
}

int grid_job_add_hosts(struct grid_job *job, struct host_list *list, struct cw_err *err)
{
    const struct grid *grid = &job->grid;

    for (uint32_t site = 0; site < grid->sites; site++)
        for (uint32_t i = 0; i < grid->site[site].hosts; i++)
            if (grid->site[site].host[i].slots > 0 &&
                add_host(job, site, &grid->site[site].host[i], list, err) < 0)
                return err->code;
    return CW_OK;
}

/* --- relays and servers --- */

static uint32_t number_of(const uint32_t *sites, uint32_t count, uint32_t site)
{
    uint32_t i = 0;

    while (i < count && sites[i] != site)
        i++;
    return i;
}

static const struct grid_service *server_of(const struct grid *grid, uint32_t site)
{
    const struct grid_service *s = &grid->site[site].ckptsrv;

    return s->host == HOSTS_NONE ? NULL : s;
}

/* The relay of all ranks is reached through a door there (grid.h). */
static int check_way(const struct grid_job *job, uint32_t from, struct cw_err *err)
{
    const struct grid *grid = &job->grid;
    struct route routes[ROUTES_MAX];

    if (from == job->logs_at || routes_find(grid, from, job->logs_at, routes))
        return CW_OK;
    return cw_err_set(err, CW_EINVAL,
                      "--relay-at %s: no way leads there from site %s of grid %s, which has ranks; "
                      "choose a site that all others reach, or correct `reaches`",
                      grid->site[job->logs_at].name, grid->site[from].name, grid->name);
}

static void choose_relay(struct grid_job *job, uint32_t rank, uint32_t site)
{
    uint32_t relay = number_of(job->relay_site, job->relays, site);

    job->rank_relay[rank] = (uint8_t)relay;
    if (relay < job->relays)
        return;
    job->relay_site[job->relays++] = site;
    if (server_of(&job->grid, site))
        job->server_site[job->servers++] = site;
}

/* That of its site, or, where there is none, the first one. */
static void choose_server(struct grid_job *job, uint32_t rank)
{
    uint32_t site = job->relay_site[job->rank_relay[rank]];
    uint32_t server = number_of(job->server_site, job->servers, site);

    job->rank_server[rank] = server < job->servers ? (uint8_t)server : 0;
}

static uint32_t address_of(const struct grid_job *job, uint32_t from, uint32_t site,
                           const struct grid_service *service, struct grid_job_address *to)
{
    return routes_address(&job->grid, from, site, job->grid.site[site].host[service->host].name,
                          service->port, to->text);
}

static int find_services(struct grid_job *job, struct cw_err *err)
{
    const struct grid *grid = &job->grid;
    uint32_t site;

    for (uint32_t i = 0; i < job->relays; i++) {
        site = job->relay_site[i];
        if (!address_of(job, job->here, site, &grid->site[site].relay, &job->relay[i]))
            return cw_err_set(err, CW_EINVAL,
                              "grid %s: no way leads from this machine to site %s; run this at "
                              "another site, or correct `reaches`",
                              grid->name, grid->site[site].name);
    }
    for (uint32_t i = 0; i < job->servers; i++) {
        site = job->server_site[i];
        address_of(job, job->here, site, server_of(grid, site), &job->server[i]);
    }
    return CW_OK;
}

static bool is_better(const struct grid_job *job, uint32_t from, uint32_t to)
{
    struct route there[ROUTES_MAX], back[ROUTES_MAX];
    uint32_t a = routes_find(&job->grid, from, to, there);
    uint32_t b = routes_find(&job->grid, to, from, back);

    return a && (!b || there[0].hops <= back[0].hops);
}

/* A link may be opened from either side: by the one that has fewer gateways to pass. */
static void find_links(struct grid_job *job)
{
    for (uint32_t low = 0; low < job->relays; low++)
        for (uint32_t high = low + 1; high < job->relays; high++) {
            bool by_low = is_better(job, job->relay_site[low], job->relay_site[high]);
            uint32_t from = by_low ? low : high, to = by_low ? high : low;
            uint32_t site = job->relay_site[to];

            address_of(job, job->relay_site[from], site, &job->grid.site[site].relay,
                       &job->link[from * job->relays + to]);
        }
}

static bool allocate(struct grid_job *job, uint32_t ranks)
{
    job->relay = calloc(job->relays, sizeof(*job->relay));
    job->link = calloc((size_t)job->relays * job->relays, sizeof(*job->link));
    job->server = calloc(job->servers + 1, sizeof(*job->server));
    job->rank_server = calloc(ranks, sizeof(*job->rank_server));
    return job->relay && job->link && job->server && job->rank_server;
}

int grid_job_place(struct grid_job *job, const struct host_list *list,
                   const struct placement *placement, struct cw_err *err)
{
    uint32_t ranks = placement->ranks;

    job->rank_relay = calloc(ranks, sizeof(*job->rank_relay));
    if (!job->rank_relay)
        return cw_err_set(err, CW_ENOMEM, "no memory for the grid");
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t site = list->host[placement->slot_host[placement->rank_slot[rank]]].site;

        if (job->logs_at != GRID_OUTSIDE && check_way(job, site, err) < 0)
            return err->code;
        choose_relay(job, rank, job->logs_at != GRID_OUTSIDE ? job->logs_at : site);
    }
    if (!allocate(job, ranks))
        return cw_err_set(err, CW_ENOMEM, "no memory for the grid");
    for (uint32_t rank = 0; rank < ranks; rank++)
        choose_server(job, rank);
    find_links(job);
    return find_services(job, err);
}

/* --- where ranks reach them --- */

static uint32_t relay_host(const struct grid *grid, uint32_t site)
{
    return grid->site[site].relay.host;
}

void grid_job_relay_at(const struct grid_job *job, uint32_t relay, uint32_t site,
                       char text[CW_ADDRESS_MAX])
{
    const struct grid *grid = &job->grid;
    uint32_t of = job->relay_site[relay];

    grid_tcp_address(grid, site, relay_host(grid, site),
                     of == site ? grid->site[site].relay.port : grid_door_of_relay(grid, site, of),
                     text);
}

void grid_job_server_at(const struct grid_job *job, uint32_t server, uint32_t site,
                        char text[CW_ADDRESS_MAX])
{
    const struct grid *grid = &job->grid;
    uint32_t of = job->server_site[server];

    if (of == site)
        grid_tcp_address(grid, site, server_of(grid, site)->host, server_of(grid, site)->port,
                         text);
    else
        grid_tcp_address(grid, site, relay_host(grid, site), grid_door_of_ckptsrv(grid, site, of),
                         text);
}
