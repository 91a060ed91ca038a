/* What ranks with channel memory decided, copied out of it: as bytes, one decision after the other,
 * and how much of it goes together. Pure.
 *
 * The streams of several ranks are not read at one moment. So a rank may have taken a piece that
 * was put behind a decision of another rank of which there is no copy: it cannot be repeated, nor
 * can what follows it. docs/protocol.md, "Channel memory". */
#ifndef CW_DECIDED_H
#define CW_DECIDED_H

#include "common/buf.h"
#include "common/channel.h"

#define CW_DECISION_HEAD_MAX 64u /* bytes of one, but for its payload */
#define CW_DECISION_MAX (CW_DECISION_HEAD_MAX + CW_CHANNEL_NOTE_MAX)

/* A decision as bytes: writes it to `to`, which has room for CW_DECISION_HEAD_MAX bytes and
 * `piece->size`, its payload. Returns how many bytes. */
size_t cw_decision_put(uint8_t *to, const struct cw_piece *piece, const uint8_t *payload);
/* The same without its payload, which is to follow. */
size_t cw_decision_put_head(uint8_t to[CW_DECISION_HEAD_MAX], const struct cw_piece *piece);
/* Reads the next one; its stamp is 0. `*payload`: piece->size bytes there, not aligned. False: the
 * bytes are none, and the reader is bad. */
bool cw_decision_get(struct cw_reader *from, struct cw_piece *piece, const uint8_t **payload);

/* Hands over the decisions of each rank in their order, from the first one on. */
struct cw_decided_source {
    void (*begin)(void *ctx, uint32_t rank);
    /* False: there are no more. */
    bool (*next)(void *ctx, uint32_t rank, struct cw_piece *piece);
    void *ctx;
};

/* The largest consistent cut: `counts` has how many decisions there are of
 * each of so many ranks, and then how many of these count: of none one that took a piece which was
 * put behind a decision that does not. Reads each stream once for each time that something was cut
 * off, and once more. */
void cw_decided_cut(const struct cw_decided_source *source, uint32_t ranks, uint64_t *counts);

#endif
