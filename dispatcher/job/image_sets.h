/* Sets of images. Ranks that exchange messages through memory of their host are a group: they are
 * lost together, with what they had told each other. So they are asked for images together, and
 * these count for the loss of their host as a set, once all are stored and of use; only then the
 * log of each is trimmed to its image of the set. One rank of a group that crashes alone goes on
 * from its newest image as ever, of whatever set. Pure. */
#ifndef DISPATCHER_IMAGE_SETS_H
#define DISPATCHER_IMAGE_SETS_H

#include "dispatcher/job/images.h"

/* A pass begins: which sets are whole. */
void image_sets_look(struct images *images);

/* An image of this rank is due. Returns whether it may be asked for now: in a set that begins with
 * it, or alone, where there are no sets or a rank of its group cannot be asked. False: one of the
 * group is busy with the image before. */
bool image_sets_begin(struct images *images, uint32_t rank);
/* A set has begun of which this rank was not asked yet. */
bool image_sets_waits_for(const struct images *images, uint32_t rank);
/* It is asked for its part in that, or for an image that is of none (0). Returns the set. */
uint32_t image_sets_join(struct images *images, uint32_t rank);

/* The image to which the log of this rank may be trimmed; NULL: none, or it was. */
struct images_image *image_sets_to_trim(const struct images *images, uint32_t rank);

/* The host of a group is lost: its ranks go on from the newest set that is whole, all of them, or
 * from their beginnings; what else there is of images is of no use any more. Returns false when
 * there is no such set, and a log does not reach back to its beginning. Before images_restart of
 * each. */
bool images_group_lost(struct images *images, uint32_t group);

#endif
