#include "rdevice/collectives/data.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* MPICH itself is asked: this operation of one process does nothing else. */
static bool is_good(const void *buffer, int count, MPI_Datatype type)
{
    MPI_Comm self = mpich_self();

    return count >= 0 && buffer != MPI_IN_PLACE && type != MPI_DATATYPE_NULL &&
           (self == MPI_COMM_NULL ||
            mpich.Bcast((void *)buffer, count, type, 0, self) == MPI_SUCCESS);
}

long long data_bytes(const void *buffer, int count, MPI_Datatype type)
{
    int size;

    if (!is_good(buffer, count, type) || mpich.Type_size(type, &size) != MPI_SUCCESS || size < 0)
        return DATA_BAD;
    return (long long)count * size;
}

long long data_size(int count, MPI_Datatype type)
{
    int size = 0;

    mpich.Type_size(type, &size);
    return (long long)count * size;
}

/* A variable of MPICH's. */
static bool checks_aliases(void)
{
    const char *text = getenv("MPIR_CVAR_COLL_ALIAS_CHECK");

    return !text || !(strchr("0nNfF", *text) || strcasecmp(text, "off") == 0);
}

bool data_may_be_both(const void *send, int send_count, MPI_Datatype send_type, const void *recv,
                      int recv_count, MPI_Datatype recv_type, int part)
{
    int size = 0;

    if (send == MPI_IN_PLACE || send_count != recv_count || send_type != recv_type ||
        send_count == 0)
        return true;
    mpich.Type_size(send_type, &size);
    return (const char *)recv + (long long)part * send_count * size != (const char *)send ||
           !checks_aliases();
}

bool data_is_root(int root, MPI_Comm comm)
{
    int ranks;

    return comm != MPI_COMM_NULL && mpich.Comm_size(comm, &ranks) == MPI_SUCCESS && root >= 0 &&
           root < ranks;
}

bool data_is_me(int rank, MPI_Comm comm)
{
    int me;

    return comm != MPI_COMM_NULL && mpich.Comm_rank(comm, &me) == MPI_SUCCESS && me == rank;
}

bool data_commutes(MPI_Op op)
{
    int commutes;

    return mpich.Op_commutative(op, &commutes) == MPI_SUCCESS && commutes;
}

bool data_may_combine(const void *send, const void *recv, int count, MPI_Datatype type, MPI_Op op)
{
    MPI_Comm self = mpich_self();

    return op != MPI_OP_NULL && type != MPI_DATATYPE_NULL &&
           data_may_be_both(send, count, type, recv, count, type, 0) &&
           (self == MPI_COMM_NULL ||
            mpich.Allreduce(MPI_IN_PLACE, NULL, 0, type, op, self) == MPI_SUCCESS);
}

int data_room_make(struct data_room *room, int copies, int count, MPI_Datatype type, size_t *stride)
{
    MPI_Aint low, extent, true_low, true_extent;
    MPI_Aint last;
    int error;

    *room = (struct data_room){0};
    error = mpich.Type_get_extent(type, &low, &extent);
    if (error == MPI_SUCCESS)
        error = mpich.Type_get_true_extent(type, &true_low, &true_extent);
    if (error != MPI_SUCCESS)
        return error;
    last = (count - 1) * extent;
    *stride = (size_t)(true_extent + (last < 0 ? -last : last));
    *stride = (*stride + 15) / 16 * 16;
    room->base = calloc((size_t)copies, *stride);
    if (!room->base)
        return MPI_ERR_NO_MEM;
    room->at = (char *)room->base - true_low - (last < 0 ? last : 0);
    return MPI_SUCCESS;
}

void data_room_free(struct data_room *room)
{
    free(room->base);
    *room = (struct data_room){0};
}

void *data_element(const void *buffer, long long index, MPI_Datatype type)
{
    MPI_Aint low, extent;

    mpich.Type_get_extent(type, &low, &extent);
    return (char *)buffer + index * extent;
}

int data_pack(const void *buffer, int count, MPI_Datatype type, char *to, long long bytes,
              MPI_Comm comm)
{
    int at = 0;

    return count ? mpich.Pack(buffer, count, type, to, (int)bytes, &at, comm) : MPI_SUCCESS;
}

int data_unpack(const char *from, long long bytes, void *buffer, int count, MPI_Datatype type,
                MPI_Comm comm)
{
    int at = 0;

    return count ? mpich.Unpack(from, (int)bytes, &at, buffer, count, type, comm) : MPI_SUCCESS;
}
