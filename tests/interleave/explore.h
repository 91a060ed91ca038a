/* All schedules of a small program, depth first: which actor does its next operation on memory,
 * which store it sees then (model.h), and whether it dies before it. A schedule is run from the
 * start each time, and left where it comes to a past that another one came to. */
#ifndef INTERLEAVE_EXPLORE_H
#define INTERLEAVE_EXPLORE_H

#include "tests/interleave/model.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor {
    void (*run)(void); /* NULL: there is none; run again, from its start, after its death */
    bool mortal;
};

struct program {
    const char *name;
    void (*start)(void); /* makes memory and state as all schedules begin with them */
    struct actor actors[MODEL_THREADS];
    void (*end)(void); /* all actors have ended: looks at what is there */
    unsigned deaths;   /* at most, in one schedule */
    bool times_out;    /* who sleeps goes on when nobody else can */
    bool torn;         /* deaths within what is written by several instructions, too */
    bool slow;
};

/* What a program changes beside the memory. */
struct state {
    void *at;
    size_t size;
};

struct explored {
    uint64_t schedules; /* run */
    uint64_t whole;     /* of these, to the end */
    uint64_t states;    /* that are not the same */
    bool stopped;       /* after the time that it had: not all were run */
    const char *wrong;  /* NULL: all is well */
};

/* Runs them all, in an order that follows from `seed`, but for no more than so many seconds, if
 * that is not 0; prints what happened in one that is wrong, if one is. */
struct explored explore(const struct program *program, void *memory, size_t size,
                        struct state state, uint64_t seed, unsigned seconds);

/* --- for programs ----------------------------------------------------------------------------- */

/* How many times the actor that runs has died; and all of them, in this schedule. */
unsigned explore_lives(void);
unsigned explore_deaths(void);
/* The actor that runs is at a place of its own, and all else that it knows is in the memory and the
 * state. */
void explore_forget(unsigned where);
void explore_check(bool good, const char *what);
/* futex(2), without a time limit; but who waits for one that is dead goes on in the end. */
void explore_sleep(_Atomic uint32_t *futex, uint32_t value);
void explore_wake(_Atomic uint32_t *futex);
/* Accesses that are not atomic, of what is not compiled with hooks.c. */
void explore_access(const void *at, size_t size, bool writes);

/* Called before each access to the memory that no actor does; NULL: nothing is. */
extern void (*explore_meddle)(void *at, size_t size, bool writes);

/* Does one operation when it is scheduled. */
struct model_result explore_do(const struct model_op *op);

#endif
