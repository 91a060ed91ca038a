/* A core of images at a time of its own, for the tests of which there are and of when one is due.
 */
#ifndef UNIT_IMAGES_SITE_H
#define UNIT_IMAGES_SITE_H

#include "dispatcher/job/images.h"

#define RANKS 4u
#define S 1000000000ull
#define MIB (1ull << 20)

extern struct images im;
extern struct images_rank im_ranks[64];
extern struct images_order im_order; /* of the last im_next */
extern uint64_t im_now;

/* Without ranks that live; the servers are there, and hold nothing. */
void im_begin(uint32_t count, uint32_t servers, uint64_t every_ns);
void im_all_live(void);
/* All ranks live, and an image of each is due. */
void im_begin_due(uint32_t count, uint32_t servers, uint64_t every_ns);

enum images_action im_next(void);
/* Over several passes, as long as there may be something at once. */
enum images_action im_settle(void);

/* Where an image of this number was taken. */
struct cw_point im_point(uint32_t number);

/* What ranks, servers and relays answer; as images_taken and so on. */
bool im_taken(uint32_t rank, uint32_t number);
bool im_ended(uint32_t rank, uint32_t number, bool stored);
bool im_stored(uint32_t rank, uint32_t number); /* at each server that was asked */
bool im_stored_at(uint32_t server, uint32_t rank, uint32_t number);
uint32_t im_trimmed(uint32_t rank, uint32_t number, bool known);
/* One image of rank 0, all the way until it may be trimmed to. */
void im_one_image(uint32_t number);

/* Requests to a server that it has to do with now, and those that nobody has answered for long. */
uint32_t im_transfers(uint32_t server);
uint32_t im_late(uint32_t server);

/* What the rank would be restarted from; -1: nothing is left. */
int im_choice(uint32_t rank);

#endif
