/* Bounded reader and writer. All code that parses or builds frames uses them.
 * Integers are little-endian. A read past the end sets `bad` and returns zeros; a write past the
 * end sets `bad` and writes nothing. So a parser needs one check, at its end (cw_reader_end).
 * Neither owns its memory. */
#ifndef CW_BUF_H
#define CW_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cw_reader {
    const uint8_t *at;
    size_t left;
    bool bad;
};

struct cw_writer {
    uint8_t *start;
    size_t used;
    size_t size;
    bool bad;
};

static inline struct cw_reader cw_reader(const void *bytes, size_t size)
{
    return (struct cw_reader){.at = bytes, .left = size};
}

/* Copies `size` bytes to `to`; zeros if fewer are left. */
static inline void cw_get_copy(struct cw_reader *r, void *to, size_t size)
{
    if (r->left < size) {
        r->bad = true;
        memset(to, 0, size);
        return;
    }
    memcpy(to, r->at, size);
    r->at += size;
    r->left -= size;
}

static inline uint8_t cw_get_u8(struct cw_reader *r)
{
    uint8_t v;

    cw_get_copy(r, &v, sizeof(v));
    return v;
}

static inline uint16_t cw_get_u16(struct cw_reader *r)
{
    uint16_t v;

    cw_get_copy(r, &v, sizeof(v));
    return v;
}

static inline uint32_t cw_get_u32(struct cw_reader *r)
{
    uint32_t v;

    cw_get_copy(r, &v, sizeof(v));
    return v;
}

static inline uint64_t cw_get_u64(struct cw_reader *r)
{
    uint64_t v;

    cw_get_copy(r, &v, sizeof(v));
    return v;
}

/* Returns a pointer to the next `size` bytes, without a copy; NULL if fewer are left. */
static inline const uint8_t *cw_get_bytes(struct cw_reader *r, size_t size)
{
    const uint8_t *at = r->at;

    if (r->left < size) {
        r->bad = true;
        return NULL;
    }
    r->at += size;
    r->left -= size;
    return at;
}

/* Returns true if no read went past the end and no bytes are left. */
static inline bool cw_reader_end(const struct cw_reader *r)
{
    return !r->bad && r->left == 0;
}

static inline struct cw_writer cw_writer(void *bytes, size_t size)
{
    return (struct cw_writer){.start = bytes, .size = size};
}

static inline void cw_put_bytes(struct cw_writer *w, const void *bytes, size_t size)
{
    if (w->size - w->used < size) {
        w->bad = true;
        return;
    }
    if (size)
        memcpy(w->start + w->used, bytes, size);
    w->used += size;
}

static inline void cw_put_u8(struct cw_writer *w, uint8_t v)
{
    cw_put_bytes(w, &v, sizeof(v));
}

static inline void cw_put_u16(struct cw_writer *w, uint16_t v)
{
    cw_put_bytes(w, &v, sizeof(v));
}

static inline void cw_put_u32(struct cw_writer *w, uint32_t v)
{
    cw_put_bytes(w, &v, sizeof(v));
}

static inline void cw_put_u64(struct cw_writer *w, uint64_t v)
{
    cw_put_bytes(w, &v, sizeof(v));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian");

#endif
