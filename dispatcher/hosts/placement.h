/* Which slot each rank of a job gets, and which host each slot belongs to. Pure: no I/O. */
#ifndef DISPATCHER_PLACEMENT_H
#define DISPATCHER_PLACEMENT_H

#include "dispatcher/hosts/rankfile.h"

enum placement_map {
    PLACEMENT_BY_SLOT, /* the first host is filled, then the next */
    PLACEMENT_BY_NODE, /* one rank for each host in turn */
    PLACEMENT_BY_SITE, /* each site gets as many, as far as it has slots; there by slot */
};

struct placement_options {
    enum placement_map map;
    uint32_t ppn;                    /* ranks on each host; 0: as many as it has slots */
    bool oversubscribe;              /* ranks may share slots when none is free */
    const struct rankfile *rankfile; /* says it all; NULL: there is none */
    const uint32_t *cores;           /* of each host; NULL: not known, as if each had one */
};

/* The arrays are owned. Slots are counted host by host, in their order. */
struct placement {
    uint32_t slots;
    uint32_t *slot_host;
    uint32_t *slot_ranks_max; /* that may share it; 1 without `oversubscribe` */
    uint32_t ranks;
    uint32_t *rank_slot; /* where each is started first */
};

/* A host whose slots are not said has `ppn`, or one, or one for each of its cores where the ranks
 * are more than that, or a rankfile says where they are. Without `oversubscribe` each rank gets a
 * slot of its own, and at most `ppn` are on a host; with it, hosts get more, in turn, when all are
 * full, but none more than its slots_max. Errors: CW_EINVAL, with numbers and what to do;
 * CW_ENOMEM. */
int placement_make(struct placement *placement, const struct host_list *hosts, uint32_t ranks,
                   const struct placement_options *options, struct cw_err *err);

/* The number of a rank among those that are started first on its host, and how many these are. Of a
 * job without hosts, whose placement is empty, all `ranks` are on one. */
void placement_local(const struct placement *placement, uint32_t rank, uint32_t ranks,
                     uint32_t *local_rank, uint32_t *local_ranks);
/* The host where it is started first. */
uint32_t placement_host(const struct placement *placement, uint32_t rank);
/* Those ranks, with this one among them, ascending. Returns how many there are; at most `max` of
 * them are written. */
uint32_t placement_together(const struct placement *placement, uint32_t rank, uint32_t ranks,
                            uint16_t *to, uint32_t max);
/* From now on ranks may share slots, though they did not when they were placed: as many as the
 * slots_max of each host lets them. */
void placement_let_share(struct placement *placement, const struct host_list *hosts);
/* How many ranks may be on a host at a time, where they share slots. */
uint32_t placement_room(const struct host *host);
void placement_free(struct placement *placement);

#endif
