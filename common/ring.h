/* A stream of bytes from one process to another through memory that both have mapped. Pure: no
 * system call. Neither side trusts what the other process writes there: each keeps its own position
 * in its own memory, and checks the other's position at each use.
 *
 * Thread rule: one writer and one reader, each a thread of any process. */
#ifndef CW_RING_H
#define CW_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifndef CW_RING_BYTES
#define CW_RING_BYTES (1024u << 10) /* a power of two */
#endif
#define CW_RING_LINE 64 /* bytes of a cache line: of one side each */

/* As in the memory; docs/protocol.md, "Rings". All zero: empty. */
struct cw_ring_shared {
    _Alignas(CW_RING_LINE) _Atomic uint64_t written; /* bytes so far, by the writer */
    _Atomic uint32_t writer_sleeps; /* the writer waits for room, and is to be woken */
    _Alignas(CW_RING_LINE) _Atomic uint64_t taken; /* bytes so far, by the reader */
    _Atomic uint32_t reader_sleeps;
    _Atomic uint32_t reader_cpu; /* 1 + the number of the reader's processor; 0: not known */
    _Atomic uint64_t
        reader_waits; /* the reader does nothing but wait for byte number so many, from 1 */
    _Atomic uint32_t reader_talks; /* 1: it needs no core between two waits */
};

/* One side's view of it. */
struct cw_ring {
    struct cw_ring_shared *shared; /* NULL: there is none */
    uint8_t *bytes;                /* CW_RING_BYTES of them */
    uint64_t at;                   /* what this side has written, or taken */
    bool broken;                   /* the other side's position cannot be true */
    bool holds;                    /* what is taken stays there until cw_ring_release */
};

/* Copies up to `size` bytes in; returns how many there was room for. */
size_t cw_ring_put(struct cw_ring *ring, const void *from, size_t size);
/* Copies up to `size` bytes out; returns how many there were. */
size_t cw_ring_take(struct cw_ring *ring, void *to, size_t size);

/* The writer's side: the bytes that the reader has not taken at this moment, as up to 2 vectors
 * into the ring. Returns how many vectors; 0 also when the ring is broken. */
int cw_ring_unread(struct cw_ring *ring, struct iovec iov[2]);

/* How many bytes there are to take, and how many there is room for; 0 when the ring is broken. */
size_t cw_ring_there(struct cw_ring *ring);
size_t cw_ring_room(struct cw_ring *ring);
/* Copies `size` bytes out without taking them: they must be there, `skip` bytes from the first. */
void cw_ring_peek(const struct cw_ring *ring, size_t skip, void *to, size_t size);
/* Passes `size` bytes, which must be there, on into `out`, which must have room for them (NULL:
 * they are dropped). The reader of `in` has taken them then, but the writer of `in` gets their room
 * back only with cw_ring_release. Until then cw_ring_keep can copy them, past the cache, from
 * `back` bytes before the reader's position; nothing else is taken from `in` in between. */
void cw_ring_pass(struct cw_ring *in, struct cw_ring *out, size_t size);
void cw_ring_keep(const struct cw_ring *in, size_t back, uint8_t *to, size_t size);
/* The writer gets the room back of all that was taken, but for the last `held` bytes. */
void cw_ring_release(struct cw_ring *in, size_t held);
/* Until where it has. */
static inline uint64_t cw_ring_released(const struct cw_ring *in)
{
    return atomic_load_explicit(&in->shared->taken, memory_order_relaxed);
}

/* Whether there is something to take. */
static inline bool cw_ring_readable(const struct cw_ring *ring)
{
    return atomic_load_explicit(&ring->shared->written, memory_order_acquire) != ring->at;
}

/* Whether there is room. */
static inline bool cw_ring_writable(const struct cw_ring *ring)
{
    return ring->at - atomic_load_explicit(&ring->shared->taken, memory_order_acquire) !=
           CW_RING_BYTES;
}

/* Whether the caller has to wake the other side, which sleeps until there is something to take, or
 * room. To be asked after each put or take; true once for each sleep. */
bool cw_ring_wakes_reader(struct cw_ring *ring);
bool cw_ring_wakes_writer(struct cw_ring *ring);
/* This side is going to sleep. Returns false when there is no reason to. */
bool cw_ring_reader_sleeps(struct cw_ring *ring);
bool cw_ring_writer_sleeps(struct cw_ring *ring);

#endif
