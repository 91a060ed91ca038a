#include "rdevice/request.h"
#include "rdevice/arena.h"
#include "rdevice/fatal.h"

#include <string.h>

#define CHUNK 1024u
#define CHUNKS_MAX 65536u

void request_setup(struct request_table *t, size_t user_size, void (*init)(void *user))
{
    t->chunks = arena_alloc(CHUNKS_MAX * sizeof(*t->chunks));
    t->user_init = init;
    t->stride = (sizeof(struct request) + user_size + 63) & ~(size_t)63;
}

static struct request *slot(const struct request_table *t, uint32_t id)
{
    return (struct request *)(t->chunks[id / CHUNK] + (id % CHUNK) * t->stride);
}

static void grow(struct request_table *t)
{
    uint32_t first = t->chunk_count * CHUNK;

    if (t->chunk_count == CHUNKS_MAX)
        fatal_exit(CW_REPORT_FATAL, "%u requests are open at once: that is the bound", first);
    t->chunks[t->chunk_count++] = arena_alloc(CHUNK * t->stride);
    for (uint32_t id = first + CHUNK; id-- > first;) {
        struct request *request = slot(t, id);

        memset(request, 0, t->stride);
        request->id = id;
        request_free(t, request);
        if (t->user_init)
            t->user_init(request->user);
    }
}

struct request *request_new(struct request_table *t, bool receiving)
{
    struct request *request;
    uint32_t id;

    if (!t->free)
        grow(t);
    request = t->free;
    t->free = (struct request *)request->event.next;
    id = request->id;
    memset(request, 0, sizeof(*request));
    request->id = id;
    request->busy = true;
    request->receiving = receiving;
    return request;
}

void request_free(struct request_table *t, struct request *request)
{
    request->busy = false;
    request->event.next = (struct event *)t->free;
    t->free = request;
}

void request_each(const struct request_table *t, void (*give)(void *ctx, struct request *request),
                  void *ctx)
{
    for (uint32_t id = 0; id < t->chunk_count * CHUNK; id++)
        if (slot(t, id)->busy)
            give(ctx, slot(t, id));
}

struct request *request_find(const struct request_table *t, uint32_t id)
{
    struct request *request;

    if (id / CHUNK >= t->chunk_count)
        return NULL;
    request = slot(t, id);
    return request->busy ? request : NULL;
}

struct request *request_of_user(void *user)
{
    return (struct request *)((uint8_t *)user - offsetof(struct request, user));
}
