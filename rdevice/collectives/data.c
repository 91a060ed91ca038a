#include "rdevice/collectives/data.h"

#include <stdlib.h>

/* MPICH refuses no buffer with a type of the program's: that may hold addresses. */
static bool is_missing(const void *buffer, MPI_Datatype type)
{
    int numbers, addresses, types;
    int made_by = MPI_COMBINER_NAMED;

    if (buffer)
        return false;
    mpich.Type_get_envelope(type, &numbers, &addresses, &types, &made_by);
    return made_by == MPI_COMBINER_NAMED;
}

long long data_bytes(const void *buffer, int count, MPI_Datatype type)
{
    int size;

    if (count < 0 || type == MPI_DATATYPE_NULL || mpich.Type_size(type, &size) != MPI_SUCCESS ||
        size < 0 || (count > 0 && is_missing(buffer, type)))
        return DATA_BAD;
    return (long long)count * size;
}

bool data_is_root(int root, MPI_Comm comm)
{
    int ranks;

    return comm != MPI_COMM_NULL && mpich.Comm_size(comm, &ranks) == MPI_SUCCESS && root >= 0 &&
           root < ranks;
}

bool data_commutes(MPI_Op op)
{
    int commutes;

    return op != MPI_OP_NULL && mpich.Op_commutative(op, &commutes) == MPI_SUCCESS && commutes;
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
