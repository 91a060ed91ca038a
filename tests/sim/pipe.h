/* One direction of a connection: a queue of bytes that holds so many and no more. */
#ifndef SIM_PIPE_H
#define SIM_PIPE_H

#include <stddef.h>
#include <stdint.h>

struct pipe {
    uint8_t *at;
    size_t head;
    size_t used;
    size_t size;
};

void pipe_init(struct pipe *p, size_t size);
void pipe_fini(struct pipe *p);
static inline size_t pipe_room(const struct pipe *p)
{
    return p->size - p->used;
}

/* `size` at most the room, or what is there. */
void pipe_put(struct pipe *p, const void *from, size_t size);
void pipe_get(struct pipe *p, void *to, size_t size);
/* Likewise, but they stay: those `skip` bytes from the first. */
void pipe_peek(const struct pipe *p, size_t skip, void *to, size_t size);

/* Loses what was put last: `keep` bytes stay. */
static inline void pipe_cut(struct pipe *p, size_t keep)
{
    p->used = keep < p->used ? keep : p->used;
}

#endif
