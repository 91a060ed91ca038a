/* How a rank waits for its relay: it yields for a bounded time, then it sleeps in poll() for a
 * bounded time. Never without bound: MPICH calls progress also on behalf of other things.
 *
 * wait_policy.h decides; this knows nothing of frames. For the thread that calls MPI. */
#ifndef RDEVICE_WAIT_H
#define RDEVICE_WAIT_H

#include "common/spin.h"
#include "common/wire.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* wait.c's own, but for what the device says of it. */
struct channel;

struct waiter {
    struct channel *channel; /* where it sleeps in place of the wire; NULL: there is none */
    struct cw_wire *wire;    /* borrowed */
    uint32_t ranks;          /* of the job */
    uint64_t spin_ns;        /* yields that long; 0: sleeps at once */
    bool threads;            /* more than one thread calls: the device says so */
    uint64_t sleeps;         /* so far */
    uint64_t syscalls;       /* for waiting, so far */

    struct cw_spin spin;
    uint64_t call;        /* of MPI, the last that asked in vain (calls_made) */
    uint32_t vain;        /* how often it has */
    bool asks;            /* the call before it asked once and returned */
    uint64_t since_ns;    /* when it asked again: it waits */
    uint64_t left_ns;     /* when the program last got away from here; later by as long as the
                             device has worked for it since */
    uint64_t gap_ns;      /* the longest of the last times until it came back; fades */
    bool told_talks;      /* the relay knows that we do not compute */
    uint32_t slow_yields; /* in a row */
    uint64_t moved_ns;    /* when it last moved to another core */
    pthread_t caller;     /* the thread that last waited ... */
    uint64_t others_ns;   /* ... and when it was last another one */
};

/* For a wire that is borrowed as long as the waiter is used. `ranks`: of the job. */
void wait_begin(struct waiter *w, struct cw_wire *wire, uint32_t ranks, uint64_t spin_ns);

/* A call for progress found nothing: yields, or returns true when it is time to sleep. Then the
 * caller sends what is queued and calls wait_sleep(). */
bool wait_idle(struct waiter *w);
void wait_sleep(struct waiter *w);

/* A call for progress found something. */
void wait_ended(struct waiter *w);

/* The program goes on from here: the time until it calls again was spent outside of MPI. */
void wait_left(struct waiter *w);

/* Inside a call that cannot return yet: waits for the wire to be readable, or writable, or either;
 * `since_ns` is when the waiting began. */
void wait_wire(struct waiter *w, bool in, bool out, uint64_t since_ns);

/* Sleeps until `fd` can be read, or something happens at the wire: it is readable, or writable, as
 * asked for, or its connection has ended. Returns whether `fd` can be read; else *ended: whether
 * the connection has, which is told only if the wire is not to be read. */
bool wait_beside(struct waiter *w, int fd, bool in, bool out, bool *ended);

#endif
