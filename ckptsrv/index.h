/* The index of an image: its stream without the bytes of its blocks, and where these are. No I/O.
 * docs/checkpoint-store.md. */
#ifndef CKPTSRV_INDEX_H
#define CKPTSRV_INDEX_H

#include "common/frame.h"
#include "common/image.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define INDEX_MAGIC 0x3158444959415743ull /* "CWAYIDX1" */
#define INDEX_VERSION 1u
#define INDEX_BYTES_MAX (1ull << 30) /* of one index: an image of more than 1 TiB */

/* At the beginning of the file. */
struct index_header {
    uint64_t magic;
    uint32_t version;
    uint32_t size;   /* of this struct */
    uint64_t body;   /* bytes that follow */
    uint64_t stream; /* bytes of the whole stream */
    uint64_t stored; /* bytes that were new on disk */
    struct cw_image_hash body_hash;
    uint64_t hash; /* XXH3-64 of all before */
};

/* What an index is of. */
struct index_summary {
    uint8_t job[CW_ID_SIZE];
    uint32_t ranks;
    struct cw_stored image;
    uint64_t stream; /* bytes of the whole stream */
    uint64_t end;    /* of the last block in the file of blocks, whole units */
    uint64_t taken_ns;
    uint64_t blocks;
    uint64_t regions;
    char program[CW_IMAGE_PATH_MAX];
};

/* One record. */
struct index_entry {
    struct cw_image_record record; /* as in the stream: never SAME */
    const uint8_t *body;           /* of a block: its struct cw_image_block; not aligned */
    struct cw_image_block block;   /* of a block */
    uint64_t place;                /* of DATA and LZ4: offset in the file of blocks */
    uint64_t bytes;                /* of DATA and LZ4: there */
};

/* A stream, or an index, one record after the other: whether they are in order, and belong
 * together. All zero at first. */
struct index_order {
    bool begun;
    struct cw_image_order order;
    XXH3_state_t hash;
};

/* `body`: as of index_add. Errors: NULL is none, or what is wrong. */
const char *index_order_take(struct index_order *order, const struct cw_image_record *record,
                             const uint8_t *body);

/* --- making one ----------------------------------------------------------------------------------
 */

/* All zero at first. */
struct index_maker {
    uint8_t *bytes;
    size_t used, size;
    uint64_t stream;
};

/* Adds a record: `body` is the whole of HEADER, REGION and END, and the struct cw_image_block of
 * others. Errors: false: no memory, or INDEX_BYTES_MAX. */
bool index_add(struct index_maker *maker, const struct cw_image_record *record, const void *body,
               uint64_t place);
/* The file is maker->bytes, maker->used. */
void index_finish(struct index_maker *maker, uint64_t stored);
void index_clear(struct index_maker *maker);

/* --- reading one ---------------------------------------------------------------------------------
 */

/* Whether another version of Causeway has written it: what it needs is not known then. */
bool index_is_foreign(const uint8_t *bytes, size_t size);

/* Checks all of it but the blocks themselves. Errors: NULL is none, or what is wrong. */
const char *index_check(const uint8_t *bytes, size_t size, struct index_summary *summary);

/* Likewise, and that it is of this image, as its name says. */
const char *index_check_of(const uint8_t *bytes, size_t size, const uint8_t job[CW_ID_SIZE],
                           uint32_t rank, uint32_t number, struct index_summary *summary);

struct index_reader {
    const uint8_t *at;
    size_t left;
};

/* Of an index that was checked. */
struct index_reader index_reader(const uint8_t *bytes, size_t size);
/* False at the end, or where a record is not whole. */
bool index_next(struct index_reader *reader, struct index_entry *entry);

static inline bool index_has_place(uint32_t type)
{
    return type == CW_IMAGE_BLOCK_DATA || type == CW_IMAGE_BLOCK_LZ4;
}

static inline bool index_is_block(uint32_t type)
{
    return type >= CW_IMAGE_BLOCK_ZERO && type <= CW_IMAGE_BLOCK_LZ4;
}

#endif
