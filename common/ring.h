/* A stream of bytes from one process to another through memory that both have mapped. Pure: no
 * system call. Nothing that the other process writes there is trusted: each side keeps its own
 * position to itself, and checks the other's each time.
 *
 * Thread rule: one writer and one reader, each a thread of any process. */
#ifndef CW_RING_H
#define CW_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CW_RING_BYTES (1024u << 10) /* a power of two */
#define CW_RING_LINE 64             /* bytes of a cache line: of one side each */

/* As in the memory; docs/protocol.md, "Rings". All zero: empty. */
struct cw_ring_shared {
    _Alignas(CW_RING_LINE) _Atomic uint64_t written; /* bytes so far, by the writer */
    _Atomic uint32_t writer_sleeps; /* the writer waits for room, and wants to be woken */
    _Alignas(CW_RING_LINE) _Atomic uint64_t taken; /* bytes so far, by the reader */
    _Atomic uint32_t reader_sleeps;
};

/* One side's view of it. */
struct cw_ring {
    struct cw_ring_shared *shared; /* NULL: there is none */
    uint8_t *bytes;                /* CW_RING_BYTES of them */
    uint64_t at;                   /* what this side has written, or taken */
    bool broken;                   /* the other side's position makes no sense */
    /* Of the writer: */
    uint64_t (*ticks)(void); /* about the processor's cycles; NULL: no piece is timed */
    uint32_t untimed;        /* large pieces since one was */
    uint32_t slow;           /* the last so many of those timed took long */
};

/* Large pieces go past the cache: the two sides' cores do not seem to share one. */
bool cw_ring_is_apart(const struct cw_ring *ring);

/* Copies up to `size` bytes in; returns how many there was room for. */
size_t cw_ring_put(struct cw_ring *ring, const void *from, size_t size);
/* Copies up to `size` bytes out; returns how many there were. */
size_t cw_ring_take(struct cw_ring *ring, void *to, size_t size);

/* How many bytes there are to take, and how many there is room for; 0 when the ring is broken. */
size_t cw_ring_there(struct cw_ring *ring);
size_t cw_ring_room(struct cw_ring *ring);
/* Copies `size` bytes out without taking them: they must be there, `skip` bytes from the first. */
void cw_ring_peek(const struct cw_ring *ring, size_t skip, void *to, size_t size);
/* Passes `size` bytes, which must be there, on into `out`, which must have room for them (NULL:
 * nowhere), and at the same time to `away`, past the cache (NULL: nowhere). For the reader of `in`
 * they are taken, but its writer gets their room back only with cw_ring_release: until then they
 * can be copied again by cw_ring_keep, `back` bytes from where the reader is now, past the cache.
 * Nothing else is taken from `in` meanwhile. */
void cw_ring_pass(struct cw_ring *in, struct cw_ring *out, size_t size, uint8_t *away);
void cw_ring_keep(const struct cw_ring *in, size_t back, uint8_t *to, size_t size);
void cw_ring_release(struct cw_ring *in);

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

/* Whether the other side sleeps until there is something to take, or room; to be asked after each
 * put or take, and true once for each sleep: then it is to be woken. */
bool cw_ring_wakes_reader(struct cw_ring *ring);
bool cw_ring_wakes_writer(struct cw_ring *ring);
/* This side is going to sleep. Returns false when there is no reason to. */
bool cw_ring_reader_sleeps(struct cw_ring *ring);
bool cw_ring_writer_sleeps(struct cw_ring *ring);

#endif
