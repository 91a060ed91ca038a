/* When a relay of the job's own that has ended is started again. Pure: times are given. */
#ifndef DISPATCHER_RELAY_RESTARTS_H
#define DISPATCHER_RELAY_RESTARTS_H

#include <stdbool.h>
#include <stdint.h>

#define RELAY_RESTARTS_MAX 16              /* of one relay in a job */
#define RELAY_STEADY_NS 10000000000ull     /* one that ends sooner after its start waits: */
#define RELAY_PAUSE_MIN_NS 50000000ull     /* doubled each time ... */
#define RELAY_PAUSE_MAX_NS 2000000000ull   /* ... up to this */
#define RELAY_RETURN_NS_MAX 10000000000ull /* until it listens again; then it counts as dead */

/* All zero: it was never started again. */
struct relay_restarts {
    uint32_t count;
    uint64_t started_ns; /* the last start of these */
    uint64_t pause_ns;   /* before it */
};

/* The relay has ended. Returns whether it is to be started again, at *at_ns; that start counts. */
bool relay_restarts_next(struct relay_restarts *restarts, uint64_t now_ns, uint64_t *at_ns);

#endif
