#include "tests/sim/typed.h"
#include "tests/sim/program.h"

#include <assert.h>
#include <string.h>

static void *typed_start_pack(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)buffer;
}

static void *typed_start_unpack(void *context, void *buffer, size_t count)
{
    return typed_start_pack(context, buffer, count);
}

static size_t typed_size(void *state)
{
    return ((struct typed *)state)->size;
}

static size_t typed_pack(void *state, size_t offset, void *to, size_t max)
{
    struct typed *t = state;
    size_t left = t->size - offset;
    size_t size = left < max ? left : max;

    /* less than there is room for, now and then */
    if (size > 100 && offset % 3 == 0)
        size -= 100;
    memcpy(to, t->at + offset, size);
    return size;
}

static ucs_status_t typed_unpack(void *state, size_t offset, const void *from, size_t size)
{
    struct typed *t = state;

    assert(offset + size <= t->size);
    memcpy(t->at + offset, from, size);
    return UCS_OK;
}

static void typed_finish(void *state)
{
    process_free(state);
}

ucp_datatype_t typed_datatype(void)
{
    static const ucp_generic_dt_ops_t ops = {typed_start_pack, typed_start_unpack, typed_size,
                                             typed_pack,       typed_unpack,       typed_finish};
    ucp_datatype_t datatype;

    program_library()->ucp_dt_create_generic(&ops, NULL, &datatype);
    return datatype;
}

struct typed *typed_new(const void *at, size_t size)
{
    struct typed *t = process_alloc(sizeof(*t));

    *t = (struct typed){.at = (uint8_t *)at, .size = size};
    return t;
}
