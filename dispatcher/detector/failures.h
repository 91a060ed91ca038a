/* How likely it is that a routing of heartbeats does not outlive failures of processes: [FM]
 * section 5.2 and figure 4, [P2P] (Genaud and Rattanapoka, "A Peer-to-Peer Framework for Message
 * Passing Parallel Programs", 2009) section 5.2 and figure 12. Pure. */
#ifndef DISPATCHER_DETECTOR_FAILURES_H
#define DISPATCHER_DETECTOR_FAILURES_H

#include "dispatcher/detector/routing.h"

#define FAILURES_PROCESSES_MAX 1024u
#define FAILURES_EXACT_MAX 20u /* processes of which all subsets are counted */

struct failures {
    /* A process that lives hears nobody: all that send to it have failed; or none lives. As [FM]
     * 5.2 counts for four processes. */
    double deaf;
    /* The graph of those that live is not connected: the heartbeat of one never reaches another. As
     * [FM] 5.3 simulates. */
    double parted;
    bool exact; /* all subsets were counted; else so many were drawn: */
    uint64_t trials;
};

/* `kind`: one with lanes. `n`: 2 to FAILURES_PROCESSES_MAX. Each process fails with probability f.
 */
struct failures failures_count(enum routing_kind kind, uint32_t n, double f, uint64_t trials,
                               uint64_t seed);

/* Bounds of `deaf` (Bonferroni): the first is not above it, the second not below. */
void failures_bounds(enum routing_kind kind, uint32_t n, double f, double bounds[2]);

/* An application of p processes with r copies of each crashes. */
double failures_of_application(uint32_t p, uint32_t r, double f);

#endif
