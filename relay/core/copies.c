#include "relay/core/copies.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CACHE_LINE 64u

void copies_init(struct owed_copies *copies, struct relay_pool *pool)
{
    *copies = (struct owed_copies){.pool = pool};
}

#ifdef __SSE2__
/* Past the cache: nobody reads the copy soon, and a line that is overwritten whole need not be
 * fetched before. */
static void copy_away(uint8_t *to, const uint8_t *from, uint32_t size)
{
    uint32_t head = (uint32_t)(-(uintptr_t)to % CACHE_LINE);

    if (head > size)
        head = size;
    memcpy(to, from, head);
    for (to += head, from += head, size -= head; size >= CACHE_LINE;
         to += CACHE_LINE, from += CACHE_LINE, size -= CACHE_LINE)
        for (unsigned i = 0; i < CACHE_LINE; i += sizeof(__m128i))
            _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
    memcpy(to, from, size);
}

/* Such stores are not in order with later ones, which may tell another thread of them. */
static void copies_fence(void)
{
    _mm_sfence();
}
#else
static void copy_away(uint8_t *to, const uint8_t *from, uint32_t size)
{
    memcpy(to, from, size);
}

static void copies_fence(void)
{
}
#endif

void copies_owe(struct owed_copies *copies, uint8_t *to, struct relay_block *to_block,
                const uint8_t *from, uint32_t size, struct relay_block *from_block)
{
    if (!from_block || size < COPIES_OWED_MIN) {
        memcpy(to, from, size);
        return;
    }
    while (copies->count == COPIES_MAX ||
           (copies->count > 0 && copies->bytes + size > COPIES_BYTES_MAX))
        copies_pay_some(copies);
    to_block->refs++;
    from_block->refs++;
    copies->ring[(copies->first + copies->count++) % COPIES_MAX] =
        (struct owed_copy){to, from, size, to_block, from_block};
    copies->bytes += size;
}

void copies_pay_some(struct owed_copies *copies)
{
    struct owed_copy *copy = &copies->ring[copies->first % COPIES_MAX];
    uint32_t size = copy->size < COPIES_STEP ? copy->size : COPIES_STEP;

    if (copies->count == 0)
        return;
    copy_away(copy->to, copy->from, size);
    copies_fence();
    copies->bytes -= size;
    copy->to += size;
    copy->from += size;
    copy->size -= size;
    if (copy->size > 0)
        return;
    relay_block_release(copies->pool, copy->to_block);
    relay_block_release(copies->pool, copy->from_block);
    copies->first++;
    copies->count--;
}

void copies_pay_all(struct owed_copies *copies)
{
    while (copies->count > 0)
        copies_pay_some(copies);
}
