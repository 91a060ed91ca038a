/* The programs that ranks are started from at this host, as they come in parts; and the environment
 * of the dispatcher, which becomes ours. */
#ifndef DISPATCHER_BLOBS_H
#define DISPATCHER_BLOBS_H

#include "dispatcher/wire/node_frames.h"

struct blobs {
    struct node_program *whole[NODE_BLOBS_MAX]; /* owned */
    uint8_t *bytes;                             /* of the one that is coming; owned */
    uint32_t number;
    uint32_t size;
    uint32_t used;
};

void blobs_free(struct blobs *blobs);

/* The body of NODE_BLOB. Number 0, once it is whole, is the environment of this process. Errors:
 * CW_EPROTO, CW_ENOMEM. */
int blobs_take(struct blobs *blobs, const uint8_t *body, size_t size, struct cw_err *err);

/* NULL: it has not come. */
const struct launch_program *blobs_program(const struct blobs *blobs, uint32_t number);

#endif
