#include "tests/sim/pipe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void pipe_init(struct pipe *p, size_t size)
{
    *p = (struct pipe){.at = malloc(size), .size = size};
    if (!p->at)
        abort();
}

void pipe_fini(struct pipe *p)
{
    free(p->at);
    *p = (struct pipe){0};
}

static size_t until_wrap(const struct pipe *p, size_t from, size_t size)
{
    return size < p->size - from ? size : p->size - from;
}

void pipe_put(struct pipe *p, const void *from, size_t size)
{
    size_t tail = (p->head + p->used) % p->size;
    size_t first = until_wrap(p, tail, size);

    assert(size <= pipe_room(p));
    memcpy(p->at + tail, from, first);
    memcpy(p->at, (const uint8_t *)from + first, size - first);
    p->used += size;
}

void pipe_peek(const struct pipe *p, size_t skip, void *to, size_t size)
{
    size_t head = (p->head + skip) % p->size;
    size_t first = until_wrap(p, head, size);

    assert(skip + size <= p->used);
    memcpy(to, p->at + head, first);
    memcpy((uint8_t *)to + first, p->at, size - first);
}

void pipe_get(struct pipe *p, void *to, size_t size)
{
    pipe_peek(p, 0, to, size);
    p->head = (p->head + size) % p->size;
    p->used -= size;
}
