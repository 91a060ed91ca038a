/* One end of a striped tunnel: the bytes of a socket are cut into chunks (stripe_cut.h) for several
 * connections, and the chunks that come are put in order (stripe_order.h). Both ends are alike. One
 * thread. */
#ifndef TUNNELS_STRIPES_H
#define TUNNELS_STRIPES_H

#include "tunnels/stripe_cut.h"
#include "tunnels/stripe_order.h"

#define STRIPE_BUFFER_BYTES (4u * STRIPE_CHUNK_BYTES_MAX) /* that came over a connection */
#define STRIPE_TURN_CHUNKS_MAX 16u /* that are sent before it is looked what came */
#define STRIPE_SIGN_MS 10000u /* between two signs of life of the near end, on each connection */
#define STRIPE_SIGNS_MAX 6u   /* of these may fail to come over a connection that is read */
#define STRIPE_JOINED '+' /* of a connection that opens: its first byte, no part of the chunks */

struct stripe {
    int in, out;     /* non-blocking; -1: there is none */
    bool opening;    /* STRIPE_JOINED has not come */
    bool deaf;       /* nobody reads there any more */
    bool ahead;      /* its next chunk has to wait */
    bool ending;     /* the end is on its way, or there */
    uint32_t silent; /* how often a sign of life was looked for in vain */
    uint8_t *came;   /* STRIPE_BUFFER_BYTES, of which `end` were not taken */
    size_t end;
    struct stripe_arrived arrived;
    uint8_t *going; /* a chunk */
    uint32_t at, size;
};

struct stripes {
    struct stripe of[STRIPES_MAX];
    uint32_t count;
    bool is_far; /* it hears signs of life; else it gives them */
    int in, out; /* the user's, non-blocking; may be the same */
    bool in_over, out_over;
    bool moved;       /* in this turn */
    bool waited;      /* a chunk had no room */
    bool left;        /* the user, who had said all */
    uint32_t sign_ms; /* STRIPE_SIGN_MS */
    uint64_t sign_ns; /* when the next one is due */
    uint8_t chunk[STRIPE_CHUNK_BYTES_MAX];
    struct stripe_cut cut;
    struct stripe_order order;
};

/* What else is waited for; `fd` -1: nothing. `enter` may add connections. */
struct stripes_door {
    int fd;
    void (*enter)(struct stripes_door *door, struct stripes *stripes);
    void *ctx;
};

void stripes_init(struct stripes *stripes, bool is_far, int in, int out);
/* Frees what it has; the descriptors stay open. */
void stripes_fini(struct stripes *stripes);

/* A connection, whose descriptors become non-blocking. Errors: CW_ELIMIT, CW_ENOMEM. */
int stripes_add(struct stripes *stripes, int in, int out, bool opening, struct cw_err *err);

/* Carries bytes until both directions have ended, or an end has gone. Errors: CW_ECLOSED: a
 * connection broke, or the near end gives no sign of life; CW_EPROTO, CW_ENOMEM, CW_ESYS. */
int stripes_run(struct stripes *stripes, struct stripes_door *door, struct cw_err *err);

#endif
