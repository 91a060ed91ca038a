/* What is told of images of ranks: on stderr, there each cause of a failure once, and in the events
 * file. */
#ifndef DISPATCHER_IMAGE_WORDS_H
#define DISPATCHER_IMAGE_WORDS_H

#include "common/loop.h"
#include "dispatcher/job/images.h"
#include "dispatcher/run/job_log.h"

#define IMAGE_SLOWED 2u     /* times the time between two images that the user said: that is told */
#define IMAGE_CAUSES_MAX 8u /* causes that are told on stderr; more are events */

struct image_words {
    const struct loop *loop; /* these three are borrowed */
    struct job_log *log;
    const struct images *core;
    uint8_t *told;                     /* of each rank, an enum of the source file; owned */
    uint32_t causes[IMAGE_CAUSES_MAX]; /* hashes of those that were told */
    uint32_t cause_count;
    bool ending;
    bool slowed_told; /* that images cannot come as often as the user said */
};

/* Errors: CW_ENOMEM; image_words_close is to be called also then. */
int image_words_open(struct image_words *words, const struct loop *loop, struct job_log *log,
                     const struct images *core, uint32_t ranks);
void image_words_close(struct image_words *words);

/* An image was not taken or stored. */
void image_words_failed(struct image_words *words, uint32_t rank, uint32_t number, const char *why);
/* One that was is of no use; what comes instead says more. */
void image_words_useless(struct image_words *words, uint32_t rank, uint32_t number,
                         const char *why);
/* There is one that it can go on from. */
void image_words_has_image(struct image_words *words, uint32_t rank);
/* The core has heard of this, the last of the servers that are to have it is this one. */
void image_words_stored(struct image_words *words, const struct cw_stored *stored,
                        const char *server);

/* The job ends. Of ranks of which there was no image, and of which nothing was told as their cause
 * was that of others, the numbers are told: a line for each cause. */
void image_words_end(struct image_words *words);

#endif
