#include "dispatcher/run/layout.h"
#include "common/channel.h"
#include "dispatcher/job/homes.h"

#include <stdlib.h>
#include <string.h>

static int no_memory(struct cw_err *err)
{
    return cw_err_set(err, CW_ENOMEM, "no memory for the places of ranks and relays");
}

/* The relays and servers of the sites that have ranks. */
static int take_grid(struct layout *l, const struct run_options *o, struct cw_err *err)
{
    struct grid_job *grid = o->grid;

    if (grid_job_place(grid, &o->hosts.list, &l->placement, err) < 0)
        return err->code;
    l->links = calloc((size_t)grid->relays * grid->relays, sizeof(*l->links));
    if (!l->links)
        return no_memory(err);
    memcpy(l->homes, grid->rank_relay, o->ranks);
    l->relays = grid->relays;
    for (uint32_t i = 0; i < grid->relays * grid->relays; i++)
        l->links[i] = grid->link[i].text[0] ? grid->link[i].text : NULL;
    for (uint32_t i = 0; i < grid->relays; i++)
        l->relay_address[i] = grid->relay[i].text;
    l->key_file = l->server_key_file = grid->key_file;
    l->servers = grid->servers;
    for (uint32_t i = 0; i < grid->servers; i++)
        l->server_address[i] = grid->server[i].text;
    l->images &= grid->servers > 0;
    if (grid->servers == 0 && (o->images.every_ns || o->images.mtbf_ns))
        return cw_err_set(err, CW_EINVAL,
                          "%s is for images, which -f FILE, without a ckptsrv for them, turns off",
                          o->images.every_ns ? "--ckpt-every" : "--mtbf");
    return CW_OK;
}

/* With one relay on each host, the ranks there have it as their home. */
static int take_hosts(struct layout *l, const struct run_options *o, struct cw_err *err)
{
    uint32_t at;

    for (uint32_t rank = 0; rank < o->ranks; rank++) {
        uint32_t host = l->placement.slot_host[l->placement.rank_slot[rank]];

        for (at = 0; at < l->relays && l->relay_host[at] != host; at++)
            ;
        if (at == CW_RELAYS_MAX)
            return cw_err_set(err, CW_EINVAL,
                              "a relay on each host with ranks: a job has at most %u relays; give "
                              "--relay-at cluster",
                              CW_RELAYS_MAX);
        if (at == l->relays)
            l->relay_host[l->relays++] = host;
        l->homes[rank] = (uint8_t)at;
    }
    return CW_OK;
}

/* Those of spare hosts, as many as a job may have, keep copies for the others. */
static void add_spares(struct layout *l, const struct host_list *hosts)
{
    for (uint32_t host = 0; host < hosts->count; host++)
        if (hosts->host[host].spare && l->relays < CW_RELAYS_MAX)
            l->relay_host[l->relays++] = host;
}

static void take_given(struct layout *l, const struct run_options *o)
{
    l->relays = o->relays;
    l->running = o->relay_count > 0 || o->grid;
    l->at_hosts = o->relays == 0 && !o->grid;
    memcpy(l->relay_address, o->relay_addresses, sizeof(l->relay_address));
    l->key_file = o->key_file;
    l->images = !o->images.none;
    l->servers = o->images.server_count;
    memcpy(l->server_address, o->images.servers, sizeof(l->server_address));
    l->server_key_file = o->images.key_file;
}

/* --- channel memory on hosts, where nobody has said whether there is to be some ---
 */

/* Ranks that are started on a host first, and how many more could be on all of its site, or of
 * those of the job, while it is lost. */
struct host_load {
    uint64_t ranks;
    uint64_t elsewhere;
};

static struct host_load load_of(const struct layout *l, const struct host_list *hosts, uint32_t of)
{
    const struct placement *p = &l->placement;
    struct host_load load = {0};

    for (uint32_t slot = 0; slot < p->slots; slot++)
        if (p->slot_host[slot] != of &&
            hosts->host[p->slot_host[slot]].site == hosts->host[of].site)
            load.elsewhere += p->slot_ranks_max[slot];
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        uint32_t host = p->slot_host[p->rank_slot[rank]];

        load.ranks += host == of;
        load.elsewhere -= host != of && hosts->host[host].site == hosts->host[of].site;
    }
    return load;
}

/* Some ranks are together, and none too many. The logs are lost with a host: at a site of a grid,
 * whose relay is none of its hosts', ranks can go on on others where these have room for them. */
static bool channel_pays(const struct layout *l, const struct run_options *o)
{
    bool any = false;

    for (uint32_t host = 0; host < o->hosts.list.count; host++) {
        struct host_load load = load_of(l, &o->hosts.list, host);

        if (load.ranks > CW_CHANNEL_RANKS_MAX ||
            (o->grid && load.ranks > 0 && load.elsewhere >= load.ranks))
            return false;
        any |= load.ranks > 1;
    }
    return any;
}

static int take_places(struct layout *l, const struct run_options *o, struct cw_err *err)
{
    if (l->relays == 1)
        return CW_OK;
    l->homes = malloc(o->ranks);
    if (!l->homes)
        return no_memory(err);
    if (o->grid)
        return take_grid(l, o, err);
    if (!l->at_hosts)
        return homes_fill(l->homes, o->ranks, o->relays, o->relay_map, err);
    if (take_hosts(l, o, err) < 0)
        return err->code;
    if (o->log_copies)
        add_spares(l, &o->hosts.list);
    return CW_OK;
}

int layout_make(struct layout *l, const struct run_options *o, const uint32_t *cores, bool limited,
                struct cw_err *err)
{
    struct placement_options placing = o->hosts.placing;

    *l = (struct layout){0};
    take_given(l, o);
    placing.cores = cores;
    if (o->hosts.list.count &&
        placement_make(&l->placement, &o->hosts.list, o->ranks, &placing, err) < 0)
        return err->code;
    if (take_places(l, o, err) < 0)
        return err->code;
    if (o->log_copies)
        placement_let_share(&l->placement, &o->hosts.list);
    l->channel =
        o->channel == CHANNEL_ON || (o->channel == CHANNEL_AUTO && !limited && channel_pays(l, o));
    return CW_OK;
}

void layout_free(struct layout *l)
{
    placement_free(&l->placement);
    free(l->homes);
    free(l->links);
    *l = (struct layout){0};
}
