/* Points: where a rank may be started again from an image of its process, and the log trimmed to.
 * At each the log has a snapshot of what its mailbox held. docs/log-format.md. */
#ifndef RELAY_LOG_POINT_H
#define RELAY_LOG_POINT_H

#include "relay/log/log.h"

/* Bytes that snapshots may take beyond as many as all else that the log holds: a rank makes one by
 * a frame of 24 bytes, and others may share the disk. */
#ifndef LOG_SNAPSHOTS_FREE
#define LOG_SNAPSHOTS_FREE (64ull << 20)
#endif
#define LOG_POINTS_MAX 4u /* that are known; the oldest one that was not trimmed to goes */

/* As it stands in its record, too, but for what its position says. */
struct log_point {
    struct cw_point at;     /* what the rank says of it */
    uint64_t position;      /* of its record */
    struct log_cursor from; /* behind it; the first events there may have been taken before */
    uint64_t low;           /* the messages of the events that were not begin here, or later ... */
    uint64_t floor;         /* ... and their payload here */
    uint64_t payload;       /* ends here */
    uint64_t event_count;
    uint64_t determinant_count;
};

struct log_points {
    struct log_point at[LOG_POINTS_MAX]; /* in their order */
    uint32_t count;
    bool trimmed;      /* the first one is where the log begins */
    uint64_t snapshot; /* the record of the last one that there was, also if it is not known */
};

/* What of it is saved. */
struct log_points_left {
    uint32_t any; /* 0: there never was a point */
    uint32_t count;
    uint32_t trimmed;
    uint64_t snapshot;
    uint64_t at[LOG_POINTS_MAX]; /* the positions of those that are known */
};

/* The rank is at a point now: it is known from now on, and its snapshot is to be appended. Returns
 * 0 or CW_ENOMEM. */
int log_point_begin(struct relay_log *log, const struct cw_point *at);
/* Whether there is room for another snapshot. */
bool log_point_fits(const struct relay_log *log);
/* The one that the rank calls so; NULL: it is not known. */
const struct log_point *log_point_find(const struct relay_log *log, const struct cw_point *at);
/* The last one that is known; NULL: there is none. */
const struct log_point *log_point_last(const struct relay_log *log);
/* Whether a rank can be started from its beginning. */
bool log_is_whole(const struct relay_log *log);
/* The rank did not come to those after this poll clock: it was killed, and went on otherwise. */
void log_points_forget(struct relay_log *log, uint64_t clock);
/* A placed piece of payload is part of the snapshot at `point`. False: it is not there. */
bool log_pin(struct relay_log *log, uint64_t at, uint64_t point);
/* Lets go of what only a start before this point, which is known, would need. */
void log_trim(struct relay_log *log, const struct log_point *point);

/* --- of a log that was left */
struct log_points_left log_points_left(const struct relay_log *log);
/* The same, before any of them is known. Returns 0 or CW_ENOMEM. */
int log_points_return(struct relay_log *log, const struct log_points_left *left);
/* Reads the record of a point. False: it makes no sense. */
bool log_point_read(const struct log_record *record, uint64_t position, struct log_point *point);
/* It is known; further ones come after it. */
void log_point_return(struct relay_log *log, const struct log_point *point);
/* Counts go on from here. */
void log_go_on_from(struct relay_log *log, const struct log_point *point);

#endif
