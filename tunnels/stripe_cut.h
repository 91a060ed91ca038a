/* How one direction of a tunnel is cut into chunks for several connections: their numbers, whose
 * turn it is, and whether they are packed (LZ4). A connection takes STRIPE_TURN_BYTES, then it is
 * the next one's turn, so a large message goes over all at once and small ones stay on one; one
 * without room is passed over.
 *
 * Packing has to pay: it does where the connections are the limit, so that bytes wait for room, and
 * take more time than LZ4 would to save them (common/pack.h). How fast they are is measured from
 * one moment when none had room to the next such moment; while there is always room, they count as
 * fast, and bytes go as they are but for a sample. Pure. */
#ifndef TUNNELS_STRIPE_CUT_H
#define TUNNELS_STRIPE_CUT_H

#include "common/pack.h"
#include "tunnels/stripe_frame.h"

#define STRIPES_MAX 16u             /* connections of a tunnel */
#define STRIPE_TURN_BYTES 65536u    /* of one before it is the next one's turn */
#define STRIPE_SPAN_BYTES 262144u   /* by which the connections' speed is judged */
#define STRIPE_FREE_BYTES 16777216u /* that always found room: then the connections are fast */
#define STRIPE_PACK_SHARE 8u /* one part in so many has to be saved, or a chunk stays as it is */

/* All zero at first. */
struct stripe_cut {
    uint64_t number;  /* of the next chunk */
    uint32_t turn;    /* whose it is ... */
    uint32_t of_turn; /* ... and how many bytes it has taken */
    uint64_t
        since_ns; /* when there was no room the last time; 0: not while bytes come without pause */
    uint64_t since; /* bytes since */
    struct pack pack;
};

/* Which of the connections in `ready`, a bit for each, the next chunk is for. `ready` is not 0. */
uint32_t stripe_cut_turn(struct stripe_cut *cut, uint32_t ready);

/* There was nothing to be sent: what passes of time until the next chunk says nothing. */
void stripe_cut_pause(struct stripe_cut *cut);
/* A chunk found no room until now. */
void stripe_cut_waited(struct stripe_cut *cut, uint64_t now_ns);

/* Writes the next chunk, of `size` bytes of `from`, 1 to STRIPE_CHUNK_BYTES_MAX. Returns its bytes,
 * with its header. `from` may be the place where its bytes are if it is not packed: `to` and
 * STRIPE_HEADER_BYTES. */
uint32_t stripe_cut_chunk(struct stripe_cut *cut, const uint8_t *from, uint32_t size, bool packed,
                          uint8_t to[STRIPE_HEADER_BYTES + STRIPE_CHUNK_BYTES_MAX]);
/* Whether it is to be packed; to be asked once for each chunk. */
bool stripe_cut_packs(struct stripe_cut *cut);

/* The end of the direction; the same on each connection. */
uint32_t stripe_cut_end(const struct stripe_cut *cut, uint8_t to[STRIPE_HEADER_BYTES]);

#endif
