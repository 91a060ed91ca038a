/* Where the process of a rank was in its output, its input and PMI when an image of it was taken:
 * of use is an image of which all of this is known. */
#ifndef DISPATCHER_IMAGE_PLACES_H
#define DISPATCHER_IMAGE_PLACES_H

#include "dispatcher/job/images.h"
#include "dispatcher/ranks/rank_io.h"
#include "dispatcher/run/telling.h"
#include "dispatcher/state/state_file.h"
#include "dispatcher/streams/rank_input.h"

/* Everything borrowed. */
struct image_places {
    const struct images *core;
    struct telling *telling;
    struct rank_io *rank_io;
    struct rank_input *input;
    struct state_file *state; /* NULL: the job does not outlive its dispatcher */
};

/* NULL: all places but that in the output are known. Else why they will not be. */
const char *image_places_missing(const struct image_places *places, uint32_t rank, uint32_t number);
bool image_places_known(const struct image_places *places, uint32_t rank, uint32_t number);

/* Of an image whose places are known: writes them down where the job is to outlive us. False: what
 * was printed before it is not out yet. */
bool image_places_keep(const struct image_places *places, uint32_t rank, uint32_t number);

/* The rank's log begins at this image: places of older ones are of no use. */
void image_places_forget_before(const struct image_places *places, uint32_t rank, uint32_t number);

#endif
