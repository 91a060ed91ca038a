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

/* A buffer of the program that has a part for each rank. */
struct parts {
    void *buffer;
    int count; /* elements of a part */
    MPI_Datatype type;
};

/* The part of this rank. */
void *parts_at(const struct parts *parts, int rank);

/* All of them from or to bytes, in the order of sites, `size` of each. `in_place`: that of this
 * rank is where it has to be. */
int parts_pack(const struct sites *sites, char *bytes, long long size, const struct parts *parts);
int parts_unpack(const struct sites *sites, const char *bytes, long long size,
                 const struct parts *parts, bool in_place);

#endif
