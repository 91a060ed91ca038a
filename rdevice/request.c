/* Requests: slots of a table that grows by chunks, reused last out, first in. */
#include "rdevice/device.h"

#include <string.h>

#define CHUNK 1024u
#define CHUNKS_MAX 65536u

static uint8_t *chunks[CHUNKS_MAX];
static uint32_t chunk_count;
static size_t stride;
static size_t user_bytes;
static void (*user_init)(void *user);
static struct device_request *free_list; /* by event.next */

void request_setup(size_t user_size, void (*init)(void *user))
{
    user_bytes = user_size;
    user_init = init;
    stride = (sizeof(struct device_request) + user_size + 63) & ~(size_t)63;
}

static struct device_request *slot(uint32_t id)
{
    return (struct device_request *)(chunks[id / CHUNK] + (id % CHUNK) * stride);
}

static void grow(void)
{
    uint32_t first = chunk_count * CHUNK;

    if (chunk_count == CHUNKS_MAX)
        device_fatal(CW_REPORT_FATAL, "%u requests are open at once: that is the bound", first);
    chunks[chunk_count++] = device_alloc(CHUNK * stride);
    for (uint32_t id = first + CHUNK; id-- > first;) {
        struct device_request *request = slot(id);

        memset(request, 0, stride);
        request->id = id;
        request->event.next = (struct device_event *)free_list;
        free_list = request;
        if (user_init)
            user_init(request->user);
    }
}

struct device_request *request_new(bool receiving)
{
    struct device_request *request;
    uint32_t id;

    if (!free_list)
        grow();
    request = free_list;
    free_list = (struct device_request *)request->event.next;
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
    request->event.next = (struct device_event *)free_list;
    free_list = request;
}

struct device_request *request_find(uint32_t id)
{
    struct device_request *request;

    if (id / CHUNK >= chunk_count)
        return NULL;
    request = slot(id);
    return request->busy ? request : NULL;
}

struct device_request *request_of_user(void *user)
{
    return (struct device_request *)((uint8_t *)user - offsetof(struct device_request, user));
}
