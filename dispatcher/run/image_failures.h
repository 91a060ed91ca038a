/* What went wrong with images of ranks: each cause is told once, and of each rank it is known why
 * its last image failed. */
#ifndef DISPATCHER_IMAGE_FAILURES_H
#define DISPATCHER_IMAGE_FAILURES_H

#include "dispatcher/run/telling.h"

#define IMAGE_FAILURES_CAUSES_MAX 8u /* causes that are told on stderr; more are events */

struct image_failures;

/* NULL without memory. */
struct image_failures *image_failures_new(struct telling *telling, uint32_t ranks);
void image_failures_free(struct image_failures *failures);

/* An image was not taken or stored. */
void image_failures_tell(struct image_failures *failures, uint64_t now_ns, uint32_t rank,
                         uint32_t number, const char *why);
/* It is not told: others do so. */
void image_failures_note(struct image_failures *failures, uint32_t rank, const char *why);
/* "": nothing has failed. */
const char *image_failures_why(const struct image_failures *failures, uint32_t rank);

/* There is an image of it. */
void image_failures_stored(struct image_failures *failures, uint32_t rank);

/* The job ends: what fails now is of no interest. Of ranks of which there was no image, and of
 * which nothing was told as their cause was that of others, their numbers are told: a line for each
 * cause. */
void image_failures_end(struct image_failures *failures);

#endif
