/* What clients of the fixture say to the relay: one frame, one step. */
#ifndef TRACE_SAY_H
#define TRACE_SAY_H

#include "tests/trace/fixture.h"

void say_send(struct client *c, uint32_t dst, uint64_t tag, const char *text);
void say_send_kind(struct client *c, uint32_t kind, uint32_t dst, uint32_t req, uint64_t tag,
                   const char *text);
/* The first `size` bytes of a message of `total`, filled with the pattern of its tag. */
void say_begin(struct client *c, uint32_t kind, uint32_t dst, uint64_t tag, uint64_t total,
               size_t size);
/* More of it: `size` bytes from `from` on. */
void say_more(struct client *c, uint64_t tag, uint64_t from, size_t size);
void say_recv(struct client *c, uint32_t req, uint64_t tag);
void say_recv_mask(struct client *c, uint32_t req, uint64_t tag, uint64_t mask, uint64_t capacity);
void say_cancel(struct client *c, uint32_t req, uint64_t tag, uint64_t mask);
void say_mrecv(struct client *c, uint32_t req, uint32_t msg, uint64_t capacity);
void say_probe(struct client *c, uint64_t tag, uint64_t mask, bool take);
void say_room(struct client *c, uint64_t bytes);
void say_bye(struct client *c);
void say_taken(struct client *c, uint64_t event, uint64_t clock);
void say_readings(struct client *c, const char *text);
void say_live(struct client *c, uint64_t event, uint64_t clock);
/* An image is taken now. */
void say_point(struct client *c, const struct cw_point *point);
/* The dispatcher wants an image of this rank; knows that the image of this point is safe. */
void say_checkpoint(struct fixture *f, uint32_t rank, uint32_t number, uint32_t base);
void say_trim(struct fixture *f, uint32_t rank, const struct cw_point *point);
void say_unlogged(struct client *c, uint32_t why);
void say_frame(struct client *c, uint8_t type, const void *body, size_t size);

#endif
