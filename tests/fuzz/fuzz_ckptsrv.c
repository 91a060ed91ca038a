/* What comes to a checkpoint server: HELLO, and the stream of an image, with the store in memory.
 *
 * The first byte chooses: 0: a HELLO; 1: a stream as it is; else a stream that is right, after
 * changes: 4 bytes where, 1 byte what. Streams come in pieces; a stream that was taken to its end
 * has an index that is read back. */
#include "ckptsrv/handshake.h"
#include "ckptsrv/intake.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/image_maker.h"

#define MEMORY (4u << 20)

static uint64_t used;

static int write_block(void *ctx, const uint8_t *bytes, size_t size, uint64_t *place,
                       struct cw_err *err)
{
    uint8_t *memory = ctx;

    if (used + size > MEMORY)
        return cw_err_set(err, CW_ELIMIT, "full");
    *place = used;
    memcpy(memory + used, bytes, size);
    used += (size + 4095) / 4096 * 4096;
    return CW_OK;
}

static int share_block(void *ctx, uint64_t place, uint64_t bytes, struct cw_err *err)
{
    (void)ctx;
    (void)err;
    if (place + bytes > MEMORY)
        abort();
    return CW_OK;
}

static void take(const struct image_plan *plan, const uint8_t *bytes, size_t size, size_t piece)
{
    static uint8_t memory[MEMORY];
    struct intake_config config = {.rank = plan->rank,
                                   .incarnation = plan->incarnation,
                                   .put = image_put(plan),
                                   .write = write_block,
                                   .share = share_block,
                                   .ctx = memory};
    struct index_summary summary;
    const struct index_maker *index;
    struct cw_err err = {0};
    struct intake *intake;
    size_t from = 0;
    size_t taken;
    uint64_t plain;

    memcpy(config.job, plan->job, CW_ID_SIZE);
    used = 0;
    intake = intake_new(&config);
    for (size_t to = 0; intake && !err.code && to < size;) {
        to = size - to < piece ? size : to + piece;
        intake_take(intake, bytes + from, to - from, &taken, &err);
        from += taken;
    }
    if (intake && !err.code && intake_ended(intake)) {
        index = intake_index(intake, used, &plain);
        if (index_check(index->bytes, index->used, &summary))
            abort();
    }
    intake_free(intake);
}

static void judge(const uint8_t *data, size_t size)
{
    static const uint8_t key[CW_KEY_SIZE] = {1};
    static const struct cw_stranger stranger = {.nonce = {2}};
    uint8_t body[CW_HELLO_SIZE] = {0};
    struct cw_welcome welcome;
    struct cw_hello hello;
    struct cw_err err = {0};

    memcpy(body, data, size < sizeof(body) ? size : sizeof(body));
    if (handshake_judge(&stranger, key, body, &hello, &welcome, &err) == 0)
        abort(); /* nobody guesses a key */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image_plan plan = {.rank = 1, .incarnation = 1, .number = 2, .blocks = 5, .seed = 1};
    static struct image_stream right;
    struct image_stream stream;
    size_t at = 2;

    if (size < 2)
        return 0;
    if (data[0] == 0) {
        judge(data + 1, size - 1);
        return 0;
    }
    if (data[0] == 1) {
        take(&plan, data + 2, size - 2, 16 + data[1] * 64u);
        return 0;
    }
    if (!right.bytes)
        image_make(&plan, &right);
    stream = right;
    stream.bytes = malloc(right.size);
    if (!stream.bytes)
        return 0;
    memcpy(stream.bytes, right.bytes, right.size);
    for (; at + 5 <= size; at += 5) {
        uint32_t where;

        memcpy(&where, data + at, 4);
        stream.bytes[where % stream.size] = data[at + 4];
    }
    take(&plan, stream.bytes, stream.size, 64 + data[1] * 1024u);
    free(stream.bytes);
    return 0;
}
