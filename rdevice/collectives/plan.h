/* Which ranks of a communicator are at one site, and who speaks for them. A site is a home relay
 * with its ranks. Pure.
 *
 * Kielmann et al., "MagPIe: MPI's Collective Communication Operations for Clustered Wide Area
 * Systems" (1999): each sender-receiver path has at most one link between clusters, and no data
 * item goes to one cluster twice. */
#ifndef RDEVICE_COLLECTIVES_PLAN_H
#define RDEVICE_COLLECTIVES_PLAN_H

#include "common/frame.h"

#include <stdbool.h>
#include <stdint.h>

struct plan {
    int ranks;                /* of the communicator */
    int rank;                 /* of this process in it */
    int sites;                /* with at least one of its ranks, in the order of their first */
    int mine;                 /* the site of this process */
    bool blocks;              /* the ranks of each site follow one another */
    int first[CW_RELAYS_MAX]; /* the lowest rank of each site, which speaks for it */
    int size[CW_RELAYS_MAX];  /* ranks of each site */
    int start[CW_RELAYS_MAX]; /* ranks of the sites before it */
    uint8_t *site;            /* of each rank; owned */
    int *place;               /* of each rank among those of its site; owned */
};

/* Number of the relay that `text`, the value of CW_SITES_ENV, names for this rank of the job; -1:
 * it names none. */
int plan_home(const char *text, uint32_t rank);

/* Fills *plan for a communicator of `ranks` ranks, of which this process is `rank`; home[i] is the
 * home relay of rank i, below CW_RELAYS_MAX. Returns false when there is no memory; plan_clear is
 * to be called in any case. */
bool plan_make(struct plan *plan, const uint8_t *home, int ranks, int rank);
void plan_clear(struct plan *plan);

/* Whether there is anything to gain: several sites, one of them with several ranks. */
bool plan_pays(const struct plan *plan);

/* Where the rank stands when those of each site follow one another. */
int plan_slot(const struct plan *plan, int rank);

/* Whether this process speaks for its site where there is no root. */
bool plan_speaks(const struct plan *plan);

/* Who speaks for the site in an operation with this root: the root itself at its own site. */
int plan_speaker(const struct plan *plan, int site, int root);

#endif
