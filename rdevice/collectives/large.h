/* The same functions with large counts. A message that an int can count is the same message to MPI,
 * whichever of both functions a rank calls. */
#ifndef RDEVICE_COLLECTIVES_LARGE_H
#define RDEVICE_COLLECTIVES_LARGE_H

#include <mpi.h>

int large_bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
int large_reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 int root, MPI_Comm comm);
int large_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm);
int large_gather(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                 MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm);
int large_scatter(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                  MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm);
int large_allgather(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                    MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm);
int large_alltoall(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                   MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm);
int large_reduce_scatter(const void *send, void *recv, const MPI_Count counts[], MPI_Datatype type,
                         MPI_Op op, MPI_Comm comm);
int large_reduce_scatter_block(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
                               MPI_Op op, MPI_Comm comm);
int large_scan(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm);

#endif
