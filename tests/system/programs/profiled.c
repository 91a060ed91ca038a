/* A tool that profiles stands between the program and MPI, under MPI's own names: each of its calls
   comes through, once, in both languages' order (MPI_ calls PMPI_). */
#include "check.h"

static int barriers, sends;

int MPI_Barrier(MPI_Comm comm)
{
    barriers++;
    return PMPI_Barrier(comm);
}

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, type, dest, tag, comm);
}

int main(int argc, char **argv)
{
    int value = -1;

    check_init(&argc, &argv);
    for (int i = 0; i < 10; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&check_rank, 1, MPI_INT, (check_rank + 1) % check_size, 3, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK("received", (check_rank + check_size - 1) % check_size, value);
    CHECK("barriers seen", 10, barriers);
    CHECK("sends seen", 1, sends);
    return check_finish("profiled");
}
