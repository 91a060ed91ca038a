#include "rdevice/contents.h"
#include "common/setup.h"

#include <string.h>
#include <sys/single_threaded.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* 64 KiB by rings take 8 us; to hash them takes 4.3 us, samples of them 0.09 us. */
#define SAMPLE_BYTES 64u
#define SAMPLES (CONTENTS_WHOLE_MAX / SAMPLE_BYTES)
#define CONTENTS_WHOLE_MAX 1024u /* bytes of a piece; of a larger one samples are hashed */

void contents_begin(struct contents *c, uint32_t flags)
{
    c->none = flags & CW_SETUP_CONTENTS_NONE;
    c->all = flags & CW_SETUP_CONTENTS_ALL;
    c->end = flags & CW_SETUP_CONTENTS_END;
}

/* The first bytes, the last ones, and some at equal distances between. */
static uint64_t hash_samples(const uint8_t *bytes, size_t size, uint64_t seed)
{
    uint8_t samples[CONTENTS_WHOLE_MAX];
    size_t step = (size - SAMPLE_BYTES) / (SAMPLES - 1);

    for (size_t i = 0; i + 1 < SAMPLES; i++)
        memcpy(samples + i * SAMPLE_BYTES, bytes + i * step, SAMPLE_BYTES);
    memcpy(samples + CONTENTS_WHOLE_MAX - SAMPLE_BYTES, bytes + size - SAMPLE_BYTES, SAMPLE_BYTES);
    return XXH3_64bits_withSeed(samples, sizeof(samples), seed);
}

static uint64_t hash(const struct contents *c, const uint8_t *bytes, size_t size, uint64_t seed)
{
    return c->all || size <= CONTENTS_WHOLE_MAX ? XXH3_64bits_withSeed(bytes, size, seed)
                                                : hash_samples(bytes, size, seed);
}

uint64_t contents_of(struct contents *c, const struct iovec *pieces, int count, uint64_t header)
{
    uint64_t value = c->rest;
    bool any = false;

    if (c->none || header == CONTENTS_UNLIKE)
        return 0;
    for (int i = 0; i < count; i++) {
        size_t skip = header < pieces[i].iov_len ? header : pieces[i].iov_len;
        size_t size = pieces[i].iov_len - skip;

        header -= skip;
        if (size > 0)
            value = hash(c, (const uint8_t *)pieces[i].iov_base + skip, size, value);
        any |= size > 0;
    }
    if (!any)
        return 0;
    c->rest = 0;
    return value ? value : 1;
}

void contents_more(struct contents *c, const void *bytes, size_t size)
{
    if (!c->none)
        c->rest = hash(c, bytes, size, c->rest);
}

bool contents_are_borne(struct contents *c)
{
    c->threads |= !__libc_single_threaded;
    return c->threads || !c->end;
}
