#include "common/kept.h"

#include <assert.h>
#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void cw_kept_init(struct cw_kept *kept, uint8_t *bytes, size_t size)
{
    *kept = (struct cw_kept){.bytes = bytes, .size = size};
}

size_t cw_kept_room(const struct cw_kept *kept)
{
    return kept->size - (size_t)(kept->end - kept->acked);
}

size_t cw_kept_left(const struct cw_kept *kept)
{
    return (size_t)(kept->end - kept->sent);
}

/* The place of `size` bytes from `position` on, as two vectors, of which the second may be empty.
 */
static void place(const struct cw_kept *kept, uint64_t position, size_t size, struct iovec iov[2])
{
    size_t at = (size_t)(position % kept->size);
    size_t first = smaller(size, kept->size - at);

    iov[0] = (struct iovec){kept->bytes + at, first};
    iov[1] = (struct iovec){kept->bytes, size - first};
}

static void copy_in(struct cw_kept *kept, uint64_t position, const uint8_t *from, size_t size)
{
    struct iovec to[2];

    if (size == 0)
        return;
    place(kept, position, size, to);
    memcpy(to[0].iov_base, from, to[0].iov_len);
    memcpy(to[1].iov_base, from + to[0].iov_len, to[1].iov_len);
}

size_t cw_kept_put(struct cw_kept *kept, const void *from, size_t size)
{
    size = smaller(size, cw_kept_room(kept));
    copy_in(kept, kept->end, from, size);
    kept->end += size;
    return size;
}

int cw_kept_unsent(const struct cw_kept *kept, struct iovec iov[2])
{
    size_t left = cw_kept_left(kept);

    if (left == 0)
        return 0;
    place(kept, kept->sent, left, iov);
    return iov[1].iov_len ? 2 : 1;
}

void cw_kept_sent(struct cw_kept *kept, size_t size)
{
    assert(size <= cw_kept_left(kept));
    kept->sent += size;
}

int cw_kept_acknowledge(struct cw_kept *kept, uint64_t position)
{
    if (position > kept->sent)
        return CW_EPROTO;
    if (position > kept->acked)
        kept->acked = position;
    return CW_OK;
}

int cw_kept_rewind(struct cw_kept *kept, uint64_t position)
{
    if (position < kept->acked || position > kept->sent)
        return CW_EPROTO;
    kept->acked = kept->sent = kept->opened = position;
    return CW_OK;
}

void cw_kept_skip(struct cw_kept *kept, uint64_t size)
{
    assert(kept->acked == kept->end);
    kept->acked = kept->sent = kept->end = kept->end + size;
}

int cw_kept_restore(struct cw_kept *kept, const struct iovec *iov, int count)
{
    uint64_t all = 0;
    uint64_t position;
    size_t room = cw_kept_room(kept);
    size_t dropped;

    assert(kept->acked == kept->sent);
    for (int i = 0; i < count; i++)
        all += iov[i].iov_len;
    dropped = all > kept->sent - kept->opened ? (size_t)(all - (kept->sent - kept->opened)) : 0;
    if (all - dropped > room)
        return CW_ELIMIT;
    kept->acked = position = kept->sent - (all - dropped);
    for (int i = 0; i < count; i++) {
        size_t skipped = smaller(dropped, iov[i].iov_len);

        copy_in(kept, position, (const uint8_t *)iov[i].iov_base + skipped,
                iov[i].iov_len - skipped);
        position += iov[i].iov_len - skipped;
        dropped -= skipped;
    }
    return CW_OK;
}
