/* The way to the keeper of a copy of a job's state, on another host: what is put there has to be
 * there before others can act on it, so this waits, as for a disk, for a bounded time. */
#ifndef DISPATCHER_STATE_LINK_H
#define DISPATCHER_STATE_LINK_H

#include "common/err.h"
#include "common/marker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state_link {
    int in_fd;  /* to the keeper */
    int out_fd; /* from it */
    uint64_t wait_ns;
    uint64_t asked;       /* number of the last question */
    bool unasked;         /* something was put since */
    struct marker marker; /* until it has greeted */
    bool greeted;
};

/* Takes both descriptors over. `wait_ns`: how long the keeper may take for anything. */
void state_link_open(struct state_link *link, int in_fd, int out_fd, uint64_t wait_ns);
void state_link_close(struct state_link *link);

/* Sends a message (enum state_copy_type). Errors: CW_ETIME, CW_ECLOSED, CW_ESYS: the copy is of no
 * use any more. */
int state_link_put(struct state_link *link, uint32_t type, uint64_t at, const void *bytes,
                   uint32_t size, struct cw_err *err);
/* All that was put is there, once this returns CW_OK. Errors: likewise; CW_EPROTO. */
int state_link_sync(struct state_link *link, struct cw_err *err);

#endif
