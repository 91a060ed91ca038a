/* The images of one rank, as the core of images knows them: which the servers have, which its log
 * reaches back to, which a process can go on from. A server is a bit, by its number. Pure. */
#ifndef DISPATCHER_IMAGE_ENTRIES_H
#define DISPATCHER_IMAGE_ENTRIES_H

#include "dispatcher/job/images.h"

/* Some server has it: */
bool image_is_held(const struct images_rank *r, const struct images_image *image);
/* ... and so has each that is to have it, and nothing is known against it, ... */
bool image_is_usable(const struct images_rank *r, const struct images_image *image);
/* ... and the log reaches back to it, ... */
bool image_is_covered(const struct images_rank *r, const struct images_image *image);
/* ... and its places are known. */
bool image_can_go_on(const struct images_rank *r, const struct images_image *image);
/* Each server that the next one goes to has it: that may refer to it. */
bool image_is_base(const struct images_rank *r, const struct images_image *image);

typedef bool image_test(const struct images_rank *r, const struct images_image *image);

/* NULL, or 0: there is none. */
struct images_image *image_find(struct images_rank *r, uint32_t number);
struct images_image *image_newest(struct images_rank *r, image_test *test);
uint32_t image_newest_number(struct images_rank *r, image_test *test);

/* For a new one: a free entry, or that of the oldest which is of no use, or of the oldest. */
struct images_image *image_place_for(struct images_rank *r);

/* A server has one more; if those were too many, the oldest but one is not there any more. */
void image_look_at_surplus(struct images_rank *r, uint32_t server);

/* What these servers have of it is gone. */
void image_forget_servers(struct images_rank *r, uint32_t servers);

/* Nothing would be left that the rank could be restarted from. */
bool image_is_missing(struct images_rank *r);
/* Its newest image is not where it is to be by now. */
bool image_is_displaced(struct images_rank *r);
/* All up to this number can go: it is before the oldest that may be needed, and before the base of
 * an image that is on its way. */
uint32_t image_to_drop(struct images_rank *r);

/* The servers that have any. */
uint32_t image_all_servers(const struct images_rank *r);

#endif
