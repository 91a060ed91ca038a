#include "relay/core/door.h"

#include <assert.h>

void door_space(struct door *door, uint32_t used, void **at, size_t *size)
{
    assert(used < sizeof(door->in)); /* a frame of that size has been acted on */
    *at = door->in + used;
    *size = sizeof(door->in) - used;
}

uint8_t *door_reserve(struct door *door, size_t size)
{
    uint8_t *at = door->out + door->queued;

    if (sizeof(door->out) - door->queued < size)
        return NULL;
    door->queued += (uint32_t)size;
    return at;
}
