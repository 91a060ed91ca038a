/* When an image of a rank is due. Pure: times are given.
 *
 * An image costs the rank a stall and the time to copy it; what it gains is that less is to be
 * repeated after a crash, and that the log before it can go. So one is due
 *   - when the log has grown by as much as the last image had to send: then the two cost the same
 * room, and repeating takes about as long as reading the image; or
 *   - when it has grown by so much that the relay writes it to disk, or takes memory that it never
 * had: what is trimmed before is used again while it is warm, which costs less than an image; or
 *   - after Young's interval sqrt(2 C M), in which what images cost and what crashes lose are
 * balanced: C is the cost of an image, M the mean time between crashes of the rank; but never so
 * often that images take more than a share of the rank's time, which is larger for a log that grows
 * fast. And where the relay is about to give logs up, one is due at once. */
#ifndef DISPATCHER_IMAGE_POLICY_H
#define DISPATCHER_IMAGE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_FIRST_NS 10000000000ull /* a rank that ends sooner is repeated in less than that */
#define IMAGE_LOG_MIN (16ull << 20)   /* repeating less takes some 10 ms: no image is worth it */
#define IMAGE_SHARE 33u               /* of the time between two images, one may cost a 33rd: 3% */
#define IMAGE_LOG_MUCH (256ull << 20) /* the relay's log of one rank outgrows what it reuses */
#define IMAGE_LOG_URGENT_SHARE 4u     /* of a rank's room: one part in so many is urgent */
#define IMAGE_SHARE_MUCH 4u           /* ... and then one may cost a 4th */
/* With a fixed time between two images, what all ranks of a server copy may take a half of it: a
 * program that waits for messages was 25 times slower with two copies beside it on two cores. */
#define IMAGE_EVERY_SHARE 2u
#define IMAGE_COST_NS                                                                              \
    1000000000ull /* taken for the cost of the first one: about 1 GiB over a disk */
#define IMAGE_MTBF_NS                                                                              \
    86400000000000ull /* 24 h, while no rank has crashed: long for one process                     \
                       */

struct image_policy {
    uint64_t every_ns; /* fixed, as the user said; 0: adaptive */
    uint64_t mtbf_ns;  /* of a rank, as the user said; 0: as observed */
    /* bytes that a log has grown by: */
    uint64_t log_much;   /* at most IMAGE_LOG_MUCH, less where logs have less memory */
    uint64_t log_urgent; /* more of it, and logs are given up */
    uint32_t turns; /* with a fixed time: so many images are copied one after the other until each
                     * rank of a server has one */
};

struct image_history {
    uint64_t since_ns;  /* the last image was taken, or the rank began to live */
    bool first;         /* there is none yet, and the next two mean nothing */
    uint64_t cost_ns;   /* of the last one: stall, and the time until it was stored */
    uint64_t sent;      /* bytes of its stream */
    uint64_t log_grown; /* bytes, since then */
};

/* The mean time between crashes of a rank, of all ranks together: `ranks_ns` is the time that they
 * have run, summed. */
uint64_t image_policy_mtbf_ns(const struct image_policy *policy, uint64_t ranks_ns,
                              uint32_t crashes);

/* What there is for the logs of so many ranks, in bytes; `disk`: UINT64_MAX: enough. */
void image_policy_set_room(struct image_policy *policy, uint64_t memory, uint64_t disk,
                           uint32_t ranks);
/* The fixed time between two images, or longer if the last one took so long. */
uint64_t image_policy_every_ns(const struct image_policy *policy,
                               const struct image_history *history);

/* Whether a log that has grown by so much may make an image due. */
bool image_policy_is_grown(const struct image_policy *policy, uint64_t log_grown);

/* From when on an image is due, as things are. */
uint64_t image_policy_due_ns(const struct image_policy *policy, const struct image_history *history,
                             uint64_t mtbf_ns);

#endif
