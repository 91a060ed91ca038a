/* MPI_Barrier and MPI_Bcast (over_sites.h); and what others are made of. Where a rank has failed,
 * so do those that get something from it. */
#ifndef RDEVICE_COLLECTIVES_BCAST_H
#define RDEVICE_COLLECTIVES_BCAST_H

#include "rdevice/collectives/sites.h"

/* From the root to one rank of each other site, and from there on within each site. `error`: of
 * this rank until now. */
int bcast_over_sites(const struct sites *sites, void *buffer, int count, MPI_Datatype type,
                     int root, int error);

/* From the rank `from` of this site to its others; they fail if that has failed. */
int bcast_within_site(const struct sites *sites, void *buffer, int count, MPI_Datatype type,
                      int from, int error);

/* Parts of `size` bytes, in the order of the site's ranks, from the rank `from` of this site to
 * `part` of each; they fail if that has failed, or has others. `parts`: there alone. */
int scatter_within_site(const struct sites *sites, const char *parts, char *part, int size,
                        int from, int error);

#endif
