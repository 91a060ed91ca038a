/* When and how this rank takes images of its process: asked by its dispatcher, at the end of a call
 * for progress, while nothing but what the relay hands over again is half done ([MPICH-V] 3.4).
 * docs/protocol.md, "Points" and "Images". The copying itself is image/image.h. For the thread that
 * calls MPI. */
#ifndef RDEVICE_CHECKPOINT_H
#define RDEVICE_CHECKPOINT_H

#include "rdevice/exchange.h"

struct checkpoint {
    const struct cw_setup *setup; /* borrowed */
    int control_fd, pmi_fd;
    char why_not[CW_TEXT_MAX + 1]; /* no image can be taken; "": one can */
    bool on_its_way;               /* a copy is ... */
    uint32_t servers;              /* ... to these servers, as bits */
    uint32_t looks;                /* since it was looked after */
    uint32_t waiting;              /* the image that was asked for meanwhile; 0: none ... */
    uint64_t waits_since_ns;       /* ... and since when */
};

/* Where the rank is now, for its relay. */
struct cw_point checkpoint_point(const struct exchange *x);

/* The rank has opened its session; or it goes on from an image. */
void checkpoint_begin(struct checkpoint *c, const struct cw_setup *setup, int control_fd,
                      int pmi_fd, const struct exchange *x);

/* An image was asked for, or one is on its way. */
static inline bool checkpoint_is_due(const struct checkpoint *c, const struct exchange *x)
{
    return __builtin_expect(x->asked.number || c->on_its_way, 0);
}

/* To be called then, at the end of a call for progress at which the rank was live. Returns true in
 * a process that goes on from an image: its session, its setup, and all that it had open are gone.
 */
bool checkpoint_turn(struct checkpoint *c, struct exchange *x);

/* No image will be of use any more: gives up one that is on its way. */
void checkpoint_end(struct checkpoint *c);

#endif
