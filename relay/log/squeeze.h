/* Segments that are made smaller for the disk, by LZ4, when it is the disk that all wait for: what
 * is written in less time makes room sooner. While the disk keeps up, nothing is; and where little
 * is gained, it is tried ever more rarely. Pure. */
#ifndef RELAY_SQUEEZE_H
#define RELAY_SQUEEZE_H

#include <stdbool.h>
#include <stdint.h>

#define SQUEEZE_GAIN_SHARE 8  /* one part in so many has to be gained */
#define SQUEEZE_PAUSE_MAX 64u /* segments that are not tried after others gained nothing */

/* All zero at first. */
struct squeeze {
    uint32_t pause; /* so many are not tried the next time that nothing is gained ... */
    uint32_t left;  /* ... and so many now */
};

/* Makes `size` bytes smaller, to `to`, which has room for as many. Returns how many they are then;
 * 0: they stay as they are. */
uint32_t squeeze_try(struct squeeze *squeeze, const uint8_t *from, uint32_t size, uint8_t *to);
/* The reverse; false: the `stored` bytes, which are hostile, are not `size` bytes. */
bool squeeze_undo(const uint8_t *from, uint32_t stored, uint8_t *to, uint32_t size);

#endif
