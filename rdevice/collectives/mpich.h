/* The functions of MPICH that the collectives below are made of. They are looked up when the
 * program calls its first collective: the device is not linked with MPICH. */
#ifndef RDEVICE_COLLECTIVES_MPICH_H
#define RDEVICE_COLLECTIVES_MPICH_H

#include <mpi.h>
#include <stdbool.h>

#define MPICH_FUNCTIONS(DO)                                                                        \
    DO(Allgather)                                                                                  \
    DO(Allreduce)                                                                                  \
    DO(Alltoall)                                                                                   \
    DO(Barrier)                                                                                    \
    DO(Bcast)                                                                                      \
    DO(Gather)                                                                                     \
    DO(Reduce)                                                                                     \
    DO(Reduce_scatter)                                                                             \
    DO(Reduce_scatter_block)                                                                       \
    DO(Scan)                                                                                       \
    DO(Scatter)                                                                                    \
    DO(Scatterv)                                                                                   \
    DO(Allgather_c)                                                                                \
    DO(Allreduce_c)                                                                                \
    DO(Alltoall_c)                                                                                 \
    DO(Bcast_c)                                                                                    \
    DO(Gather_c)                                                                                   \
    DO(Reduce_c)                                                                                   \
    DO(Reduce_scatter_c)                                                                           \
    DO(Reduce_scatter_block_c)                                                                     \
    DO(Scan_c)                                                                                     \
    DO(Scatter_c)                                                                                  \
    DO(Comm_call_errhandler)                                                                       \
    DO(Comm_create)                                                                                \
    DO(Comm_create_keyval)                                                                         \
    DO(Comm_dup)                                                                                   \
    DO(Comm_free)                                                                                  \
    DO(Comm_get_attr)                                                                              \
    DO(Comm_get_errhandler)                                                                        \
    DO(Comm_group)                                                                                 \
    DO(Comm_set_attr)                                                                              \
    DO(Comm_set_errhandler)                                                                        \
    DO(Comm_size)                                                                                  \
    DO(Comm_rank)                                                                                  \
    DO(Comm_test_inter)                                                                            \
    DO(Errhandler_free)                                                                            \
    DO(Get_count)                                                                                  \
    DO(Group_free)                                                                                 \
    DO(Group_incl)                                                                                 \
    DO(Group_translate_ranks)                                                                      \
    DO(Init)                                                                                       \
    DO(Init_thread)                                                                                \
    DO(Irecv)                                                                                      \
    DO(Op_commutative)                                                                             \
    DO(Pack)                                                                                       \
    DO(Reduce_local)                                                                               \
    DO(Request_free)                                                                               \
    DO(Request_get_status)                                                                         \
    DO(Send)                                                                                       \
    DO(Type_get_extent)                                                                            \
    DO(Type_get_true_extent)                                                                       \
    DO(Type_size)                                                                                  \
    DO(Unpack)

#define MPICH_POINTER(name) __typeof__(&PMPI_##name) name;
struct mpich {
    MPICH_FUNCTIONS(MPICH_POINTER)
};
#undef MPICH_POINTER

/* Set by mpich_resolve. */
extern struct mpich mpich;

/* `find` returns the function of a name, or NULL. Returns false when one of them is missing: there
 * is another MPICH. Any thread; what is set is the same each time. */
bool mpich_resolve(void *(*find)(const char *name));

/* A communicator of this process alone, where bad arguments are returned as errors; or
 * MPI_COMM_NULL, when MPICH has none left. Any thread. */
MPI_Comm mpich_self(void);

#endif
