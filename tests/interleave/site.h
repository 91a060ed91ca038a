/* Channel memory of two ranks, for programs of actors, and what a device does there
 * (rdevice/channel.c). */
#ifndef INTERLEAVE_SITE_H
#define INTERLEAVE_SITE_H

#include "common/channel.h"
#include "tests/interleave/explore.h"

#define SITE_RANKS 2u
#define SITE_STREAMS (SITE_RANKS * SITE_RANKS + SITE_RANKS)
#define SITE_BLOCKS_MAX 12u
#define SITE_BYTES_MAX 7680u /* with 4 blocks of a log */

extern struct cw_channel site_channel;
extern uint8_t site_memory[SITE_BYTES_MAX];

/* All zero, with so many blocks of a log; 0: nothing is kept. */
void site_start(unsigned log_blocks);

/* Piece `number` of those that a program puts, whose contents follow from that. */
struct cw_piece site_piece(unsigned type, unsigned number, unsigned size);
/* False: there is no room. */
bool site_put(struct cw_stream *stream, const struct cw_piece *piece);
/* Takes the next one, if one is there, which must be this; and does not if none is. */
bool site_take(struct cw_stream *stream, const struct cw_piece *expected);

/* Wakes a rank, if it sleeps; sleeps until something comes, or there is room. */
void site_wake(unsigned rank);
void site_sleep_reading(unsigned rank, const struct cw_stream *stream);
void site_sleep_reading_two(unsigned rank, const struct cw_stream *stream,
                            const struct cw_stream *other);
void site_sleep_writing(unsigned rank, struct cw_stream *stream, unsigned size);

/* Each block that was ever taken is in one stream or is free, once, but for at most so many that
 * are lost. `last` block of each stream, by its place in the memory; UINT32_MAX: it has none. */
void site_check_blocks(const uint32_t *last, unsigned lost_max);

#endif
