/* Something that has happened to this rank: a request has completed, or an active message has come.
 * It waits to be taken at a call for progress. */
#ifndef RDEVICE_EVENT_H
#define RDEVICE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct event {
    struct event *next;
    uint64_t number; /* given by the relay; 0: of an active message to this rank itself */
    bool active;     /* part of a struct am, else of a struct request */
};

#endif
