/* Listeners of a program, in its loop: each connection that comes is told. */
#ifndef CW_LISTEN_H
#define CW_LISTEN_H

#include "common/loop.h"
#include "common/transport.h"

#include <stdbool.h>

#define LISTENERS_MAX 32u            /* of a program */
#define LISTEN_PAUSE_NS 100000000ull /* where no connection can be accepted */
#define LISTEN_ACCEPTS_MAX 64        /* in one turn of the loop, at one place */

struct listener {
    struct listeners *of;
    struct cw_address address;
    struct loop_watch watch;
};

struct listeners {
    struct loop *loop;
    struct listener at[LISTENERS_MAX];
    uint32_t count; /* how many listen */
    struct loop_timer resume;
    bool paused;
    /* The descriptor is the callee's. */
    void (*came)(void *ctx, uint32_t number, int fd);
    void *ctx;
};

void listeners_init(struct listeners *listeners, struct loop *loop,
                    void (*came)(void *ctx, uint32_t number, int fd), void *ctx);

/* One more, which has the number `count` had. Errors: those of cw_listen. */
int listeners_add(struct listeners *listeners, const struct cw_address *address,
                  struct cw_err *err);

/* Who comes waits in the kernel for so long; LOOP_NEVER: until listeners_pause(.., 0). */
void listeners_pause(struct listeners *listeners, uint64_t ns);

/* Leaves no socket. Also of some that are all zero. */
void listeners_close(struct listeners *listeners);

#endif
