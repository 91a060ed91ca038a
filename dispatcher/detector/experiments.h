/* What [FM] and [P2P] measured of detectors, and more, measured of ours in simulated time. */
#ifndef DISPATCHER_DETECTOR_EXPERIMENTS_H
#define DISPATCHER_DETECTOR_EXPERIMENTS_H

#include "dispatcher/detector/world.h"

#define EXPERIMENT_GOSSIP_NS 500000000ull /* [FM] 6: "with Tgossip set to 0.5 second" */

/* A protocol, as the experiments compare them. */
struct experiment_protocol {
    const char *name;
    enum detector_kind kind;
    uint32_t health_max;
};
#define EXPERIMENT_PROTOCOLS 6
extern const struct experiment_protocol experiment_protocols[EXPERIMENT_PROTOCOLS];

/* --- [FM] figure 6, [P2P] figure 13 --- */

/* From the crash of a process until the others know it. */
struct experiment_times {
    double mean_s, least_s, most_s;
    uint64_t missed; /* a process that had not found out after two minutes */
    uint64_t wrong;  /* verdicts about others */
};

/* Of n processes one crashes after about 20 s, `trials` times. Errors: CW_ENOMEM. */
int experiment_detection(struct experiment_times *times, const struct experiment_protocol *protocol,
                         uint32_t n, uint32_t trials, uint64_t seed, struct cw_err *err);

/* --- bytes --- */

/* Bytes that a process sends in a second, in messages without their carrier's headers, when nothing
 * fails; delays have `jitter_ns` on average above 1 ms. */
int experiment_bytes(double *bytes, const struct experiment_protocol *protocol, uint32_t n,
                     uint64_t jitter_ns, uint64_t seed, struct cw_err *err);

/* Likewise, of heartbeats, where all processes are in step and no delay varies: then the message
 * that one sends to distance d is that which it gets from distance d behind it, and one process
 * stands for all. */
int experiment_bytes_in_step(double *bytes, const struct experiment_protocol *protocol, uint32_t n,
                             struct cw_err *err);

/* --- false suspicions --- */

struct experiment_trouble {
    const char *name;
    uint64_t jitter_ns;       /* of delays, on average */
    uint32_t loss_millionths; /* of messages */
    uint64_t stop_ns;         /* processes stop for that time, ... */
    uint64_t stop_every_ns;   /* ... so often each on average, ... */
    uint32_t stopping;        /* ... one in so many of them */
};
#define EXPERIMENT_TROUBLES 8
extern const struct experiment_trouble experiment_troubles[EXPERIMENT_TROUBLES];

/* Verdicts that a process has failed, while all live. */
struct experiment_suspicions {
    uint64_t running; /* about one that runs */
    uint64_t stopped; /* about one that stands still at that moment */
};

/* Of 64 processes in two minutes, `trials` times. Errors: CW_ENOMEM. */
int experiment_suspicions(struct experiment_suspicions *s,
                          const struct experiment_protocol *protocol,
                          const struct experiment_trouble *trouble, uint32_t trials, uint64_t seed,
                          struct cw_err *err);

#endif
