/* The gates of a job whose relays' logs have copies (dispatcher/wire/gate.h), one for each relay:
 * tokens go out as COVER, and come back as COVERED. */
#ifndef DISPATCHER_GATES_H
#define DISPATCHER_GATES_H

#include "common/err.h"
#include "dispatcher/wire/gate.h"

struct gates;
struct parts;

/* NULL with *err set: CW_ENOMEM. To be freed when no rank's process is known any more. */
struct gates *gates_new(struct parts *parts, struct cw_err *err);

/* That of each rank, which is its relay's; borrowed. */
struct gate *const *gates_of_ranks(const struct gates *gates);

/* In what follows `gates` may be NULL: nothing waits. */
void gates_free(struct gates *gates);
/* The relay has sent this token back. */
void gates_covered(struct gates *gates, uint32_t relay, uint64_t token);
/* The relay goes on elsewhere: what was sent to it may never be answered. */
void gates_again(struct gates *gates, uint32_t relay);
/* No rank is started again, so nobody will say anything else than what was said: it passes, and
 * what comes passes at once. It can be read from now on; gates_pass, which is called by itself
 * later, tells who is to hear of it. */
void gates_open(struct gates *gates);
void gates_pass(struct gates *gates);

#endif
