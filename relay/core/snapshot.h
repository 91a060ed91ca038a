/* Points where a rank may be started again, of a mailbox: its snapshot in the log, which holds what
 * it was then, and the end of all that was before. */
#ifndef RELAY_SNAPSHOT_H
#define RELAY_SNAPSHOT_H

#include "relay/core/job.h"

/* Of a mailbox that is made again, beside its log's counts, messages and receives. */
struct snapshot_state {
    uint64_t streams;
    struct cw_rank_stats stats;
};

/* Its rank is at a point now. Where snapshots have taken their share of the log (log_point_fits),
 * the point is not known: an image from there is of no use. */
void snapshot_take(struct relay_mailbox *mailbox, const struct cw_point *at);

/* What came of the wish to let go of a rank's log before a point. */
enum snapshot_trimmed {
    TRIM_DONE,
    TRIM_LATER,   /* its rank is being handed the log */
    TRIM_UNKNOWN, /* there is no such point any more: its image is of no use */
};

/* Lets go of all that is needed for a start before the point only. */
enum snapshot_trimmed mailbox_trim(struct relay_mailbox *mailbox, const struct cw_point *at);

#endif
