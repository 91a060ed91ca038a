/* The copies of our own log: sessions with the backups that the dispatcher has named (COPY), parts
 * of the journal to them, and what they have. docs/protocol.md, "Copies". */
#ifndef RELAY_COPY_OUT_H
#define RELAY_COPY_OUT_H

#include "relay/core/job.h"

#define COPY_PART_ROOM /* a part fits a frame, and a block */                                      \
    (JOURNAL_PART_MAX < RELAY_BLOCK_BYTES ? JOURNAL_PART_MAX : RELAY_BLOCK_BYTES)
#define COPY_PART_MIN (32u << 10)    /* no part is begun with less room */
#define COPY_BEHIND_MAX (8ull << 20) /* bytes on their way to a backup; then no more are made */

/* COPY came. `returns`: to the relay whose place we take, in this incarnation. */
void copy_out_told(struct relay_job *job, const struct cw_copy *copy, bool returns);
/* The dispatcher has sent COPY of this number, which has not come: the one before is void. Where
 * that one's backups are lost, nothing else would come either. */
void copy_out_sent(struct relay_job *job, uint64_t number);
/* A session with this backup was opened. */
void copy_out_up(struct relay_conn *conn, struct relay_job *job, uint32_t peer);
/* It is over, or could not be opened; `why` NULL: nobody need know. */
void copy_out_down(struct relay_job *job, uint32_t peer, const char *why);
/* The session was not known there any more: another one is to be opened. */
void copy_out_again(struct relay_job *job, uint32_t peer);
/* The backup has all commits up to this one. Returns whether all backups have more now. */
bool copy_out_acked(struct relay_conn *conn, uint64_t commit);
/* Queues what has changed for all backups; false: there is nothing, or not now. Between two steps.
 */
bool copy_out_make(struct relay_job *job);
/* The copy cannot go on. */
void copy_out_failed(struct relay_job *job, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The job ends. */
void copy_out_end(struct relay_job *job);

#endif
