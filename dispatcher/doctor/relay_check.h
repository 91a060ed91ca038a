/* Whether a relay runs at an address, and takes a key. Blocks, with a bound on each wait. */
#ifndef DISPATCHER_RELAY_CHECK_H
#define DISPATCHER_RELAY_CHECK_H

#include "common/cred.h"

enum relay_found {
    RELAY_NO_WAY,  /* the way there fails: a gateway, a login, forwarding, ... */
    RELAY_OFF,     /* nobody listens there, as the last gateway says */
    RELAY_OTHER,   /* somebody does, who is no relay of ours, or has another key */
    RELAY_LISTENS, /* somebody does; without a key nothing more is known */
    RELAY_TAKES    /* the relay took the key, and has shown that it has it, too */
};

/* Connects within `time_ms`, and opens a job of one rank, which ends at once. `key`: of the relay;
 * NULL: it is not known. Except with the last two, *err says why. */
enum relay_found relay_check(const char *address, uint32_t time_ms, const uint8_t *key,
                             struct cw_err *err);

#endif
