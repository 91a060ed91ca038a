/* What a connection has before it has proven who it is: room for one frame each way, and for
 * REFUSED, in its own record. A process without a key takes no memory from jobs. */
#ifndef RELAY_DOOR_H
#define RELAY_DOOR_H

#include "common/frame.h"

struct door {
    bool outside;     /* the connection has not been let in */
    uint32_t queued;  /* bytes of `out` ... */
    uint32_t written; /* ... and how many of them have left */
    uint8_t in[CW_FRAME_HEADER + CW_HELLO_SIZE];
    uint8_t
        out[CW_FRAME_HEADER + CW_CHALLENGE_SIZE + CW_FRAME_HEADER + CW_NOTICE_SIZE + CW_TEXT_MAX];
};

/* Where the next bytes go that arrive; `used` bytes of `in` are taken. */
void door_space(struct door *door, uint32_t used, void **at, size_t *size);

/* Room for `size` contiguous bytes at the end of `out`, to be filled at once; NULL: it is full. */
uint8_t *door_reserve(struct door *door, size_t size);

/* Bytes that are queued and have not left. */
static inline uint32_t door_left(const struct door *door)
{
    return door->queued - door->written;
}

#endif
