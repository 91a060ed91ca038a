/* Tags and receives of random traffic. */
#ifndef TRACE_RANDOM_REQUEST_H
#define TRACE_RANDOM_REQUEST_H

#include <stdint.h>

/* A tag of the tests: who sent it, the tag that is matched, and a serial number, which no mask
 * looks at: it tells the receiver which message it got. */
#define MASK_SOURCE 0xff00000000000000ull
#define MASK_TAG 0x00ff000000000000ull
#define MASK_SERIAL 0x00000000ffffffffull

enum request_state { POSTED, CANCELING, CANCELED, RECEIVED };

struct request {
    enum request_state state;
    uint64_t tag;
    uint64_t mask;
    uint64_t capacity;
    uint64_t message; /* the tag of what it got */
};

#endif
