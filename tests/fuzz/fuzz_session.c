/* What a session begins and resumes with. The first byte chooses: a record (HELLO, WELCOME, SETUP,
 * REPORT; PUT, GO, STORED, FETCH of images) that is decoded, and encoded again if it is valid; or a
 * script of operations on kept bytes, compared with the whole stream. */
#include "common/frame.h"
#include "common/kept.h"
#include "common/setup.h"
#include "tests/fuzz/fuzz.h"

#define KEPT_MAX 64u
#define STREAM_MAX 65536u

/* --- records ---------------------------------------------------------------------------------- */
static void hello(const uint8_t *data, size_t size)
{
    uint8_t again[CW_HELLO_SIZE];
    struct cw_hello v;

    if (size < CW_HELLO_SIZE || !cw_hello_get(data, &v))
        return;
    cw_hello_put(again, &v);
    must(memcmp(again, data, CW_HELLO_SIZE) == 0);
}

static void welcome(const uint8_t *data, size_t size)
{
    uint8_t again[CW_WELCOME_SIZE];
    struct cw_welcome v;

    if (size < CW_WELCOME_SIZE)
        return;
    must(cw_welcome_get(data, &v));
    cw_welcome_put(again, &v);
    must(memcmp(again, data, CW_WELCOME_SIZE) == 0);
}

static void setup(const uint8_t *data, size_t size)
{
    static uint8_t again[CW_SETUP_MAX];
    struct cw_setup v;

    if (!cw_setup_get(data, size, &v))
        return;
    must(v.resume_ms <= CW_RESUME_MAX_MS && v.process.rank < v.ranks && v.ranks <= CW_RANKS_MAX);
    must(strlen(v.address) < sizeof(v.address));
    must(cw_setup_put(again, &v) == size && memcmp(again, data, size) == 0);
}

static void report(const uint8_t *data, size_t size)
{
    struct cw_report v;

    if (!cw_report_get(data, size, &v))
        return;
    if (v.kind == CW_REPORT_EARLY)
        must(v.early == data + CW_REPORT_HEADER && v.early_size == size - CW_REPORT_HEADER);
    else
        must(strlen(v.text) <= CW_TEXT_MAX);
}

static void put(const uint8_t *data, size_t size)
{
    uint8_t again[CW_PUT_SIZE];
    struct cw_put v;

    if (size < CW_PUT_SIZE || !cw_put_get(data, &v))
        return;
    must(v.number > 0 && v.base < v.number);
    cw_put_put(again, &v);
    must(memcmp(again, data, CW_PUT_SIZE) == 0);
}

static void stored(const uint8_t *data, size_t size)
{
    uint8_t again[CW_STORED_SIZE];
    struct cw_stored v;

    if (size < CW_STORED_SIZE || !cw_stored_get(data, &v))
        return;
    must(v.number > 0);
    cw_stored_put(again, &v);
    must(memcmp(again, data, 12) == 0 && memcmp(again + 16, data + 16, CW_STORED_SIZE - 16) == 0);
}

static void go_and_fetch(const uint8_t *data, size_t size)
{
    uint8_t again[CW_WORD_SIZE];
    uint8_t ref_again[CW_IMAGE_REF_SIZE];
    struct cw_image_ref ref;

    if (size < CW_WORD_SIZE || size < CW_IMAGE_REF_SIZE)
        return;
    cw_word_put(again, cw_word_get(data));
    must(memcmp(again, data, 4) == 0);
    cw_image_ref_get(data, &ref);
    cw_image_ref_put(ref_again, &ref);
    must(memcmp(ref_again, data, CW_IMAGE_REF_SIZE) == 0);
}

/* --- kept bytes ------------------------------------------------------------------------------- */
static uint8_t stream[STREAM_MAX];

static void unsent_is_right(const struct cw_kept *kept)
{
    struct iovec iov[2];
    int count = cw_kept_unsent(kept, iov);
    uint64_t at = kept->sent;

    for (int i = 0; i < count; i++) {
        must(memcmp(iov[i].iov_base, stream + at, iov[i].iov_len) == 0);
        at += iov[i].iov_len;
    }
    must(at == kept->end && kept->acked <= kept->sent && kept->end - kept->acked <= kept->size);
}

static void restore(struct cw_kept *kept, size_t size)
{
    size_t there = (size_t)(kept->sent - kept->opened);
    uint64_t acked = kept->acked;
    struct iovec iov[2];

    size = size < kept->sent ? size : (size_t)kept->sent;
    iov[0] = (struct iovec){stream + kept->sent - size, size / 2};
    iov[1] = (struct iovec){stream + kept->sent - size + size / 2, size - size / 2};
    if (cw_kept_restore(kept, iov, 2) == CW_OK) {
        must(kept->acked == kept->sent - (size < there ? size : there));
        must(cw_kept_rewind(kept, kept->acked) == CW_OK);
    } else {
        must(kept->acked == acked);
    }
}

static void step(struct cw_kept *kept, uint8_t what, uint8_t how)
{
    uint64_t position = kept->sent + (how & 0x40 ? 1 : 0) - (how & 0x3f);
    bool can_be = position >= kept->acked && position <= kept->sent;
    size_t left = cw_kept_left(kept);

    switch (what & 7) {
    case 0:
        must(cw_kept_acknowledge(kept, position) == (position <= kept->sent ? CW_OK : CW_EPROTO));
        break;
    case 1:
        must(cw_kept_rewind(kept, position) == (can_be ? CW_OK : CW_EPROTO));
        break;
    case 2:
        if (kept->acked == kept->end)
            cw_kept_skip(kept, how);
        break;
    case 3:
        if (kept->acked == kept->sent)
            restore(kept, how);
        break;
    case 4:
    case 5:
        cw_kept_sent(kept, how < left ? how : left);
        break;
    default:
        cw_kept_put(kept, stream + kept->end, how);
    }
}

static void keep(const uint8_t *data, size_t size)
{
    uint8_t *memory;
    struct cw_kept kept;

    if (size < 1 || size > STREAM_MAX / 256)
        return;
    for (size_t i = STREAM_MAX; i-- > 0 && !stream[1];)
        stream[i] = (uint8_t)(i * 7 + i / 256);
    memory = malloc(1 + data[0] % KEPT_MAX); /* of its exact size: a write past its end is seen */
    must(memory != NULL);
    cw_kept_init(&kept, memory, 1 + data[0] % KEPT_MAX);
    for (size_t i = 1; i + 1 < size; i += 2) {
        step(&kept, data[i], data[i + 1]);
        unsent_is_right(&kept);
    }
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parts[])(const uint8_t *, size_t) = {hello, welcome, setup,  report,
                                                             keep,  put,     stored, go_and_fetch};

    if (size > 0)
        parts[data[0] % (sizeof(parts) / sizeof(*parts))](data + 1, size - 1);
    return 0;
}
