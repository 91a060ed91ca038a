/* A job core of a few ranks, for the tests of how jobs end, of restarts and of hosts. */
#ifndef UNIT_JOB_FIXTURE_H
#define UNIT_JOB_FIXTURE_H

#include "dispatcher/job/job.h"

#define RANKS 3
#define SLOTS 5
#define NOW 5000000000ull
#define TIMEOUT 10000000000ull
#define LOST "was on host b, which gave no sign of life for 10 s"
#define PERIOD 500000000ull
#define EXITED(code) ((code) << 8) /* as waitpid(2) tells it */
#define KILLED(signal) (signal)

extern struct job job;
extern struct job_rank ranks[RANKS];
extern struct job_slot slots[SLOTS];
extern struct job_order order; /* of the last job_next */

void make_with(const struct job_config *config);

/* On the first `count` of these slots, SLOTS of them; `rank_slot` as of job_place. */
void make_on(const struct job_config *config, const struct job_slot *made_of, uint32_t count,
             const uint32_t *rank_slot);

/* Without recovery. */
void make(uint32_t count);

/* The next thing to be done; that a rank is down is let pass. */
enum job_action next_at(uint64_t now_ns);

/* Of the process of the rank that runs; of a host, whose text is LOST. */
void process_is(enum life_what what, uint32_t rank, const char *text, uint64_t now_ns);
void host_is(enum life_what what, uint32_t host, uint64_t now_ns);

void start_all(uint32_t count);

/* make and start_all */
void start(uint32_t count);
void run_well(uint32_t rank);
void ends(int exit_code, const char *reason);

/* The ranks that run are to be told `signal`, once. */
void signals(int signal);

#endif
