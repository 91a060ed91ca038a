/* Read before anything else: sizes that are constants elsewhere, and that the seed decides here. */
#ifndef SIM_SIZES_H
#define SIM_SIZES_H

#include <stddef.h>

#pragma GCC visibility push(default)
extern size_t sim_ring_bytes;
extern size_t sim_kept_max;
extern size_t sim_segment_bytes;
extern size_t sim_replay_ahead;
extern size_t sim_provide_bytes;
extern size_t sim_offer_min;
extern size_t sim_far_max;
#pragma GCC visibility pop

#define CW_RING_BYTES sim_ring_bytes
#define CW_KEPT_MAX sim_kept_max
#define LOG_PART_SLICES 300 /* for segments of 1 KiB */
#define STORE_SEGMENT_BYTES ((uint32_t)sim_segment_bytes)
#define CW_ACK_BYTES (sim_kept_max / 8)
#define JOURNAL_PART_MAX (16u << 10)
#define COMMIT_JOURNAL_MIN (64ull << 10)
#define RELAY_REPLAY_AHEAD sim_replay_ahead
#define PROVIDE_BYTES sim_provide_bytes
#define RELAY_OFFER_MIN sim_offer_min
#define MAILBOX_FAR_MAX sim_far_max
#define LEDGER_CELLS 256u
#define LEDGER_EXTENTS 65536u

#endif
