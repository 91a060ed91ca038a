/* What a rank that repeats itself had from outside since its last send that was the same as before,
 * for words to a person: how much of each kind. Bounded, however much it is. Pure. */
#ifndef RDEVICE_TALLY_H
#define RDEVICE_TALLY_H

#include "common/readings.h"

#include <stddef.h>

#define TALLY_READ_MAX                                                                             \
    (64u << 10) /* bytes of readings that are looked at; of further ones their count is told */
#define TALLY_SENDERS_MAX 4u /* of messages, each with its tag; others are counted together */

/* All zeros to begin with, or but for that send. */
struct tally {
    uint64_t act; /* that send; 0: there is none yet */
    uint64_t poll;
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
    } senders[TALLY_SENDERS_MAX];
};

void tally_message(struct tally *tally, uint64_t tag);
/* Whole readings. */
void tally_readings(struct tally *tally, const uint8_t *bytes, size_t size);

/* Appends "; since act 3 at poll 5, which agreed: 2 clock readings, 1 message from rank 2 with tag
 * 7", or that there is nothing, to a text in `size` bytes; what has no room is left out, with "..."
 * in its place, and where there are fewer than TALLY_TEXT_MIN bytes left all of it. */
#define TALLY_TEXT_MIN 96u
void tally_append(const struct tally *tally, char *text, size_t size);

#endif
