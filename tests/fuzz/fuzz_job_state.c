/* The journal of a job's dispatcher, as it may be found on disk: whatever it holds, reading stays
 * inside it and comes to an end, and what was got can be put again. The first bytes of the input
 * say how much is known to have been on disk. Sums are made right, so that bodies are reached. */
#include "common/buf.h"
#include "dispatcher/state/job_state.h"
#include "tests/fuzz/fuzz.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define INPUT_MAX (64u << 10)
#define RANKS 4u

/* Makes the sums of all records right that are whole, as long as they follow each other. */
static void sum(uint8_t *bytes, size_t size)
{
    for (size_t at = JOB_STATE_HEADER; at < size && size - at >= JOB_STATE_RECORD;) {
        uint32_t head[2];
        uint64_t check;

        memcpy(head, bytes + at, sizeof(head));
        if (head[1] > size - at - JOB_STATE_RECORD)
            return;
        check = XXH3_64bits_withSeed(bytes + at + JOB_STATE_RECORD, head[1],
                                     (uint64_t)head[0] << 32 | head[1]);
        memcpy(bytes + at + 8, &check, sizeof(check));
        at += JOB_STATE_RECORD + head[1];
    }
}

static void read_all(const struct job_state_bytes *in)
{
    static uint8_t again[JOB_STATE_RECORD + JOB_STATE_BODY_MAX];
    struct job_state_record record;
    size_t offset = JOB_STATE_HEADER;
    uint32_t ranks = 0;

    job_state_version(in->bytes, in->size);
    for (;;) {
        size_t before = offset;
        enum job_state_found found = job_state_get(in, &offset, ranks, &record);

        if (found != JOB_STATE_GOT) {
            must(offset == before && (found != JOB_STATE_END || offset >= in->synced));
            return;
        }
        must(offset > before && offset <= in->size);
        must(record.type == JOB_STATE_JOB || ranks == 0 || record.rank < ranks);
        if (record.type == JOB_STATE_JOB)
            ranks = record.rank;
        must(job_state_put(again, &record) == offset - before);
        must(memcmp(again, in->bytes + before, offset - before) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[INPUT_MAX];
    struct cw_reader r = cw_reader(data, size);
    struct job_state_bytes in = {.bytes = bytes, .synced = cw_get_u16(&r)};

    in.size = r.left < INPUT_MAX ? r.left : INPUT_MAX;
    cw_get_copy(&r, bytes, in.size);
    read_all(&in);
    sum(bytes, in.size);
    read_all(&in);
    return 0;
}
