/* How far a rank had come in something when images of it were taken, by the images' numbers: so
 * that a process which goes on from one of them is met there. Pure. */
#ifndef DISPATCHER_PLACES_H
#define DISPATCHER_PLACES_H

#include <stdint.h>

#define PLACES_MAX 4 /* of one rank in one thing: the oldest is forgotten */
#define PLACE_VALUES 3

struct place {
    uint32_t number;           /* of the image; 0: of none, the beginning */
    uint64_t at[PLACE_VALUES]; /* what these are, its owner says */
};

/* All zeros: there are none. */
struct places {
    struct place of[PLACES_MAX];
    uint32_t count;
    uint32_t base; /* the image that is never forgotten for a newer one; 0: none */
};

/* A place that is there under the same number is replaced. */
void places_add(struct places *places, const struct place *place);

/* That of image 0 is always there, and all zeros. NULL: none is known. Valid until the next call of
 * another function. */
const struct place *places_find(const struct places *places, uint32_t number);

/* Images before this one are of no use any more. This one's place is kept from now on, however many
 * newer images come: they may all fail. */
void places_forget_before(struct places *places, uint32_t number);

#endif
