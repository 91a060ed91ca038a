/* Random programs, each with its device, as clients of a relay core in memory: what one does is
 * decided by its seed and by all it has seen, and after a crash it is executed again and repeats as
 * a device does. It checks what it can see itself: each message has its own bytes and matches, an
 * event never changes and comes once, in order. */
#ifndef TRACE_RANDOM_PROGRAM_H
#define TRACE_RANDOM_PROGRAM_H

#include "tests/trace/fixture.h"
#include "tests/trace/random_request.h"

#define RANKS 4
#define STEPS 150 /* operations of a program */
#define ITEMS_MAX 512

struct sent {
    uint64_t tag;
    uint64_t total;
    uint32_t dst;
    uint32_t kind;
    uint32_t acknowledged;
};

/* What the relay said and the program has not seen yet; events, and the log's other items. */
struct item {
    uint8_t type; /* of its frame */
    uint32_t req;
    uint32_t flags;
    uint64_t tag;
    uint64_t total;
    uint64_t event;
    uint64_t clock;
    uint64_t reading;
};

/* A program and its device; a crash takes all of it. */
struct process {
    uint64_t random; /* the program's own */
    uint64_t hash;   /* of all it has seen: what it does depends on it */
    uint64_t polls;
    uint64_t acts;
    uint64_t taken;
    uint32_t steps;
    uint32_t polls_left; /* of the operation at hand */
    struct request requests[ITEMS_MAX];
    struct sent sent[ITEMS_MAX];
    uint64_t actives[ITEMS_MAX]; /* tags of active messages that came */
    uint32_t request_count;
    uint32_t sent_count;
    uint32_t active_count;
    uint64_t out;         /* bytes of its last message that are out */
    uint32_t probing;     /* the request that its probe is for, + 1 */
    bool answered;        /* the probe */
    bool receives_probed; /* what the probe took out is to be received */
    struct cw_probed answer;
    uint64_t readings[ITEMS_MAX]; /* not told to the relay yet */
    uint32_t reading_count;
    bool up; /* WELCOME has come */
    bool repeats;
    uint64_t repeat_acts;
    uint64_t missing;
    struct item items[4 * ITEMS_MAX];
    uint32_t item_first;
    uint32_t item_end;
};

struct play {
    struct fixture f;
    struct process processes[RANKS];
    uint64_t witness[RANKS][ITEMS_MAX]; /* of each event */
    uint64_t programs;                  /* the seed of what the programs decide */
    uint64_t seed;                      /* of everything else */
    bool exact;                         /* receives that leave no choice */
    uint64_t failures;
};

extern struct play play;

/* The first one that is false is told. */
void play_check(bool ok, const char *what);
/* From `seed`. */
uint64_t play_below(uint64_t bound);

/* At the program's start, and after a crash. */
void program_begin(uint32_t rank);
/* Of the fixture: what the relay says to a rank, or to the dispatcher. */
void program_on_frame(struct client *c, const struct codec_frame *frame);
/* One thing that the process does next; nothing when it waits for the relay. */
void program_advance(struct client *c);
bool program_is_sending(const struct process *p);

#endif
