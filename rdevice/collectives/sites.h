/* What a communicator of the program needs for collectives over sites: two communicators of our
 * own, which the program does not see, and the plan. Kept as an attribute of the program's. */
#ifndef RDEVICE_COLLECTIVES_SITES_H
#define RDEVICE_COLLECTIVES_SITES_H

#include "rdevice/collectives/mpich.h"
#include "rdevice/collectives/plan.h"

#include <stddef.h>

/* What an operation returns that has failed at another rank, or whose ranks disagree on sizes. */
#define SITES_FAILED MPI_ERR_OTHER

/* MPICH has 2048 context ids for a process, and the program may want most of them. */
#define SITES_COMMS_MAX 256 /* communicators with two of ours each */

/* The first collectives of a communicator but MPI_COMM_WORLD are MPICH's own: to make two
 * communicators costs about as much as that many. Those in which each rank waits for all others are
 * counted: when one of the ranks refuses its arguments, the others go on after no such operation,
 * so that the ranks that go on have the same count. */
#define SITES_FLAT_FIRST 4

struct sites {
    struct plan plan;
    MPI_Comm all;  /* the same ranks as the program's */
    MPI_Comm site; /* those of this site, in the same order */
};

/* Reads which rank is where, once. False: the job has one site, or wants no such collectives. Any
 * thread. */
bool sites_known(void);

/* For an operation of `comm` whose arguments are good; `meets`: in which each rank waits for all
 * others. Then it may be collective. Returns NULL when the operation is to be MPICH's own: the same
 * on all ranks. Valid until `comm` is freed. */
const struct sites *sites_of(MPI_Comm comm, bool meets);

/* Within MPI_Init, where all ranks are: MPI_COMM_WORLD gets its sites. */
void sites_begin(void);

/* An error of an operation on our communicators becomes one on the program's. Returns what the
 * program's error handler leaves, or MPI_SUCCESS. */
int sites_result(MPI_Comm comm, int error);

/* --- errors --- */

/* Errors do not keep a rank from its messages, for others wait for them: it goes on, and what it
 * sends says so. The first of both. */
static inline int sites_first(int error, int other)
{
    return error == MPI_SUCCESS ? other : error;
}

/* The rank `from` of this site says whether it has failed: `error`. Returns that at `from`, and
 * SITES_FAILED elsewhere, or MPI_SUCCESS. */
int sites_agree(const struct sites *sites, int from, int error);

/* --- messages between sites --- */

/* The messages that one rank has under way at once in one operation: to and from each site. None is
 * empty but those of a rank that has failed. */
struct sites_batch {
    const struct sites *sites;
    struct {
        MPI_Request request;
        int count;
        MPI_Datatype type;
    } expected[CW_RELAYS_MAX];
    int count;
    int error; /* the first, or MPI_SUCCESS */
};

/* `error`: of the operation until now. Then what comes is dropped, and what is sent says so. */
void sites_batch_begin(struct sites_batch *batch, const struct sites *sites, int error);
void sites_batch_send(struct sites_batch *batch, const void *data, int count, MPI_Datatype type,
                      int to);
void sites_batch_recv(struct sites_batch *batch, void *data, int count, MPI_Datatype type,
                      int from);
/* Waits for all of them. Returns batch->error. */
int sites_batch_end(struct sites_batch *batch);

#endif
