/* Collectives that know sites, in front of MPICH's own: Causeway tells MPICH that each rank is a
 * node of its own, so MPICH's cross between sites many times. Which they are: over_sites.h. */
#ifndef RDEVICE_COLLECTIVES_H
#define RDEVICE_COLLECTIVES_H

/* The function that stands in for this one of MPI (MPI_ or PMPI_); NULL: MPICH's own is to be
 * called. `find` returns MPICH's functions by their names. Any thread. */
void *collectives_find(const char *name, void *(*find)(const char *name));

#endif
