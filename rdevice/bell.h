/* What wakes a rank that sleeps in poll(), because it waits for its relay, too: a datagram socket,
 * whose name those of its job on the same machine know. What comes there means no more than that.
 * For the thread that calls MPI. */
#ifndef RDEVICE_BELL_H
#define RDEVICE_BELL_H

#include "common/frame.h"

struct bell {
    int fd; /* -1: there can be none */
    uint8_t job[CW_ID_SIZE];
};

/* Of this incarnation of the rank. Its descriptor has this number, if that is free; -1: any. */
void bell_open(struct bell *bell, const uint8_t job[CW_ID_SIZE], uint32_t rank,
               uint32_t incarnation, int number);

/* Wakes that one, through our own. */
void bell_ring(const struct bell *bell, uint32_t rank, uint32_t incarnation);

/* It rang, and is to ring again. */
void bell_hear(const struct bell *bell);

#endif
