/* What a rank had from outside between two of its sends, for words to a person: how much of each
 * kind. Bounded, however much it is. Pure. */
#ifndef RELAY_INPUTS_H
#define RELAY_INPUTS_H

#include "common/readings.h"

#include <stddef.h>

#define INPUTS_READ_MAX                                                                            \
    (64u << 10) /* bytes of readings that are looked at; of further ones their count is told */
#define INPUTS_SENDERS_MAX 4u /* of messages, each with its tag; others are counted together */

/* All zeros but for the two events to begin with. */
struct log_inputs {
    uint64_t before;   /* the events until this one came before all of these ... */
    uint64_t event;    /* ... and those until this one are, or will be, counted */
    uint64_t messages; /* beside those of `senders` */
    uint64_t active;   /* messages */
    uint64_t done;     /* synchronous sends that were matched, receives that were taken back */
    uint64_t answers;  /* of probes that found a message */
    uint64_t readings[READING_GROUPS];
    uint64_t read;   /* bytes of readings that were looked at ... */
    uint64_t unread; /* ... and that were not, or that are no readings */
    struct {
        uint64_t tag;
        uint64_t messages; /* 0: nobody */
    } senders[INPUTS_SENDERS_MAX];
};

/* Those that follow are counted anew. */
void inputs_begin(struct log_inputs *inputs);

void inputs_add_message(struct log_inputs *inputs, uint64_t tag);
/* A READINGS frame. */
void inputs_add_readings(struct log_inputs *inputs, const uint8_t *bytes, size_t size);

/* "2 clock readings, 1 message from rank 2 with tag 7", or that there is nothing; what has no room
 * is left out, with "..." in its place. Size: at least INPUTS_TEXT_MIN. */
#define INPUTS_TEXT_MIN 16u
void inputs_describe(const struct log_inputs *inputs, char *to, size_t size);

#endif
