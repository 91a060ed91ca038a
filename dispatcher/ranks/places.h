/* How far a rank had come in all that its dispatcher passes on, when images of it were taken, by
 * the images' numbers: so that a process which goes on from one of them is met there. Pure. */
#ifndef DISPATCHER_PLACES_H
#define DISPATCHER_PLACES_H

#include <stdint.h>

#define PLACES_MAX 4 /* of one rank: the oldest is forgotten */
#define PLACE_VALUES 3

/* In what; what its values are, its owner says. */
enum place_in { PLACE_PMI, PLACE_STDOUT, PLACE_STDERR, PLACE_STDIN, PLACES_IN };

struct place {
    uint32_t number; /* of the image */
    uint32_t known;  /* in what its place is: a bit for each */
    uint64_t at[PLACES_IN][PLACE_VALUES];
};

/* All zeros: there are none. */
struct places {
    struct place of[PLACES_MAX];
    uint32_t count;
    uint32_t base; /* the image that is never forgotten for a newer one; 0: none */
};

/* A place that is there already is replaced. */
void places_set(struct places *places, uint32_t number, enum place_in in,
                const uint64_t at[PLACE_VALUES]);

/* That of image 0, the beginning, is always there, and all zeros; then `places` may be NULL. NULL:
 * none is known. Valid until the next call of another function. */
const uint64_t *places_at(const struct places *places, uint32_t number, enum place_in in);

/* Images before this one are of no use any more. This one's place is kept from now on, however many
 * newer images come: they may all fail. */
void places_forget_before(struct places *places, uint32_t number);

#endif
