/* The text after which what a process on a host says counts: the way to it, as the start files of a
 * shell, may print something before. Pure. */
#ifndef CW_MARKER_H
#define CW_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARKER_NOISE_MAX                                                                           \
    (4u << 20)                 /* bytes that a login may print before; they are counted, not kept */
#define MARKER_NOISE_KEPT 160u /* of these, for a message */

struct marker {
    const char *text; /* a line's end, a line without one, a line's end */
    size_t found;     /* bytes of it that have come */
    size_t noise;     /* bytes before it; beyond MARKER_NOISE_MAX it is to be given up */
    char noise_kept[MARKER_NOISE_KEPT];
};

void marker_init(struct marker *marker, const char *text);

/* Returns true when the text has come whole, up to this byte. */
bool marker_take(struct marker *marker, uint8_t byte);

/* What came before it, for a message: printable, on one line, as much as fits. Returns `text`. */
const char *marker_noise(const struct marker *marker, char *text, size_t size);

#endif
