/* The log of a mailbox, and the records it is made of: what was written is read back, in order,
 * from the start and from anywhere; what found no memory left no trace. */
#include "relay/core/log.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY (64u << 20)
#define ITEMS 600
#define SLICE_PAGE (8u << 20) /* bytes: a multiple of a slice's size, and of a page's */

static struct cw_relay_stats stats;
static struct relay_memory memory;
static struct relay_pool pool;
static struct owed_copies copies;
static struct relay_log kept;
static uint64_t seed;

static void start(uint64_t memory_max)
{
    memset(&stats, 0, sizeof(stats));
    memory = (struct relay_memory){.memory_max = memory_max, .stats = &stats};
    pool = (struct relay_pool){.memory = &memory};
    copies = (struct owed_copies){0};
    log_init(&kept, &pool, &copies, true);
    seed = 1;
}

static void finish(void)
{
    log_free(&kept);
    copies_pay_all(&copies);
    CU_ASSERT_EQUAL(kept.bytes, 0);
    CU_ASSERT_FALSE(kept.kept);
    relay_memory_fini(&memory);
    CU_ASSERT_EQUAL(stats.memory_now, 0);
}

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
}

static struct relay_block *block_of_pattern(uint64_t message)
{
    struct relay_block *block = relay_block_new(&pool, false);

    CU_ASSERT_PTR_NOT_NULL_FATAL(block);
    codec_pattern(block->bytes, message, 0, RELAY_BLOCK_BYTES);
    return block;
}

/* --- records ---------------------------------------------------------------------------------- */
static void records_of_many_sizes(void)
{
    static const size_t sizes[] = {1,    8,   24, 1000, 1024, RECORDS_SEGMENT_MAX,
                                   5000, 256, 3,  8,    7,    RELAY_BLOCK_BYTES - 64,
                                   8,    9,   7,  10,   5,    RELAY_BLOCK_BYTES + 1};
    enum { SIZES = sizeof(sizes) / sizeof(*sizes), COUNT = 20 * SIZES };
    struct records r = {0};
    struct records_cursor cursor = {0};
    uint64_t held = 0;
    size_t left;

    start(MEMORY);
    CU_ASSERT_PTR_NULL(records_peek(&r, &cursor, &left));
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = sizes[i % SIZES];
        uint8_t *at = records_append(&r, &pool, size, &held);

        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        codec_pattern(at, i, 0, size);
        /* but for what a block has beside its bytes */
        CU_ASSERT_TRUE(held <= stats.memory_now && held + held / 1000 >= stats.memory_now);
    }
    for (size_t i = 0; i < COUNT; i++) {
        const uint8_t *at = records_peek(&r, &cursor, &left);

        CU_ASSERT_TRUE_FATAL(at && left >= sizes[i % SIZES]);
        CU_ASSERT_TRUE(codec_pattern_is(at, i, sizes[i % SIZES]));
        records_advance(&cursor, sizes[i % SIZES]);
    }
    CU_ASSERT_PTR_NULL(records_peek(&r, &cursor, &left));
    records_free(&r, &pool);
    finish();
}

/* One who has read all reads on when there is more, also in the next segment. */
static void records_that_follow(void)
{
    struct records r = {0};
    struct records_cursor cursor = {0};
    uint64_t held = 0;
    size_t left;

    start(MEMORY);
    for (uint32_t i = 0; i < 2000; i++) {
        const void *at;

        CU_ASSERT_PTR_NULL(records_peek(&r, &cursor, &left));
        memcpy(records_append(&r, &pool, 12, &held), &i, sizeof(i));
        at = records_peek(&r, &cursor, &left);
        CU_ASSERT_TRUE_FATAL(at && left == 12);
        CU_ASSERT_EQUAL(memcmp(at, &i, sizeof(i)), 0);
        records_advance(&cursor, 12);
    }
    records_free(&r, &pool);
    finish();
}

/* Who keeps little needs little: segments begin small, and a record lies in one piece. */
static void records_without_memory(void)
{
    struct records r = {0};
    struct records_cursor cursor = {0};
    uint64_t held = 0;
    size_t left;

    start(2 * RECORDS_SEGMENT_MIN);
    CU_ASSERT_PTR_NOT_NULL(records_append(&r, &pool, 800, &held));
    CU_ASSERT_TRUE(held < 2 * RECORDS_SEGMENT_MIN);
    CU_ASSERT_PTR_NULL(records_append(&r, &pool, 800, &held));
    CU_ASSERT_PTR_NOT_NULL(records_append(&r, &pool, 200, &held));
    CU_ASSERT_EQUAL(held, stats.memory_now);
    CU_ASSERT_PTR_NOT_NULL(records_peek(&r, &cursor, &left));
    CU_ASSERT_EQUAL(left, 1000);
    records_free(&r, &pool);
    finish();
}

/* --- events ----------------------------------------------------------------------------------- */
static bool next_is_message(struct log_cursor *cursor, const struct cw_message *m, uint64_t size)
{
    struct log_event_view view;
    uint64_t at = 0;
    bool right;

    if (!log_next_event(&kept, cursor, &view))
        return false;
    right = view.event->type == LOG_MESSAGE && view.event->tag == m->tag &&
            view.event->total == m->total && view.event->req == m->req &&
            view.event->flags == (m->flags & (CW_MESSAGE_TRUNC | CW_MESSAGE_ACTIVE)) &&
            view.size == size;
    if (view.event->slices == 0)
        return right && codec_pattern_is(view.bytes, m->tag, size);
    for (uint32_t i = 0; i < view.event->slices; i++)
        for (uint32_t j = 0; j < view.slices[i].size; j++)
            right = right && view.slices[i].block->bytes[view.slices[i].at + j] ==
                                 codec_pattern_at(m->tag, at++);
    return right && at == size;
}

/* Around every bound: nothing, the last that is copied, the first that is not, a whole frame. */
static void messages_of_many_sizes(void)
{
    static const uint64_t sizes[] = {0,    1,    7,    8,     9,      2047,
                                     4095, 4096, 4097, 16385, 100000, CW_FRAME_DATA_MAX};
    struct log_cursor cursor = {0};
    struct log_event_view view;
    struct cw_message m = {0};
    struct relay_block *block;

    start(MEMORY);
    block = block_of_pattern(3);
    for (uint32_t i = 0; i < 24; i++) {
        uint64_t size = sizes[i % 12];

        m = (struct cw_message){.req = i, .tag = 3, .total = size};
        m.flags = CW_MESSAGE_FIRST | CW_MESSAGE_LAST | (i & 1 ? CW_MESSAGE_ACTIVE : 0);
        if (i >= 12) {
            m.flags |= CW_MESSAGE_TRUNC;
            m.total = CW_MESSAGE_MAX;
        }
        CU_ASSERT_EQUAL(log_message(&kept, &m, block->bytes, size, block), CW_OK);
        CU_ASSERT_TRUE(size > LOG_INLINE_MAX ? block->refs > 1 : block->refs == 1);
        copies_pay_all(&copies);
        CU_ASSERT_EQUAL(block->refs, 1);
    }
    CU_ASSERT_EQUAL(kept.event_count, 24);
    for (uint32_t i = 0; i < 24; i++) {
        m = (struct cw_message){.req = i, .tag = 3};
        m.flags = (i & 1 ? CW_MESSAGE_ACTIVE : 0) | (i >= 12 ? CW_MESSAGE_TRUNC : 0);
        m.total = i >= 12 ? CW_MESSAGE_MAX : sizes[i % 12];
        CU_ASSERT_TRUE(next_is_message(&cursor, &m, sizes[i % 12]));
        CU_ASSERT_EQUAL(cursor.event, i + 1);
    }
    CU_ASSERT_FALSE(log_next_event(&kept, &cursor, &view));
    log_free(&kept);
    CU_ASSERT_EQUAL(block->refs, 1);
    relay_block_release(block);
    finish();
}

/* What is kept belongs to the log alone: the block that it came in outlives its connection until
 * then. */
static void payload_whose_block_goes(void)
{
    struct cw_message small = {.req = 1, .tag = 1, .total = 100};
    struct cw_message large = {.req = 2, .tag = 1, .total = 20000};
    struct log_cursor cursor = {0};
    struct relay_block *block;

    start(MEMORY);
    block = block_of_pattern(1);
    CU_ASSERT_EQUAL(log_message(&kept, &small, block->bytes, 100, block), CW_OK);
    CU_ASSERT_EQUAL(block->refs, 1);
    CU_ASSERT_EQUAL(log_message(&kept, &large, block->bytes, 20000, block), CW_OK);
    relay_block_release(block);
    copies_pay_all(&copies);
    CU_ASSERT_TRUE(next_is_message(&cursor, &small, 100));
    CU_ASSERT_TRUE(next_is_message(&cursor, &large, 20000));
    CU_ASSERT_TRUE(kept.bytes > 20100);
    finish();
}

static void messages_in_slices(void)
{
    struct message_slice slices[3];
    struct relay_block *blocks[2];
    struct cw_message m = {.req = 1, .tag = 9, .total = 90000};

    for (uint64_t size = 0; size <= 90000; size += 10000) {
        struct log_cursor cursor = {0};
        struct log_event_view view;

        start(MEMORY);
        blocks[0] = block_of_pattern(9);
        blocks[1] = block_of_pattern(9);
        /* the pattern of a place depends on the place: slice i begins where i - 1 ended */
        slices[0] = (struct message_slice){blocks[0], 0, 30000};
        slices[1] = (struct message_slice){blocks[1], 30000, 30000};
        slices[2] = (struct message_slice){blocks[0], 60000, 30000};
        m.flags = size < m.total ? CW_MESSAGE_TRUNC : 0;
        CU_ASSERT_EQUAL(log_message_slices(&kept, &m, slices, size), CW_OK);
        CU_ASSERT_EQUAL(blocks[0]->refs, 1 + (size > 0) + (size > 60000));
        CU_ASSERT_EQUAL(blocks[1]->refs, 1 + (size > 30000));
        relay_block_release(blocks[0]);
        relay_block_release(blocks[1]);
        CU_ASSERT_TRUE(next_is_message(&cursor, &m, size));
        CU_ASSERT_FALSE(log_next_event(&kept, &cursor, &view));
        finish();
    }
}

/* A log that is given up in the meantime takes nothing away from copies that are owed for it. */
static void log_that_goes_before_its_copies(void)
{
    struct cw_message m = {.req = 1, .tag = 9, .total = 100000};
    struct relay_block *block;

    start(MEMORY);
    block = block_of_pattern(9);
    for (uint32_t i = 0; i < 2 * COPIES_MAX; i++)
        CU_ASSERT_EQUAL(log_message(&kept, &m, block->bytes, m.total, block), CW_OK);
    CU_ASSERT_TRUE(copies.count > 0 && copies.count <= COPIES_MAX);
    log_free(&kept);
    relay_block_release(block);
    CU_ASSERT_TRUE(copies.count > 0);
    finish();
}

/* A message of more slices than can be counted is not kept. Its table is one piece of memory, many
 * times in a row. */
static void too_many_slices(void)
{
    size_t whole = (size_t)(LOG_SLICES_MAX + 1) * sizeof(struct message_slice);
    struct cw_message m = {.req = 1, .total = LOG_SLICES_MAX + 1};
    int fd = memfd_create("slices", 0);
    struct relay_block *block;
    uint8_t *table;

    start(MEMORY);
    block = block_of_pattern(0);
    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, SLICE_PAGE), 0);
    table = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_FATAL(table != MAP_FAILED);
    for (size_t at = 0; at < whole; at += SLICE_PAGE)
        CU_ASSERT_FATAL(mmap(table + at, SLICE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                             fd, 0) != MAP_FAILED);
    for (size_t i = 0; i < SLICE_PAGE / sizeof(struct message_slice); i++)
        ((struct message_slice *)table)[i] = (struct message_slice){block, 0, 1};
    CU_ASSERT_EQUAL(
        log_message_slices(&kept, &m, (const struct message_slice *)table, LOG_SLICES_MAX + 1),
        CW_ENOMEM);
    CU_ASSERT_EQUAL(block->refs, 1);
    CU_ASSERT_EQUAL(kept.event_count, 0);
    CU_ASSERT_EQUAL(kept.bytes, 0);
    munmap(table, whole);
    close(fd);
    relay_block_release(block);
    finish();
}

static void other_events(void)
{
    struct cw_message m = {.req = 5, .tag = 6, .total = 3};
    uint8_t bytes[3];
    struct log_cursor cursor = {0};
    struct log_event_view view;

    start(MEMORY);
    codec_pattern(bytes, 6, 0, 3);
    CU_ASSERT_EQUAL(log_done(&kept, LOG_SENT, UINT32_MAX), CW_OK);
    CU_ASSERT_EQUAL(log_message(&kept, &m, bytes, 3, NULL), CW_OK);
    CU_ASSERT_EQUAL(log_done(&kept, LOG_CANCELED, 8), CW_OK);
    CU_ASSERT_TRUE_FATAL(log_next_event(&kept, &cursor, &view));
    CU_ASSERT_TRUE(view.event->type == LOG_SENT && view.event->req == UINT32_MAX);
    CU_ASSERT_TRUE(next_is_message(&cursor, &m, 3));
    CU_ASSERT_TRUE_FATAL(log_next_event(&kept, &cursor, &view));
    CU_ASSERT_TRUE(view.event->type == LOG_CANCELED && view.event->req == 8);
    CU_ASSERT_FALSE(log_next_event(&kept, &cursor, &view));
    CU_ASSERT_EQUAL(cursor.event, 3);
    finish();
}

/* --- determinants ----------------------------------------------------------------------------- */
/* Values at the edges of what a byte, two bytes, ... of a number hold. */
static void numbers_of_every_size(void)
{
    struct log_cursor cursor = {0};
    struct log_determinant d;
    uint64_t clock = 0;
    uint64_t count = 0;

    start(MEMORY);
    /* as many events as the test names, without keeping them */
    kept.event_count = UINT64_MAX;
    for (int bit = 0; bit < 62; bit++) {
        clock += (1ull << bit) - (bit & 1);
        count++;
        CU_ASSERT_EQUAL(log_taken(&kept, count, clock), CW_OK);
    }
    CU_ASSERT_EQUAL(log_taken(&kept, UINT64_MAX, UINT64_MAX), CW_OK);
    clock = 0;
    for (int bit = 0; bit < 62; bit++) {
        clock += (1ull << bit) - (bit & 1);
        CU_ASSERT_TRUE_FATAL(log_next_determinant(&kept, &cursor, &d));
        CU_ASSERT_TRUE(d.type == LOG_TAKEN && d.events == 1 && d.clock == clock);
    }
    CU_ASSERT_TRUE_FATAL(log_next_determinant(&kept, &cursor, &d));
    CU_ASSERT_TRUE(d.type == LOG_TAKEN && d.events == UINT64_MAX - 62 && d.clock == UINT64_MAX);
    CU_ASSERT_FALSE(log_next_determinant(&kept, &cursor, &d));
    kept.event_count = 0;
    finish();
}

static void answers_and_readings(void)
{
    struct cw_probed answer = {
        .clock = 77, .found = 1, .msg = UINT32_MAX, .tag = UINT64_MAX - 1, .total = CW_MESSAGE_MAX};
    static uint8_t bytes[CW_READINGS_MAX];
    struct log_cursor cursor = {0};
    struct log_determinant d;

    start(MEMORY);
    kept.event_count = 5;
    codec_pattern(bytes, 4, 0, sizeof(bytes));
    CU_ASSERT_EQUAL(log_readings(&kept, bytes, 1), CW_OK);
    CU_ASSERT_EQUAL(log_taken(&kept, 2, 70), CW_OK);
    CU_ASSERT_EQUAL(log_answer(&kept, &answer), CW_OK);
    CU_ASSERT_EQUAL(log_readings(&kept, bytes, sizeof(bytes)), CW_OK);
    CU_ASSERT_EQUAL(log_taken(&kept, 5, 77), CW_OK);
    CU_ASSERT_TRUE_FATAL(log_next_determinant(&kept, &cursor, &d));
    CU_ASSERT_TRUE(d.type == LOG_READINGS && d.size == 1 && d.bytes[0] == bytes[0]);
    CU_ASSERT_TRUE_FATAL(log_next_determinant(&kept, &cursor, &d));
    CU_ASSERT_TRUE(d.type == LOG_TAKEN && d.events == 2 && d.clock == 70);
    CU_ASSERT_TRUE_FATAL(log_next_determinant(&kept, &cursor, &d));
    CU_ASSERT_TRUE(d.type == LOG_ANSWER && d.answer.clock == 77 && d.answer.found == 1 &&
                   d.answer.msg == answer.msg && d.answer.tag == answer.tag &&
                   d.answer.total == answer.total);
    CU_ASSERT_TRUE_FATAL(log_next_determinant(&kept, &cursor, &d));
    CU_ASSERT_TRUE(d.type == LOG_READINGS && d.size == sizeof(bytes) &&
                   codec_pattern_is(d.bytes, 4, sizeof(bytes)));
    CU_ASSERT_TRUE_FATAL(log_next_determinant(&kept, &cursor, &d));
    CU_ASSERT_TRUE(d.type == LOG_TAKEN && d.events == 3 && d.clock == 77);
    CU_ASSERT_FALSE(log_next_determinant(&kept, &cursor, &d));
    kept.event_count = 0;
    finish();
}

/* --- sends ------------------------------------------------------------------------------------ */
static void sends(void)
{
    static const struct cw_send said[] = {
        {.dst = 0, .kind = CW_SEND_TAG, .tag = 0, .total = 0},
        {.dst = CW_RANKS_MAX - 1, .kind = CW_SEND_AM, .tag = UINT64_MAX, .total = CW_MESSAGE_MAX},
        {.dst = 1, .kind = CW_SEND_SYNC, .tag = 1, .total = 1},
        {.dst = CW_RANKS_MAX - 1, .kind = CW_SEND_TAG, .tag = 7, .total = 0},
    };
    struct log_cursor cursor = {0};
    struct cw_send send;

    start(MEMORY);
    CU_ASSERT_FALSE(log_next_send(&kept, &cursor, &send));
    for (int i = 0; i < 400; i++)
        CU_ASSERT_EQUAL(log_send(&kept, &said[i % 4]), CW_OK);
    CU_ASSERT_EQUAL(kept.send_count, 400);
    for (int i = 0; i < 400; i++) {
        CU_ASSERT_TRUE_FATAL(log_next_send(&kept, &cursor, &send));
        CU_ASSERT_TRUE(send.dst == said[i % 4].dst && send.kind == said[i % 4].kind &&
                       send.tag == said[i % 4].tag && send.total == said[i % 4].total);
        CU_ASSERT_EQUAL(cursor.send, i + 1);
    }
    CU_ASSERT_FALSE(log_next_send(&kept, &cursor, &send));
    finish();
}

/* --- no memory -------------------------------------------------------------------------------- */
/* Writes item `i`, which is of a kind that its number says. Returns 0 or CW_ENOMEM. */
static int write_item(uint32_t i, struct relay_block *block)
{
    struct cw_message m = {.req = i, .tag = 2, .total = i * 67 % 40000};
    struct cw_probed answer = {.clock = i, .tag = i};
    struct cw_send send = {.kind = CW_SEND_TAG, .tag = i};

    switch (i % 5) {
    case 0:
        return log_message(&kept, &m, block->bytes, m.total, block);
    case 1:
        return log_taken(&kept, kept.event_count, i);
    case 2:
        return log_readings(&kept, block->bytes, 1 + i % 300);
    case 3:
        return log_answer(&kept, &answer);
    default:
        return log_send(&kept, &send);
    }
}

static bool read_items(const uint32_t *items, uint32_t count)
{
    struct log_cursor cursor = {0};
    struct log_determinant d;
    struct cw_send send;
    bool right = true;

    for (uint32_t n = 0; n < count && right; n++) {
        uint32_t i = items[n];
        struct cw_message m = {.req = i, .tag = 2, .total = i * 67 % 40000};

        if (i % 5 == 0)
            right = next_is_message(&cursor, &m, m.total);
        else if (i % 5 == 4)
            right = log_next_send(&kept, &cursor, &send) && send.tag == i;
        else
            right = log_next_determinant(&kept, &cursor, &d) &&
                    (d.type != LOG_TAKEN || d.clock == i) &&
                    (d.type != LOG_READINGS || codec_pattern_is(d.bytes, 2, 1 + i % 300)) &&
                    (d.type != LOG_ANSWER || d.answer.tag == i);
    }
    return right && !log_next_send(&kept, &cursor, &send) &&
           !log_next_determinant(&kept, &cursor, &d);
}

/* Somebody else takes the memory now and then: what was refused is as if it had never been. */
static void without_memory_now_and_then(void)
{
    static uint32_t items[ITEMS];
    struct relay_block *block;
    uint32_t count = 0;
    uint32_t refused = 0;

    start(MEMORY);
    block = block_of_pattern(2);
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint64_t taken = below(2) ? MEMORY - stats.memory_now - below(600) : 0;
        uint64_t bytes = kept.bytes;
        uint64_t clock = kept.clock;
        uint32_t refs = block->refs;

        if (i % 5 == 1 && kept.event_count == kept.taken)
            continue;
        stats.memory_now += taken;
        if (write_item(i, block) == CW_OK) {
            copies_pay_all(&copies);
            items[count++] = i;
        } else {
            copies_pay_all(&copies);
            refused++;
            CU_ASSERT_TRUE(kept.bytes == bytes && kept.clock == clock && block->refs == refs);
        }
        stats.memory_now -= taken;
    }
    CU_ASSERT_TRUE(refused > 10 && count > ITEMS / 3);
    CU_ASSERT_TRUE(read_items(items, count));
    log_free(&kept);
    CU_ASSERT_EQUAL(block->refs, 1);
    relay_block_release(block);
    finish();
}

void add_log_tests(void)
{
    CU_pSuite suite = CU_add_suite("log", NULL, NULL);

    CU_ADD_TEST(suite, records_of_many_sizes);
    CU_ADD_TEST(suite, records_that_follow);
    CU_ADD_TEST(suite, records_without_memory);
    CU_ADD_TEST(suite, messages_of_many_sizes);
    CU_ADD_TEST(suite, payload_whose_block_goes);
    CU_ADD_TEST(suite, messages_in_slices);
    CU_ADD_TEST(suite, log_that_goes_before_its_copies);
    CU_ADD_TEST(suite, too_many_slices);
    CU_ADD_TEST(suite, other_events);
    CU_ADD_TEST(suite, numbers_of_every_size);
    CU_ADD_TEST(suite, answers_and_readings);
    CU_ADD_TEST(suite, sends);
    CU_ADD_TEST(suite, without_memory_now_and_then);
}
