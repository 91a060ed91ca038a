/* What all fuzzers have: an invariant that is broken ends the process. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool holds)
{
    if (!holds)
        abort();
}

/* A text of a stranger that is kept: it ends within `max` bytes, and may go to a terminal. */
static inline void must_be_printable(const char *text, size_t max)
{
    size_t size = strnlen(text, max + 1);

    must(size <= max);
    for (size_t i = 0; i < size; i++)
        must(text[i] >= ' ' && text[i] <= '~');
}

#endif
