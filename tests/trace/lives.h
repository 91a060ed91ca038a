/* Ranks that do one of everything that a log keeps, and come again: what an incarnation is told is
 * summed up, so that each can be compared with the one before. */
#ifndef TRACE_LIVES_H
#define TRACE_LIVES_H

#include "tests/trace/say.h"

#define LOG_MEMORY (1u << 20)
#define LOG_DISK (64u << 20)
#define LIFE_STEPS 96
#define FIRST_REQ 1000000 /* the numbers of active messages are below */

struct life {
    struct client *c;
    uint32_t rank;
    uint32_t req;
    uint64_t clock;
    uint64_t taken;
    uint64_t digest; /* of what its last incarnation was told */
    bool replayed;   /* it was told so */
};

extern struct fixture f;
extern struct life lives[2]; /* of ranks 1 and 2 */

/* A core whose jobs keep logs of so many bytes. */
void lives_start_with(uint64_t log_memory, uint64_t log_disk);
/* The same, of LOG_MEMORY; with a job of 4 ranks. */
void lives_start(uint64_t log_disk);
/* The same, with one life: it is to be told its log, the first of which is being read. */
void start_waiting(void);

/* One of everything that a log keeps. */
void live_step(struct life *life, uint32_t i);
/* With a message that is here in part, one that waits, and one that was not taken. */
void break_off(struct life *life);
/* LIFE_STEPS of them, and that. */
void live_a_life(struct life *life);
void come_again(struct life *life);
/* That it has repeated all; to be fed. */
void prepare_to_be_live(struct life *life);
void become_live(struct life *life);
/* The last incarnation receives the rest of it. */
void go_on_living(struct life *life);

void feed_rest(struct life *life);
/* Until the disk has nothing left to do. Returns how many requests that were. */
uint32_t lives_work(void);

/* Active messages of 60000 bytes for a rank, and nothing else. */
void send_many(uint32_t rank, uint32_t count);
bool has_received_many(const struct client *c, uint32_t count);

/* What an incarnation is told that comes from a log in memory. */
uint64_t lives_digest_in_memory(void);

#endif
