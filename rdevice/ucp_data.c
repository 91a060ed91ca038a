#include "rdevice/ucp_data.h"
#include "rdevice/arena.h"
#include "rdevice/device.h"
#include "rdevice/fatal.h"

#include <string.h>

ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t *ops, void *context,
                                   ucp_datatype_t *datatype_p)
{
    struct generic *generic = arena_alloc(sizeof(*generic));

    generic->ops = *ops;
    generic->context = context;
    *datatype_p = (ucp_datatype_t)(uintptr_t)generic | UCP_DATATYPE_GENERIC;
    return UCS_OK;
}

struct generic *ucp_data_generic(ucp_datatype_t datatype)
{
    return (struct generic *)(uintptr_t)(datatype & ~(ucp_datatype_t)UCP_DATATYPE_CLASS_MASK);
}

void ucp_dt_destroy(ucp_datatype_t datatype)
{
    if (ucp_data_class(datatype) == UCP_DATATYPE_GENERIC)
        arena_free(ucp_data_generic(datatype), sizeof(struct generic));
}

ucp_datatype_t ucp_data_type(const ucp_request_param_t *param)
{
    return param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE ? param->datatype
                                                            : ucp_dt_make_contig(1);
}

int ucp_data_gather(struct iovec *pieces, const void *buffer, size_t count, ucp_datatype_t datatype)
{
    const ucp_dt_iov_t *list = buffer;

    if (ucp_data_class(datatype) == UCP_DATATYPE_CONTIG) {
        pieces[0] = (struct iovec){.iov_base = (void *)buffer,
                                   .iov_len = count * ucp_data_element(datatype)};
        return 1;
    }
    if (count > DEVICE_PIECES_MAX)
        fatal_exit(CW_REPORT_FATAL, "a message gathered from %zu pieces, the bound is %d", count,
                   DEVICE_PIECES_MAX);
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct iovec){.iov_base = list[i].buffer, .iov_len = list[i].length};
    return (int)count;
}

size_t ucp_data_list_size(const ucp_dt_iov_t *list, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += list[i].length;
    return size;
}

void ucp_data_scatter(const ucp_dt_iov_t *list, const uint8_t *from, size_t size)
{
    while (size > 0) {
        size_t part = list->length < size ? list->length : size;

        if (part)
            memcpy(list->buffer, from, part);
        from += part;
        size -= part;
        list++;
    }
}
