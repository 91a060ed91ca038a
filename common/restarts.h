/* When a relay that has ended is started again, by whoever keeps its log. Pure: times are given. */
#ifndef CW_RESTARTS_H
#define CW_RESTARTS_H

#include <stdbool.h>
#include <stdint.h>

#define RELAY_RESTARTS_MAX 16              /* in a row, of one relay */
#define RELAY_FORGET_NS 3600000000000ull   /* from a restart to its end: a new row begins */
#define RELAY_STEADY_NS 10000000000ull     /* one that ends sooner after its start waits: */
#define RELAY_PAUSE_MIN_NS 50000000ull     /* doubled each time ... */
#define RELAY_PAUSE_MAX_NS 2000000000ull   /* ... up to this */
#define RELAY_RETURN_NS_MAX 10000000000ull /* until it listens again; then it counts as dead */

/* All zero: it was never started again. */
struct relay_restarts {
    uint32_t count;      /* all restarts of this relay */
    uint32_t in_row;     /* those that count against RELAY_RESTARTS_MAX */
    uint64_t started_ns; /* the last start of these */
    uint64_t pause_ns;   /* before it */
};

/* The relay has ended. Returns whether it is to be started again, at *at_ns; that start counts. */
bool relay_restarts_next(struct relay_restarts *restarts, uint64_t now_ns, uint64_t *at_ns);

#endif
