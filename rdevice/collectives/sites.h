/* What a communicator of the program needs for collectives over sites: two communicators of our
 * own, which the program does not see, and the plan. Kept as an attribute of the program's. */
#ifndef RDEVICE_COLLECTIVES_SITES_H
#define RDEVICE_COLLECTIVES_SITES_H

#include "rdevice/collectives/mpich.h"
#include "rdevice/collectives/plan.h"

#include <stddef.h>

/* MPICH has 2048 context ids for a process, and the program may want most of them. */
#define SITES_COMMS_MAX 256 /* communicators with two of ours each */

/* The first collectives of a communicator but MPI_COMM_WORLD are MPICH's own: to make two
 * communicators costs about as much as that many. */
#define SITES_FLAT_FIRST 4

struct sites {
    struct plan plan;
    MPI_Comm all;  /* the same ranks as the program's */
    MPI_Comm site; /* those of this site, in the same order */
};

/* Reads which rank is where, once. False: the job has one site, or wants no such collectives. Any
 * thread. */
bool sites_known(void);

/* Collective over `comm`, in which all its ranks call the same functions in the same order. Returns
 * NULL when the operation is to be MPICH's own: the same on all ranks. Valid until `comm` is
 * freed. */
const struct sites *sites_of(MPI_Comm comm);

/* An error of an operation on our communicators becomes one on the program's. Returns what the
 * program's error handler leaves, or MPI_SUCCESS. */
int sites_result(MPI_Comm comm, int error);

/* --- messages between sites --- */

/* The messages that one rank has under way at once in one operation: to and from each site. */
struct sites_batch {
    const struct sites *sites;
    MPI_Request requests[2 * CW_RELAYS_MAX];
    int count;
    int error; /* the first, or MPI_SUCCESS */
};

void sites_batch_begin(struct sites_batch *batch, const struct sites *sites);
void sites_batch_send(struct sites_batch *batch, const void *data, int count, MPI_Datatype type,
                      int to);
void sites_batch_recv(struct sites_batch *batch, void *data, int count, MPI_Datatype type,
                      int from);
/* Waits for all of them. Returns batch->error. */
int sites_batch_end(struct sites_batch *batch);

#endif
