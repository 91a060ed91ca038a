/* Buffers of the program: what they hold, memory of the same shape, and their bytes one after the
 * other. A message of bytes has no type, so that ranks whose types differ but hold the same can
 * share one: MPICH sends what MPI_Pack packs. */
#ifndef RDEVICE_COLLECTIVES_DATA_H
#define RDEVICE_COLLECTIVES_DATA_H

#include "rdevice/collectives/mpich.h"

#include <stddef.h>
#include <stdint.h>

#define DATA_BAD (-1ll)

/* What MPICH refuses it refuses before it has sent anything, and so do we: these ask for all that
 * it looks at. Other ranks may not take part in an operation that one refuses. */

/* Bytes that a message of these holds; DATA_BAD when MPICH has to say what is wrong with the
 * arguments. */
long long data_bytes(const void *buffer, int count, MPI_Datatype type);

/* The same for memory that is known to be good. */
long long data_size(int count, MPI_Datatype type);

/* Whether MPICH takes these two for different memory; `part`: which part of the one is compared
 * with the other, `recv` and `send` changing places in a scatter. */
bool data_may_be_both(const void *send, int send_count, MPI_Datatype send_type, const void *recv,
                      int recv_count, MPI_Datatype recv_type, int part);

/* Whether the operator takes the type, and the buffers, one of which may be MPI_IN_PLACE, are
 * different memory. */
bool data_may_combine(const void *send, const void *recv, int count, MPI_Datatype type, MPI_Op op);

/* Whether MPICH would take it as the root in a communicator that is one, unless that has two sides.
 */
bool data_is_root(int root, MPI_Comm comm);

/* Whether this process is that rank of the communicator. */
bool data_is_me(int rank, MPI_Comm comm);

/* Whether the operands of an operator that data_may_combine() may be combined in any order. */
bool data_commutes(MPI_Op op);

/* Room for a message of any type, which `at` is the buffer of. */
struct data_room {
    void *base; /* owned */
    void *at;
};

/* `copies` messages of `count`, `stride` bytes apart: that is set. Errors: MPI's. */
int data_room_make(struct data_room *room, int copies, int count, MPI_Datatype type,
                   size_t *stride);
void data_room_free(struct data_room *room);

/* The element `index` of the buffer. */
void *data_element(const void *buffer, long long index, MPI_Datatype type);

/* `bytes`: what data_bytes said. Errors: MPI's. */
int data_pack(const void *buffer, int count, MPI_Datatype type, char *to, long long bytes,
              MPI_Comm comm);
int data_unpack(const char *from, long long bytes, void *buffer, int count, MPI_Datatype type,
                MPI_Comm comm);

#endif
