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

/* No schedules: what others write is changed at random, at any moment. NULL, or what is wrong. */
#define HOSTILE_NAME "others write anything anywhere"
const char *hostile_run(void);

#endif
