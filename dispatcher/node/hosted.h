/* The processes of ranks at this host (dispatcher/node/process.h), with a stream for each of
 * their descriptors. */
#ifndef DISPATCHER_HOSTED_H
#define DISPATCHER_HOSTED_H

#include "common/loop.h"
#include "dispatcher/node/group_memory.h"
#include "dispatcher/wire/node_frames.h"

#define HOSTED_STALL_S 20        /* between two bytes of an image, for the process that reads it */
#define INPUT_LOG_WRITES_MAX 64u /* of input that are remembered, the last ones */

struct hosted;

struct hosted_config {
    struct loop *loop; /* borrowed, as the next one */
    struct mux *mux;
    uint32_t ranks;
    uint64_t alive_period_ns;
    int keep_fd;                 /* as of struct process */
    struct group_memory *memory; /* borrowed */
    /* Whether there is a connection: signs of life are for this moment alone. */
    bool (*connected)(void *ctx);
    void *ctx;
};

/* NULL with *err set: CW_ENOMEM. */
struct hosted *hosted_new(const struct hosted_config *config, struct cw_err *err);
/* Its processes end. NULL is allowed. */
void hosted_free(struct hosted *hosted);

/* A frame for it. Returns 1: it was one; 0: it was not. Errors: CW_EPROTO, CW_ENOMEM, CW_ELIMIT. */
int hosted_frame(struct hosted *hosted, uint32_t type, const uint8_t *body, size_t size,
                 struct cw_err *err);

/* Another dispatcher orders from now on, and knows of no start and no program: those that there are
 * end, or are forgotten. The channel memory stays. */
void hosted_begin_again(struct hosted *hosted, const struct hosted_config *config);

/* The processes of ranks end; what they have printed still passes. */
void hosted_end(struct hosted *hosted);

#endif
