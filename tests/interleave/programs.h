/* The small programs whose schedules are all run. */
#ifndef INTERLEAVE_PROGRAMS_H
#define INTERLEAVE_PROGRAMS_H

#include "tests/interleave/explore.h"

/* A file's programs, the memory and the state that they use. */
struct programs {
    const struct program *list;
    unsigned count;
    void *memory;
    size_t size;
    struct state state;
};

extern const struct programs stream_programs;
extern const struct programs block_programs;

#endif
