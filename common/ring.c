#include "common/ring.h"

#include "common/copy.h"

#include <assert.h>
#include <string.h>

#define STEP (32u << 10) /* bytes that are copied before the other side may go on with them */
#define MASK (CW_RING_BYTES - 1)
#define LARGE (8u << 10)  /* bytes of a piece that may go past the cache, and be timed */
#define TIMED_EVERY 8     /* one of so many large pieces */
#define RETRIED_EVERY 128 /* ... while they go past the cache */
#define SLOW_MAX 4        /* pieces in a row before they do */
#define SLOW_BYTES 2      /* a tick, or fewer: slow. In one cache it is 5 to 10 here, else 1 */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The most that one copy moves from or to this position. */
static size_t step(uint64_t at, size_t there, size_t wanted)
{
    size_t size = smaller(STEP, smaller(there, wanted));

    return smaller(size, CW_RING_BYTES - (size_t)(at & MASK));
}

/* Goes on by `size` bytes, and shows it. */
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

bool cw_ring_is_apart(const struct cw_ring *ring)
{
    return ring->slow == SLOW_MAX;
}

static void write_timed(struct cw_ring *ring, uint8_t *to, const uint8_t *from, size_t size)
{
    uint64_t before = ring->ticks();

    cw_copy(to, from, size);
    ring->untimed = 0;
    if ((ring->ticks() - before) * SLOW_BYTES < size)
        ring->slow = 0;
    else if (ring->slow < SLOW_MAX)
        ring->slow++;
}

/* In one piece. Where the reader's core has another cache, each line has to be got from there
 * before it can be written: that takes ten times as long as to memory, from where the reader gets
 * it as fast. Where both share a cache, memory is the slower way. The first time around tells
 * nothing: the memory is new then. */
static void write_piece(struct cw_ring *ring, const uint8_t *from, size_t size)
{
    uint8_t *to = ring->bytes + (ring->at & MASK);
    bool apart = cw_ring_is_apart(ring);

    if (!ring->ticks || size < LARGE || ring->at < CW_RING_BYTES) {
        cw_copy(to, from, size);
    } else if (++ring->untimed >= (apart ? RETRIED_EVERY : TIMED_EVERY)) {
        write_timed(ring, to, from, size);
    } else if (apart) {
        cw_copy_away(to, from, size);
        cw_copy_fence();
    } else {
        cw_copy(to, from, size);
    }
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
        write_piece(ring, bytes + done, n);
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
        ring_publish(&ring->shared->taken, &ring->at, n);
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

/* As much as lies in one piece in both rings. Returns how much. */
static size_t pass_step(struct cw_ring *in, struct cw_ring *out, size_t size, uint8_t *away)
{
    size_t n = step(in->at, size, step(out->at, size, size));
    const uint8_t *from = in->bytes + (in->at & MASK);

    if (away)
        cw_copy_both(out->bytes + (out->at & MASK), away, from, n);
    else
        write_piece(out, from, n);
    in->at += n;
    ring_publish(&out->shared->written, &out->at, n);
    return n;
}

void cw_ring_pass(struct cw_ring *in, struct cw_ring *out, size_t size, uint8_t *away)
{
    for (size_t n; out && size > 0; size -= n) {
        n = pass_step(in, out, size, away);
        if (away)
            away += n;
    }
    in->at += size; /* to nobody, if there is no `out` */
    if (away)
        cw_ring_keep(in, size, away, size);
}

void cw_ring_keep(const struct cw_ring *in, size_t back, uint8_t *to, size_t size)
{
    size_t at = (size_t)(in->at - back) & MASK;
    size_t first = smaller(size, CW_RING_BYTES - at);

    assert(size <= back && back <= CW_RING_BYTES);
    cw_copy_away(to, in->bytes + at, first);
    cw_copy_away(to + first, in->bytes, size - first);
    cw_copy_fence();
}

void cw_ring_release(struct cw_ring *in)
{
    ring_publish(&in->shared->taken, &in->at, 0);
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
