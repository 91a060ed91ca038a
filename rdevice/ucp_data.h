/* Datatypes of UCP: contiguous, lists of buffers, and generic ones, which pack and unpack by
 * functions of MPICH. Used by ucp.c alone. */
#ifndef RDEVICE_UCP_DATA_H
#define RDEVICE_UCP_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
/* these, and nothing else, the library gives to the program */
#pragma GCC visibility push(default)
#include <ucp/api/ucp.h>
#pragma GCC visibility pop

/* A generic datatype; its handle is this address with UCP_DATATYPE_GENERIC in the low bits. */
struct generic {
    ucp_generic_dt_ops_t ops;
    void *context;
};

static inline unsigned ucp_data_class(ucp_datatype_t datatype)
{
    return datatype & UCP_DATATYPE_CLASS_MASK;
}

/* Of one element of a contiguous datatype. */
static inline size_t ucp_data_element(ucp_datatype_t datatype)
{
    return datatype >> UCP_DATATYPE_SHIFT;
}

/* Bytes, unless the caller says something else. */
ucp_datatype_t ucp_data_type(const ucp_request_param_t *param);

/* Of a generic datatype. */
struct generic *ucp_data_generic(ucp_datatype_t datatype);

/* Fills at most DEVICE_PIECES_MAX vectors from a contiguous buffer or a list; returns how many.
 * Ends the process when the list is longer. */
int ucp_data_gather(struct iovec *pieces, const void *buffer, size_t count,
                    ucp_datatype_t datatype);

/* Bytes of a list of `count` buffers. */
size_t ucp_data_list_size(const ucp_dt_iov_t *list, size_t count);
/* Fills the list with `size` bytes, at most as many as it has room for. */
void ucp_data_scatter(const ucp_dt_iov_t *list, const uint8_t *from, size_t size);

#endif
