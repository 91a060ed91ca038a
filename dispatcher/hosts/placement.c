#include "dispatcher/hosts/placement.h"

#include <stdio.h>
#include <stdlib.h>

/* What is known of a host while ranks are placed. */
struct room {
    uint32_t first; /* its first slot ... */
    uint32_t slots; /* ... and how many */
    uint64_t quota; /* ranks of each round */
    uint64_t most;  /* ranks altogether */
    uint64_t used;
};

struct placing {
    struct placement *placement;
    const struct host_list *hosts;
    const struct placement_options *options;
    struct room *room;
    uint32_t placed; /* ranks */
};

static uint32_t slots_of(const struct host *host, const struct placement_options *o, uint32_t cores)
{
    uint32_t most = host->slots_max ? host->slots_max : HOST_SLOTS_MAX;
    uint32_t slots = host->slots ? host->slots : o->ppn ? o->ppn : cores;

    if (host->without_ranks)
        return 0;
    return !slots ? 1 : slots < most ? slots : most;
}

uint32_t placement_room(const struct host *host)
{
    return host->slots_max ? host->slots_max : UINT32_MAX;
}

/* With one slot for each host of which no number is said there are too few. */
static bool needs_cores(const struct placing *p)
{
    uint64_t slots = 0;

    for (uint32_t i = 0; i < p->hosts->count; i++)
        if (!p->hosts->host[i].spare)
            slots += slots_of(&p->hosts->host[i], p->options, 1);
    return p->options->cores && (p->options->rankfile || slots < p->placement->ranks);
}

static int measure(struct placing *p, struct cw_err *err)
{
    const struct placement_options *o = p->options;
    bool by_cores = needs_cores(p);

    for (uint32_t i = 0; i < p->hosts->count; i++) {
        const struct host *host = &p->hosts->host[i];
        struct room *room = &p->room[i];

        room->first = p->placement->slots;
        room->slots = slots_of(host, o, by_cores ? o->cores[i] : 1);
        room->quota = o->ppn ? o->ppn : room->slots;
        room->most = room->slots;
        if (o->oversubscribe && room->slots)
            room->most = placement_room(host);
        if (room->quota > room->most && !host->spare && !host->without_ranks)
            return cw_err_set(
                err, CW_EINVAL, "--ppn %u: host %s has %u slots, and may have %u ranks%s", o->ppn,
                host->name, room->slots, (uint32_t)room->most,
                o->oversubscribe ? " (max_slots)" : "; --oversubscribe lets ranks share slots");
        p->placement->slots += room->slots;
    }
    return CW_OK;
}

/* Of so many ranks on all slots of a host, as many on this one. */
static uint32_t share_of(uint64_t most, uint32_t slot, uint32_t slots)
{
    return (uint32_t)((most - slot + slots - 1) / slots);
}

static void fill_slots(const struct placing *p)
{
    struct placement *placement = p->placement;

    for (uint32_t i = 0; i < p->hosts->count; i++) {
        const struct room *room = &p->room[i];

        for (uint32_t slot = 0; slot < room->slots; slot++) {
            placement->slot_host[room->first + slot] = i;
            placement->slot_ranks_max[room->first + slot] = share_of(room->most, slot, room->slots);
        }
    }
}

/* --- without a rankfile --- */

/* The next rank, if the host has room in this round, counted from 1. */
static bool place_on(struct placing *p, uint32_t host, uint32_t round)
{
    struct room *room = &p->room[host];

    if (p->hosts->host[host].spare || p->placed == p->placement->ranks ||
        room->used >= room->most || room->used >= round * room->quota)
        return false;
    p->placement->rank_slot[p->placed++] = room->first + (uint32_t)(room->used++ % room->slots);
    return true;
}

/* Gives each host its quota once more. Returns false when no host has room. */
static bool place_round(struct placing *p, uint32_t round)
{
    uint32_t before = p->placed;
    uint32_t last;

    do {
        last = p->placed;
        for (uint32_t i = 0; i < p->hosts->count; i++)
            while (place_on(p, i, round) && p->options->map != PLACEMENT_BY_NODE)
                ;
    } while (p->placed > last);
    return p->placed > before;
}

static int too_many(const struct placing *p, struct cw_err *err)
{
    char spare[64] = "";
    uint32_t slots = 0;

    for (uint32_t i = 0; i < p->hosts->count; i++)
        slots += p->hosts->host[i].spare ? p->room[i].slots : 0;
    if (slots)
        snprintf(spare, sizeof(spare), " (and %u on spare hosts)", slots);
    if (p->options->oversubscribe)
        return cw_err_set(err, CW_EINVAL,
                          "%u ranks, but by max_slots there is room for %u%s: give more hosts",
                          p->placement->ranks, p->placed, spare);
    return cw_err_set(err, CW_EINVAL,
                      "%u ranks, but the hosts have room for %u%s%s: give more hosts or slots, as "
                      "in --host a:4,b:4, or --oversubscribe, which lets ranks share slots",
                      p->placement->ranks, p->placed, p->options->ppn ? " with --ppn" : "", spare);
}

/* One rank more for this site, on its first host that has a slot left. */
static bool give_one(struct placing *p, uint32_t site)
{
    for (uint32_t i = 0; i < p->hosts->count; i++) {
        const struct host *host = &p->hosts->host[i];

        if (host->site != site || host->spare || p->room[i].quota == p->room[i].slots)
            continue;
        p->room[i].quota++;
        return true;
    }
    return false;
}

/* The quota of a host is its part of what its site gets. */
static void share_out(struct placing *p)
{
    uint32_t left = p->placement->ranks, sites = 0;
    bool given = true;

    for (uint32_t i = 0; i < p->hosts->count; i++) {
        p->room[i].quota = 0;
        sites = p->hosts->host[i].site < sites ? sites : p->hosts->host[i].site + 1;
    }
    while (given) {
        given = false;
        for (uint32_t site = 0; site < sites && left > 0; site++)
            if (give_one(p, site)) {
                given = true;
                left--;
            }
    }
}

static int place_all(struct placing *p, struct cw_err *err)
{
    uint32_t round = 0;

    if (p->options->map == PLACEMENT_BY_SITE)
        share_out(p);
    while (p->placed < p->placement->ranks)
        if ((round > 0 && !p->options->oversubscribe) || !place_round(p, ++round))
            return too_many(p, err);
    return CW_OK;
}

/* --- with one --- */

static int place_as_told(struct placing *p, struct cw_err *err)
{
    const struct rankfile *r = p->options->rankfile;
    struct placement *placement = p->placement;
    uint32_t *count = calloc(placement->slots, sizeof(*count));

    if (!count)
        return cw_err_set(err, CW_ENOMEM, "no memory for the places of ranks");
    for (uint32_t rank = 0; rank < placement->ranks && err->code == CW_OK; rank++) {
        const struct rank_place *place = &r->place[rank];
        const struct host *host = &p->hosts->host[place->host];
        const struct room *room = &p->room[place->host];
        uint32_t slot = room->first + place->slot;

        if (host->spare)
            cw_err_set(err, CW_EINVAL, "%s, line %u: host %s is spare (--spares)", r->file,
                       place->line, host->name);
        else if (place->slot >= room->slots)
            cw_err_set(err, CW_EINVAL, "%s, line %u: slot %u: host %s has %u, counted from 0",
                       r->file, place->line, place->slot, host->name, room->slots);
        else if (++count[slot] > placement->slot_ranks_max[slot])
            cw_err_set(err, CW_EINVAL, "%s, line %u: slot %u of host %s is full%s", r->file,
                       place->line, place->slot, host->name,
                       p->options->oversubscribe ? " (max_slots)"
                                                 : "; --oversubscribe lets ranks share slots");
        placement->rank_slot[rank] = slot;
    }
    free(count);
    return err->code;
}

/* --- all of it --- */

static int make(struct placing *p, struct cw_err *err)
{
    struct placement *placement = p->placement;

    if (measure(p, err) < 0)
        return err->code;
    placement->slot_host = calloc(placement->slots, sizeof(*placement->slot_host));
    placement->slot_ranks_max = calloc(placement->slots, sizeof(*placement->slot_ranks_max));
    placement->rank_slot = calloc(placement->ranks, sizeof(*placement->rank_slot));
    if (!placement->slot_host || !placement->slot_ranks_max || !placement->rank_slot)
        return cw_err_set(err, CW_ENOMEM, "no memory for the places of ranks");
    fill_slots(p);
    return p->options->rankfile ? place_as_told(p, err) : place_all(p, err);
}

int placement_make(struct placement *placement, const struct host_list *hosts, uint32_t ranks,
                   const struct placement_options *options, struct cw_err *err)
{
    struct placing p = {.placement = placement,
                        .hosts = hosts,
                        .options = options,
                        .room = calloc(hosts->count, sizeof(*p.room))};

    *placement = (struct placement){.ranks = ranks};
    err->code = CW_OK;
    if (p.room)
        make(&p, err);
    else
        cw_err_set(err, CW_ENOMEM, "no memory for the places of ranks");
    free(p.room);
    return err->code;
}

uint32_t placement_host(const struct placement *placement, uint32_t rank)
{
    return placement->rank_slot ? placement->slot_host[placement->rank_slot[rank]] : 0;
}

uint32_t placement_together(const struct placement *placement, uint32_t rank, uint32_t ranks,
                            uint16_t *to, uint32_t max)
{
    uint32_t host = placement_host(placement, rank);
    uint32_t count = 0;

    for (uint32_t other = 0; other < ranks; other++) {
        if (placement_host(placement, other) != host)
            continue;
        if (count < max)
            to[count] = (uint16_t)other;
        count++;
    }
    return count;
}

void placement_local(const struct placement *placement, uint32_t rank, uint32_t ranks,
                     uint32_t *local_rank, uint32_t *local_ranks)
{
    *local_rank = placement_together(placement, rank, rank, NULL, 0);
    *local_ranks = placement_together(placement, rank, ranks, NULL, 0);
}

void placement_let_share(struct placement *placement, const struct host_list *hosts)
{
    uint32_t first = 0, next;

    for (; first < placement->slots; first = next) {
        uint32_t host = placement->slot_host[first];

        for (next = first; next < placement->slots && placement->slot_host[next] == host;)
            next++;
        for (uint32_t slot = first; slot < next; slot++)
            placement->slot_ranks_max[slot] =
                share_of(placement_room(&hosts->host[host]), slot - first, next - first);
    }
}

void placement_free(struct placement *placement)
{
    free(placement->slot_host);
    free(placement->slot_ranks_max);
    free(placement->rank_slot);
    *placement = (struct placement){0};
}
