/* Bounds of the relay's core that its users see. */
#ifndef RELAY_BOUNDS_H
#define RELAY_BOUNDS_H

#include "common/frame.h"

#define RELAY_JOBS_MAX 256
#define RELAY_MEMORY_MIN (16ull << 20) /* a smaller memory_max leaves no room for a job */
#define RELAY_TICK_MS 1000             /* between two calls of relay_core_tick ... */
#define RELAY_TICK_SUSPENDED_MS 20     /* ... while a session is suspended */
#ifndef RELAY_REPLAY_AHEAD
#define RELAY_REPLAY_AHEAD                                                                         \
    (256u << 10) /* bytes of a log queued at once for a rank that replays                          \
                  */
#endif
#define RELAY_CUT_MIN (8u << 10) /* bytes: fewer are not worth a frame of their own */
#define RELAY_CUT_HEADER (CW_FRAME_HEADER + CW_ARRIVAL_SIZE)
#define RELAY_CUT_BACKLOG_MAX                                                                      \
    (8u << 20) /* bytes under way to a slow receiver before its sender waits */
#define RELAY_CUT_WAIT_NS                                                                          \
    50000000ull /* ... and how long the sender waits before its bytes are stored instead */

#ifndef RELAY_OFFER_MIN
#define RELAY_OFFER_MIN                                                                            \
    (64ull << 10) /* bytes of a message that a rank which is its own mailbox is offered */
#endif

#define RELAY_GROWN_SHARE 4u          /* the logs of a job grow by one part in so many ... */
#define RELAY_GROWN_MIN (1ull << 20)  /* ... of their memory, each by its part of it, ... */
#define RELAY_GROWN_MAX (64ull << 20) /* ... between GROWN of a rank and the next */
#define RELAY_TRIM_WAIT_NS                                                                         \
    10000000000ull /* that ranks wait for an image, where logs have no room */

#endif
