#include "common/ring.h"

#include <string.h>

#define STEP (32u << 10) /* bytes that are copied before the other side may go on with them */
#define MASK (CW_RING_BYTES - 1)

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The most that one copy moves from or to this position. */
static size_t step(uint64_t at, uint64_t there, size_t wanted)
{
    size_t size = smaller(STEP, smaller((size_t)there, wanted));

    return smaller(size, CW_RING_BYTES - (size_t)(at & MASK));
}

size_t cw_ring_put(struct cw_ring *ring, const void *from, size_t size)
{
    const uint8_t *bytes = from;
    size_t done = 0;

    while (done < size) {
        uint64_t used = ring->at - atomic_load_explicit(&ring->shared->taken, memory_order_acquire);
        size_t n;

        ring->broken |= used > CW_RING_BYTES;
        if (used >= CW_RING_BYTES)
            break;
        n = step(ring->at, CW_RING_BYTES - used, size - done);
        memcpy(ring->bytes + (ring->at & MASK), bytes + done, n);
        ring->at += n;
        done += n;
        atomic_store_explicit(&ring->shared->written, ring->at, memory_order_release);
    }
    return done;
}

size_t cw_ring_take(struct cw_ring *ring, void *to, size_t size)
{
    uint8_t *bytes = to;
    size_t done = 0;

    while (done < size) {
        uint64_t there =
            atomic_load_explicit(&ring->shared->written, memory_order_acquire) - ring->at;
        size_t n;

        ring->broken |= there > CW_RING_BYTES;
        if (there == 0 || there > CW_RING_BYTES)
            break;
        n = step(ring->at, there, size - done);
        memcpy(bytes + done, ring->bytes + (ring->at & MASK), n);
        ring->at += n;
        done += n;
        atomic_store_explicit(&ring->shared->taken, ring->at, memory_order_release);
    }
    return done;
}

/* Either we see that the other side sleeps, or it sees what we did before: each writes, then reads
 * what the other writes, with a full fence between. */
static bool wakes(_Atomic uint32_t *sleeps)
{
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(sleeps, memory_order_relaxed) &&
           atomic_exchange_explicit(sleeps, 0, memory_order_relaxed);
}

bool cw_ring_wakes_reader(struct cw_ring *ring)
{
    return wakes(&ring->shared->reader_sleeps);
}

bool cw_ring_wakes_writer(struct cw_ring *ring)
{
    return wakes(&ring->shared->writer_sleeps);
}

bool cw_ring_reader_sleeps(struct cw_ring *ring)
{
    atomic_store_explicit(&ring->shared->reader_sleeps, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return !cw_ring_readable(ring);
}

bool cw_ring_writer_sleeps(struct cw_ring *ring)
{
    atomic_store_explicit(&ring->shared->writer_sleeps, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return !cw_ring_writable(ring);
}
