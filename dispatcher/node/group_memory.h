/* The channel memory of groups of ranks: those with the same home relay, which are on one host
 * together. Made for the relay that reads it, or else for the first rank; it outlives all of them,
 * and ends with this node. Pages of it are made when they are written. */
#ifndef DISPATCHER_GROUP_MEMORY_H
#define DISPATCHER_GROUP_MEMORY_H

#include "common/setup.h"
#include "dispatcher/node/rank_child.h"

struct group_memory {
    struct channel_fds group[CW_RELAYS_MAX]; /* by the number of the relay */
    bool sized[CW_RELAYS_MAX];
};

/* There is none. */
void group_memory_init(struct group_memory *memory);
void group_memory_close(struct group_memory *memory);

/* A new one of no size, in place of any that there was: its descriptors stay the memory's. Errors:
 * CW_ESYS. */
int group_memory_make(struct group_memory *memory, uint32_t group, struct cw_err *err);

/* The one of a rank's group, of the size that its setup says; one without channel memory has none.
 * NULL with *err set: CW_ESYS. */
const struct channel_fds *group_memory_of(struct group_memory *memory, const struct cw_setup *setup,
                                          struct cw_err *err);

#endif
