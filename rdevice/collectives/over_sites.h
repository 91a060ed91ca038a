/* MPI's collectives, each of which crosses between sites as few times as it can. The functions have
 * the arguments, and give the results, of MPI's; where there is nothing to gain, and where MPICH
 * has to refuse the arguments, they are MPICH's own.
 *
 * Errors come by the communicator's handler, to the ranks that depend on what has failed.
 *
 * All ranks of an operation come to the same decision, since it depends on nothing but what MPI
 * wants to be the same on all of them: the bytes of a message, the root, the operator and the
 * communicator. */
#ifndef RDEVICE_COLLECTIVES_OVER_SITES_H
#define RDEVICE_COLLECTIVES_OVER_SITES_H

#include <mpi.h>

#define OVER_SITES_PART_MAX (1u << 30)      /* bytes that one rank may hold more for an operation */
#define OVER_SITES_EXCHANGE_MAX 8192        /* bytes of an allreduce that sites exchange directly */
#define OVER_SITES_ALLTOALL_MAX (32u << 10) /* bytes from rank to rank; above, MPICH's own */

int over_sites_barrier(MPI_Comm comm);
int over_sites_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int over_sites_reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                      int root, MPI_Comm comm);
int over_sites_allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm);
int over_sites_gather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                      int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm);
int over_sites_scatter(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                       int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm);
int over_sites_allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                         int recv_count, MPI_Datatype recv_type, MPI_Comm comm);
int over_sites_alltoall(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                        int recv_count, MPI_Datatype recv_type, MPI_Comm comm);
int over_sites_reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm);
int over_sites_reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type,
                                    MPI_Op op, MPI_Comm comm);
int over_sites_scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm);

#endif
