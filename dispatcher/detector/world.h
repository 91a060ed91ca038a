/* Detectors of a whole group in simulated time: a network that delays and loses messages, processes
 * that crash and that stop for a while. For `causeway model detector`, and for tests. The same
 * seed, the same story. */
#ifndef DISPATCHER_DETECTOR_WORLD_H
#define DISPATCHER_DETECTOR_WORLD_H

#include "dispatcher/detector/detector.h"

struct world_config {
    struct detector_config detector; /* of each process, which gets its own self, seed, heartbeat */
    uint64_t seed;
    uint64_t delay_ns;        /* of each message, at least, ... */
    uint64_t jitter_ns;       /* ... and so much more on average, exponentially distributed */
    uint64_t start_ns;        /* processes start within that time: [FM] figure 5 */
    uint32_t drift_ppm;       /* clocks go wrong by up to so much */
    uint32_t loss_millionths; /* of the messages */
};

/* What the group says. `at_ns`: since the submitter began to start it. */
struct world_watch {
    void *ctx;
    void (*verdict)(void *ctx, uint64_t at_ns, uint32_t by, uint32_t about,
                    enum detector_verdict verdict);
};

struct world_counts {
    uint64_t messages, bytes; /* sent by all */
};

struct world;

/* NULL without memory. */
struct world *world_new(const struct world_config *config, const struct world_watch *watch);
void world_free(struct world *w);

/* From then on the process does nothing. */
void world_crash(struct world *w, uint32_t process, uint64_t at_ns);
/* The process stands still from then to then; messages wait. One stop at a time: it replaces the
 * one before. */
void world_stop(struct world *w, uint32_t process, uint64_t from_ns, uint64_t to_ns);
/* Whether it stands still then. */
bool world_is_stopped(const struct world *w, uint32_t process, uint64_t at_ns);

/* Goes on to that time. False: no memory, or a process sent what another refused. */
bool world_run(struct world *w, uint64_t until_ns);

struct world_counts world_counts(const struct world *w);

#endif
