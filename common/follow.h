/* Reads what ranks with channel memory decide, as they decide it, from a memory that is not mapped:
 * whoever writes there may write anything, at any time, and make the memory's file shorter, and the
 * reader finds no more than that it cannot go on. Pure.
 *
 * Thread rule: one thread at a time for one memory. */
#ifndef CW_FOLLOW_H
#define CW_FOLLOW_H

#include "common/channel.h"
#include "common/err.h"

#define CW_FOLLOW_BYTES (32u << 10) /* read at a time, at most: more than any decision has */

/* Copies `size` bytes that are `at` bytes from the start of the memory, the file behind it
 * included, to `to`. False: they are not there. What a writer has put before something that one
 * call has copied, the next call copies. */
typedef bool cw_follow_read(void *ctx, uint64_t at, void *to, size_t size);

struct cw_followed {
    struct cw_channel channel; /* as cw_channel_at() sets it, of no address */
    cw_follow_read *read;
    void *ctx;
    uint8_t room[CW_FOLLOW_BYTES];
};

/* How far the decisions of one rank were read. All zero: none was. */
struct cw_follow {
    uint64_t at;    /* position behind the last one */
    uint64_t count; /* how many */
    uint32_t block; /* 1 + number of the block that this is in; 0: none yet */
};

/* One decision: its payload is valid for the call. False: it cannot be taken now. */
typedef bool cw_follow_take(void *ctx, const struct cw_piece *piece, const uint8_t *payload);

/* Hands over what this rank has decided and `follow` has not come to. Errors: CW_ENOMEM: `take`
 * said so, and *follow is before that one; CW_EPROTO: what is there cannot be, or is gone. Where
 * nothing is kept any more, nothing is handed over. */
int cw_follow(struct cw_followed *memory, uint32_t rank, struct cw_follow *follow,
              cw_follow_take *take, void *ctx);

/* Whether a process of the rank has ever been in this memory. False also where it cannot be read.
 */
bool cw_follow_came(const struct cw_followed *memory, uint32_t rank);

#endif
