/* Requests: slots of a table. */
#include "rdevice/device.h"

#include <string.h>

#define CHUNK 1024u
#define CHUNKS_MAX 65536u

void request_setup(size_t user_size, void (*init)(void *user))
{
    struct request_table *t = &device.requests;

    t->chunks = device_alloc(CHUNKS_MAX * sizeof(*t->chunks));
    t->user_init = init;
    t->stride = (sizeof(struct device_request) + user_size + 63) & ~(size_t)63;
}

static struct device_request *slot(const struct request_table *t, uint32_t id)
{
    return (struct device_request *)(t->chunks[id / CHUNK] + (id % CHUNK) * t->stride);
}

static void grow(struct request_table *t)
{
    uint32_t first = t->chunk_count * CHUNK;

    if (t->chunk_count == CHUNKS_MAX)
        device_fatal(CW_REPORT_FATAL, "%u requests are open at once: that is the bound", first);
    t->chunks[t->chunk_count++] = device_alloc(CHUNK * t->stride);
    for (uint32_t id = first + CHUNK; id-- > first;) {
        struct device_request *request = slot(t, id);

        memset(request, 0, t->stride);
        request->id = id;
        request_free(request);
        if (t->user_init)
            t->user_init(request->user);
    }
}

struct device_request *request_new(bool receiving)
{
    struct request_table *t = &device.requests;
    struct device_request *request;
    uint32_t id;

    if (!t->free)
        grow(t);
    request = t->free;
    t->free = (struct device_request *)request->event.next;
    id = request->id;
    memset(request, 0, sizeof(*request));
    request->id = id;
    request->busy = true;
    request->receiving = receiving;
    return request;
}

void request_free(struct device_request *request)
{
    request->busy = false;
    request->event.next = (struct device_event *)device.requests.free;
    device.requests.free = request;
}

struct device_request *request_find(uint32_t id)
{
    struct request_table *t = &device.requests;
    struct device_request *request;

    if (id / CHUNK >= t->chunk_count)
        return NULL;
    request = slot(t, id);
    return request->busy ? request : NULL;
}

struct device_request *request_of_user(void *user)
{
    return (struct device_request *)((uint8_t *)user - offsetof(struct device_request, user));
}
