/* MPI_Barrier and MPI_Bcast (over_sites.h); and what others are made of. */
#ifndef RDEVICE_COLLECTIVES_BCAST_H
#define RDEVICE_COLLECTIVES_BCAST_H

#include "rdevice/collectives/sites.h"

/* From the root to one rank of each other site, and from there on within each site. */
int bcast_over_sites(const struct sites *sites, void *buffer, int count, MPI_Datatype type,
                     int root);

#endif
