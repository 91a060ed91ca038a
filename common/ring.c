#include "common/ring.h"

#include "common/copy.h"

#include <assert.h>
#include <string.h>

#define STEP (32u << 10) /* bytes that are copied before the other side may go on with them */
#define MASK (CW_RING_BYTES - 1)

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many bytes one copy moves at most, from or to this position. */
static size_t step(uint64_t at, size_t there, size_t wanted)
{
    size_t size = smaller(STEP, smaller(there, wanted));

    return smaller(size, CW_RING_BYTES - (size_t)(at & MASK));
}

/* Moves this side's position by `size` bytes and shows it to the other side. */
static void ring_publish(_Atomic uint64_t *position, uint64_t *at, size_t size)
{
    *at += size;
    atomic_store_explicit(position, *at, memory_order_release);
}

size_t cw_ring_there(struct cw_ring *ring)
{
    uint64_t there = atomic_load_explicit(&ring->shared->written, memory_order_acquire) - ring->at;

    ring->broken |= there > CW_RING_BYTES;
    return ring->broken ? 0 : (size_t)there;
}

size_t cw_ring_room(struct cw_ring *ring)
{
    uint64_t used = ring->at - atomic_load_explicit(&ring->shared->taken, memory_order_acquire);

    ring->broken |= used > CW_RING_BYTES;
    return ring->broken ? 0 : CW_RING_BYTES - (size_t)used;
}

int cw_ring_unread(struct cw_ring *ring, struct iovec iov[2])
{
    size_t room = cw_ring_room(ring);
    size_t size = ring->broken ? 0 : CW_RING_BYTES - room;
    size_t at = (size_t)(ring->at - size) & MASK;
    size_t first = smaller(size, CW_RING_BYTES - at);

    iov[0] = (struct iovec){ring->bytes + at, first};
    iov[1] = (struct iovec){ring->bytes, size - first};
    return (size > 0) + (size > first);
}

size_t cw_ring_put(struct cw_ring *ring, const void *from, size_t size)
{
    const uint8_t *bytes = from;
    size_t done = 0;

    while (done < size) {
        size_t room = cw_ring_room(ring);
        size_t n = step(ring->at, room, size - done);

        if (room == 0)
            break;
        cw_copy(ring->bytes + (ring->at & MASK), bytes + done, n);
        ring_publish(&ring->shared->written, &ring->at, n);
        done += n;
    }
    return done;
}

size_t cw_ring_take(struct cw_ring *ring, void *to, size_t size)
{
    uint8_t *bytes = to;
    size_t done = 0;

    while (done < size) {
        size_t there = cw_ring_there(ring);
        size_t n = step(ring->at, there, size - done);

        if (there == 0)
            break;
        cw_copy(bytes + done, ring->bytes + (ring->at & MASK), n);
        ring->at += n;
        if (!ring->holds)
            cw_ring_release(ring, 0);
        done += n;
    }
    return done;
}

void cw_ring_peek(const struct cw_ring *ring, size_t skip, void *to, size_t size)
{
    size_t at = (size_t)(ring->at + skip) & MASK;
    size_t first = smaller(size, CW_RING_BYTES - at);

    memcpy(to, ring->bytes + at, first);
    memcpy((uint8_t *)to + first, ring->bytes, size - first);
}

/* Passes on as much as lies in one piece in both rings. Returns how much. */
static size_t pass_step(struct cw_ring *in, struct cw_ring *out, size_t size)
{
    size_t n = step(in->at, size, step(out->at, size, size));

    cw_copy(out->bytes + (out->at & MASK), in->bytes + (in->at & MASK), n);
    in->at += n;
    ring_publish(&out->shared->written, &out->at, n);
    return n;
}

void cw_ring_pass(struct cw_ring *in, struct cw_ring *out, size_t size)
{
    while (out && size > 0)
        size -= pass_step(in, out, size);
    in->at += size; /* to nobody, if there is no `out` */
}

void cw_ring_keep(const struct cw_ring *in, size_t back, uint8_t *to, size_t size)
{
    size_t at = (size_t)(in->at - back) & MASK;
    size_t first = smaller(size, CW_RING_BYTES - at);

    assert(size <= back && back <= CW_RING_BYTES);
    cw_copy_away(to, in->bytes + at, first);
    cw_copy_away(to + first, in->bytes, size - first);
}

void cw_ring_release(struct cw_ring *in, size_t held)
{
    atomic_store_explicit(&in->shared->taken, in->at - held, memory_order_release);
}

/* Either this side sees that the other one sleeps, or the other one sees the new position: each
 * side writes, then reads what the other writes, with a full fence between. */
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
