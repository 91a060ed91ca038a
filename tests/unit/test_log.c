/* The log of a mailbox, and the chains and records it is made of: what was written is read back, in
 * order, from the start and from anywhere; what found no memory left no trace. */
#include "relay/log/log.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

SUITE("log");

#define MEMORY (64u << 20)
#define ITEMS 600

static struct cw_relay_stats stats;
static struct relay_memory memory;
static struct relay_pool pool;
static struct owed_copies copies;
static struct log_store store;
static struct relay_log kept;
static uint64_t seed;

static void start(uint64_t memory_max)
{
    memset(&stats, 0, sizeof(stats));
    memory = (struct relay_memory){.memory_max = memory_max, .stats = &stats};
    pool = (struct relay_pool){.memory = &memory};
    copies = (struct owed_copies){0};
    store_init(&store, &pool, NULL, memory_max, 0);
    log_init(&kept, &pool, &store, &copies, true);
    seed = 1;
}

static void finish(void)
{
    log_free(&kept);
    copies_pay_all(&copies);
    CU_ASSERT_EQUAL(kept.bytes, 0);
    CU_ASSERT_FALSE(kept.kept);
    store_fini(&store);
    relay_memory_fini(&memory);
    CU_ASSERT_EQUAL(stats.memory_now, 0);
}

static int put_readings(const uint8_t *bytes, uint32_t size)
{
    return log_put(&kept, &(struct log_record){.type = LOG_READINGS, .size = size, .bytes = bytes});
}

static int put_answer(const struct cw_probed *answer)
{
    return log_put(&kept, &(struct log_record){.type = LOG_ANSWER,
                                               .clock = answer->clock - kept.clock,
                                               .msg = answer->msg,
                                               .tag = answer->tag,
                                               .total = answer->total});
}

static int put_send(const struct cw_send *send)
{
    return log_put(&kept, &(struct log_record){.type = LOG_SEND,
                                               .dst = send->dst,
                                               .kind = send->kind,
                                               .tag = send->tag,
                                               .total = send->total,
                                               .contents = send->contents});
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

/* --- chains ----------------------------------------------------------------------------------- */
static struct chain chain;

static void start_chain(uint64_t memory_max)
{
    start(memory_max);
    chain_init(&chain, &store, &pool);
}

static void finish_chain(void)
{
    chain_free(&chain);
    finish();
}

TEST(chain_of_many_sizes)
{
    static const uint32_t sizes[] = {1,    8,   24, 1000, 1024, CHAIN_SEGMENT_SMALL,
                                     5000, 256, 3,  8,    7,    RELAY_BLOCK_BYTES - 64,
                                     8,    9,   7,  10,   5,    RELAY_BLOCK_BYTES};
    enum { SIZES = sizeof(sizes) / sizeof(*sizes), COUNT = 20 * SIZES };
    static uint64_t positions[COUNT];
    struct chain_bytes bytes;
    uint64_t position = 0;
    uint64_t held = 0;

    start_chain(MEMORY);
    CU_ASSERT_EQUAL(chain_read(&chain, &position, &bytes), CHAIN_END);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint8_t *at = chain_append(&chain, sizes[i % SIZES], &positions[i], &held);

        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        codec_pattern(at, i, 0, sizes[i % SIZES]);
        /* but for what a block has beside its bytes */
        CU_ASSERT_TRUE(held <= stats.memory_now && held + held / 50 >= stats.memory_now);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t size = sizes[i % SIZES];

        CU_ASSERT_EQUAL_FATAL(chain_read(&chain, &position, &bytes), CHAIN_HERE);
        CU_ASSERT_TRUE(position == positions[i] && bytes.size >= size);
        CU_ASSERT_TRUE(codec_pattern_is(bytes.at, i, size));
        position += size;
    }
    CU_ASSERT_EQUAL(chain_read(&chain, &position, &bytes), CHAIN_END);
    for (uint32_t i = COUNT; i-- > 0;) {
        position = positions[i];
        CU_ASSERT_EQUAL(chain_read(&chain, &position, &bytes), CHAIN_HERE);
        CU_ASSERT_TRUE(codec_pattern_is(bytes.at, i, sizes[i % SIZES]));
    }
    finish_chain();
}

/* One who has read all reads on when there is more, also in the next segment. */
TEST(chain_that_grows)
{
    struct chain_bytes bytes;
    uint64_t position = 0;
    uint64_t held = 0;
    uint64_t written;

    start_chain(MEMORY);
    for (uint32_t i = 0; i < 2000; i++) {
        CU_ASSERT_EQUAL(chain_read(&chain, &position, &bytes), CHAIN_END);
        memcpy(chain_append(&chain, 12, &written, &held), &i, sizeof(i));
        CU_ASSERT_EQUAL_FATAL(chain_read(&chain, &position, &bytes), CHAIN_HERE);
        CU_ASSERT_TRUE(bytes.size == 12 && position == written);
        CU_ASSERT_EQUAL(memcmp(bytes.at, &i, sizeof(i)), 0);
        position += 12;
    }
    finish_chain();
}

/* Who keeps little needs little: segments begin small, and what is appended lies in one piece. */
TEST(chain_without_memory)
{
    struct chain_bytes bytes;
    uint64_t position = 0;
    uint64_t held = 0;

    start_chain(3 * CHAIN_SEGMENT_MIN);
    CU_ASSERT_PTR_NOT_NULL(chain_append(&chain, 800, &position, &held));
    CU_ASSERT_TRUE(held < 2 * CHAIN_SEGMENT_MIN);
    CU_ASSERT_PTR_NULL(chain_append(&chain, 1800, &position, &held));
    CU_ASSERT_PTR_NOT_NULL(chain_append(&chain, 200, &position, &held));
    CU_ASSERT_EQUAL(held, stats.memory_now);
    position = 0;
    CU_ASSERT_EQUAL(chain_read(&chain, &position, &bytes), CHAIN_HERE);
    CU_ASSERT_EQUAL(bytes.size, 1000);
    finish_chain();
}

/* What is set aside follows what was set aside before, from block to block. */
TEST(chain_set_aside)
{
    uint64_t next = 0;
    uint64_t position;

    start_chain(MEMORY);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t asked = 1 + (uint32_t)below(100000);
        uint32_t size = asked;
        struct relay_block *block = chain_reserve(&chain, &size, &position);

        CU_ASSERT_TRUE_FATAL(block && size > 0 && size <= asked);
        CU_ASSERT_EQUAL(position, next);
        CU_ASSERT_TRUE(size == asked || (position + size) % RELAY_BLOCK_BYTES == 0);
        CU_ASSERT_EQUAL(block->refs, 1);
        next = position + size;
    }
    CU_ASSERT_TRUE(chain.count > 10);
    finish_chain();
}

/* --- records ---------------------------------------------------------------------------------- */
TEST(records_come_back)
{
    static const struct log_record records[] = {
        {.type = LOG_MESSAGE, .src = UINT32_MAX, .tag = UINT64_MAX, .total = CW_MESSAGE_MAX},
        {.type = LOG_PART, .src = 1, .size = 0, .bytes = (const uint8_t *)""},
        {.type = LOG_PART, .placed = true, .src = 127, .size = 1ull << 40, .at = UINT64_MAX},
        {.type = LOG_PASSED,
         .flags = 3,
         .req = 128,
         .tag = 5,
         .total = 9,
         .size = 3,
         .bytes = (const uint8_t *)"abc"},
        {.type = LOG_PASSED, .placed = true, .req = 9, .tag = 1, .total = 1ull << 35, .size = 7},
        {.type = LOG_MATCHED, .flags = 1, .req = 1u << 21, .message = 1ull << 50, .size = 16384},
        {.type = LOG_SENT, .req = UINT32_MAX},
        {.type = LOG_CANCELED, .req = 0},
        {.type = LOG_TAKEN, .events = 1, .clock = UINT64_MAX},
        {.type = LOG_READINGS, .size = 2, .bytes = (const uint8_t *)"xy"},
        {.type = LOG_ANSWER, .clock = 127, .msg = 3, .tag = 8, .mask = 1ull << 63, .total = 128},
        {.type = LOG_SEND,
         .dst = 65535,
         .kind = 2,
         .tag = 1ull << 63,
         .total = CW_MESSAGE_MAX,
         .contents = UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
        const struct log_record *r = &records[i];
        uint8_t bytes[LOG_RECORD_MAX + 8] = {0};
        struct log_record back;
        uint64_t carries = log_record_carries(r);
        uint32_t size = log_record_put(bytes, r);

        CU_ASSERT_TRUE(size <= LOG_RECORD_MAX);
        memcpy(bytes + size, r->bytes ? r->bytes : bytes, carries);
        CU_ASSERT_EQUAL(log_record_get(bytes, sizeof(bytes), &back), size + carries);
        CU_ASSERT_TRUE(carries == 0 || memcmp(back.bytes, r->bytes, carries) == 0);
        back.bytes = r->bytes;
        back.whole = 0;
        CU_ASSERT_EQUAL(memcmp(&back, r, sizeof(back)), 0);
        for (uint32_t less = 0; less < size + carries; less++)
            CU_ASSERT_EQUAL(log_record_get(bytes, less, &back), 0);
    }
}

/* --- events ----------------------------------------------------------------------------------- */
/* Whether the payload of an event is the pattern of its tag. */
static bool payload_is_right(const struct log_event *event)
{
    struct log_reading reading = log_read(event);
    struct log_piece piece;

    for (uint64_t at = 0; reading.left > 0; at += piece.size) {
        if (log_read_piece(&kept, &reading, &piece) != CHAIN_HERE || piece.size == 0 ||
            piece.size > CW_FRAME_DATA_MAX)
            return false;
        for (uint32_t i = 0; i < piece.size; i++)
            if (piece.at[i] != codec_pattern_at(event->tag, at + i))
                return false;
    }
    return true;
}

static bool next_is_message(struct log_cursor *cursor, const struct cw_message *m, uint64_t size)
{
    struct log_event event;

    return log_next_event(&kept, cursor, &event) == CHAIN_HERE && payload_is_right(&event) &&
           event.type == LOG_PASSED && event.tag == m->tag && event.total == m->total &&
           event.req == m->req && event.size == size &&
           event.flags == (m->flags & (CW_MESSAGE_TRUNC | CW_MESSAGE_ACTIVE));
}

/* Around every bound: nothing, the last that is copied, the first that is not, a whole frame. */
TEST(messages_of_many_sizes)
{
    static const uint64_t sizes[] = {0,    1,    7,    8,     9,      2047,
                                     4095, 4096, 4097, 16385, 100000, CW_FRAME_DATA_MAX};
    struct log_cursor cursor = {0};
    struct log_event event;
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
    CU_ASSERT_EQUAL(log_next_event(&kept, &cursor, &event), CHAIN_END);
    log_free(&kept);
    CU_ASSERT_EQUAL(block->refs, 1);
    relay_block_release(block);
    finish();
}

/* What is kept belongs to the log alone: the block that it came in outlives its connection until
 * then. */
TEST(payload_whose_block_goes)
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

/* Three senders speak at once, each in its order; a receive has room for some of it or for all. */
TEST(messages_in_parts)
{
    enum { SENDERS = 3, PART = 30000, PARTS = 20 };

    for (uint64_t size = 0; size <= PART * PARTS; size += PART * PARTS / 4) {
        struct log_cursor cursor = {0};
        struct relay_block *block;
        uint64_t records[SENDERS];
        struct cw_message m = {.req = 1, .total = PART * PARTS};
        struct log_event event;

        start(MEMORY);
        for (uint32_t src = 0; src < SENDERS; src++)
            CU_ASSERT_EQUAL(
                log_append(&kept,
                           &(struct log_record){
                               .type = LOG_MESSAGE, .src = src, .tag = src, .total = m.total},
                           &records[src]),
                CW_OK);
        for (uint32_t i = 0; i < PARTS * SENDERS; i++) {
            uint32_t src = i % SENDERS;
            uint32_t n = i / SENDERS % 7 == 3 ? 100 : PART; /* some stand in the record */
            struct message_slice slices[2];
            uint64_t begin = i / SENDERS * PART;

            block = relay_block_new(&pool, false);
            for (uint32_t done = 0; done < PART; done += n, n = PART - done) {
                int count;

                codec_pattern(block->bytes, src, begin + done, n);
                count = log_part(&kept, src, block->bytes, n, block, i % 2 ? slices : NULL);
                CU_ASSERT_TRUE(count >= 0 && count <= 2 && (i % 2 || count == 0 || n > 100));
                copies_pay_all(&copies);
                while (i % 2 && count > 0)
                    relay_block_release(slices[--count].block);
            }
            relay_block_release(block);
        }
        m.flags = size < m.total ? CW_MESSAGE_TRUNC : 0;
        for (m.tag = SENDERS; m.tag-- > 0;)
            CU_ASSERT_EQUAL(log_matched(&kept, &m, records[m.tag], 0, size), CW_OK);
        for (m.tag = SENDERS; m.tag-- > 0;)
            CU_ASSERT_TRUE(next_is_message(&cursor, &m, size));
        CU_ASSERT_EQUAL(log_next_event(&kept, &cursor, &event), CHAIN_END);
        finish();
    }
}

/* A log that is given up in the meantime takes nothing away from copies that are owed for it. */
TEST(log_that_goes_before_its_copies)
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

TEST(other_events)
{
    struct cw_message m = {.req = 5, .tag = 6, .total = 3};
    uint8_t bytes[3];
    struct log_cursor cursor = {0};
    struct log_event event;

    start(MEMORY);
    codec_pattern(bytes, 6, 0, 3);
    CU_ASSERT_EQUAL(log_done(&kept, LOG_SENT, UINT32_MAX), CW_OK);
    CU_ASSERT_EQUAL(log_message(&kept, &m, bytes, 3, NULL), CW_OK);
    CU_ASSERT_EQUAL(log_done(&kept, LOG_CANCELED, 8), CW_OK);
    CU_ASSERT_EQUAL_FATAL(log_next_event(&kept, &cursor, &event), CHAIN_HERE);
    CU_ASSERT_TRUE(event.type == LOG_SENT && event.req == UINT32_MAX);
    CU_ASSERT_TRUE(next_is_message(&cursor, &m, 3));
    CU_ASSERT_EQUAL_FATAL(log_next_event(&kept, &cursor, &event), CHAIN_HERE);
    CU_ASSERT_TRUE(event.type == LOG_CANCELED && event.req == 8);
    CU_ASSERT_EQUAL(log_next_event(&kept, &cursor, &event), CHAIN_END);
    CU_ASSERT_EQUAL(cursor.event, 3);
    finish();
}

/* --- determinants ----------------------------------------------------------------------------- */
/* Values at the edges of what a byte, two bytes, ... of a number hold. */
TEST(numbers_of_every_size)
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
        CU_ASSERT_EQUAL_FATAL(log_next_determinant(&kept, &cursor, &d), CHAIN_HERE);
        CU_ASSERT_TRUE(d.type == LOG_TAKEN && d.events == 1 && d.clock == clock);
    }
    CU_ASSERT_EQUAL_FATAL(log_next_determinant(&kept, &cursor, &d), CHAIN_HERE);
    CU_ASSERT_TRUE(d.type == LOG_TAKEN && d.events == UINT64_MAX - 62 && d.clock == UINT64_MAX);
    CU_ASSERT_EQUAL(log_next_determinant(&kept, &cursor, &d), CHAIN_END);
    kept.event_count = 0;
    finish();
}

TEST(answers_and_readings)
{
    struct cw_probed answer = {
        .clock = 77, .found = 1, .msg = UINT32_MAX, .tag = UINT64_MAX - 1, .total = CW_MESSAGE_MAX};
    static uint8_t bytes[CW_READINGS_MAX];
    struct log_cursor cursor = {0};
    struct log_determinant d;

    start(MEMORY);
    kept.event_count = 5;
    codec_pattern(bytes, 4, 0, sizeof(bytes));
    CU_ASSERT_EQUAL(put_readings(bytes, 1), CW_OK);
    CU_ASSERT_EQUAL(log_taken(&kept, 2, 70), CW_OK);
    CU_ASSERT_EQUAL(put_answer(&answer), CW_OK);
    CU_ASSERT_EQUAL(put_readings(bytes, sizeof(bytes)), CW_OK);
    CU_ASSERT_EQUAL(log_taken(&kept, 5, 77), CW_OK);
    CU_ASSERT_EQUAL_FATAL(log_next_determinant(&kept, &cursor, &d), CHAIN_HERE);
    CU_ASSERT_TRUE(d.type == LOG_READINGS && d.size == 1 && d.bytes[0] == bytes[0]);
    CU_ASSERT_EQUAL_FATAL(log_next_determinant(&kept, &cursor, &d), CHAIN_HERE);
    CU_ASSERT_TRUE(d.type == LOG_TAKEN && d.events == 2 && d.clock == 70);
    CU_ASSERT_EQUAL_FATAL(log_next_determinant(&kept, &cursor, &d), CHAIN_HERE);
    CU_ASSERT_TRUE(d.type == LOG_ANSWER && d.answer.clock == 77 && d.answer.found == 1 &&
                   d.answer.msg == answer.msg && d.answer.tag == answer.tag &&
                   d.answer.total == answer.total);
    CU_ASSERT_EQUAL_FATAL(log_next_determinant(&kept, &cursor, &d), CHAIN_HERE);
    CU_ASSERT_TRUE(d.type == LOG_READINGS && d.size == sizeof(bytes) &&
                   codec_pattern_is(d.bytes, 4, sizeof(bytes)));
    CU_ASSERT_EQUAL_FATAL(log_next_determinant(&kept, &cursor, &d), CHAIN_HERE);
    CU_ASSERT_TRUE(d.type == LOG_TAKEN && d.events == 3 && d.clock == 77);
    CU_ASSERT_EQUAL(log_next_determinant(&kept, &cursor, &d), CHAIN_END);
    kept.event_count = 0;
    finish();
}

/* --- sends ------------------------------------------------------------------------------------ */
TEST(sends)
{
    static const struct cw_send said[] = {
        {.dst = 0, .kind = CW_SEND_TAG, .tag = 0, .total = 0},
        {.dst = CW_RANKS_MAX - 1, .kind = CW_SEND_AM, .tag = UINT64_MAX, .total = CW_MESSAGE_MAX},
        {.dst = 1, .kind = CW_SEND_SYNC, .tag = 1, .total = 1, .contents = 1ull << 63},
        {.dst = CW_RANKS_MAX - 1, .kind = CW_SEND_TAG, .tag = 7, .total = 0},
    };
    struct log_cursor cursor = {0};
    struct log_determinant d;

    start(MEMORY);
    CU_ASSERT_EQUAL(log_next_determinant(&kept, &cursor, &d), CHAIN_END);
    for (int i = 0; i < 400; i++)
        CU_ASSERT_EQUAL(put_send(&said[i % 4]), CW_OK);
    CU_ASSERT_EQUAL(kept.send_count, 400);
    for (int i = 0; i < 400; i++) {
        CU_ASSERT_EQUAL_FATAL(log_next_determinant(&kept, &cursor, &d), CHAIN_HERE);
        CU_ASSERT_EQUAL(d.type, LOG_SEND);
        CU_ASSERT_EQUAL(memcmp(&d.send, &said[i % 4], sizeof(d.send)), 0);
        CU_ASSERT_EQUAL(cursor.send, i + 1);
    }
    CU_ASSERT_EQUAL(log_next_determinant(&kept, &cursor, &d), CHAIN_END);
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
        return put_readings(block->bytes, 1 + i % 300);
    case 3:
        return put_answer(&answer);
    default:
        return put_send(&send);
    }
}

static bool read_items(const uint32_t *items, uint32_t count)
{
    struct log_cursor cursor = {0};
    struct log_determinant d;
    bool right = true;

    for (uint32_t n = 0; n < count && right; n++) {
        uint32_t i = items[n];
        struct cw_message m = {.req = i, .tag = 2, .total = i * 67 % 40000};

        if (i % 5 == 0)
            right = next_is_message(&cursor, &m, m.total);
        else
            right = log_next_determinant(&kept, &cursor, &d) == CHAIN_HERE &&
                    (d.type != LOG_TAKEN || d.clock == i) &&
                    (d.type != LOG_READINGS || codec_pattern_is(d.bytes, 2, 1 + i % 300)) &&
                    (d.type != LOG_ANSWER || d.answer.tag == i) &&
                    (d.type == LOG_SEND) == (i % 5 == 4) && (d.type != LOG_SEND || d.send.tag == i);
    }
    return right && log_next_determinant(&kept, &cursor, &d) == CHAIN_END;
}

/* Somebody else takes the memory now and then: what was refused is as if it had never been. */
TEST(without_memory_now_and_then)
{
    static uint32_t items[ITEMS];
    struct relay_block *block;
    uint32_t count = 0;
    uint32_t refused = 0;

    start(MEMORY);
    block = block_of_pattern(2);
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint64_t taken = below(2) ? MEMORY - stats.memory_now - below(600) : 0;
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
            CU_ASSERT_TRUE(kept.clock == clock && block->refs == refs);
        }
        stats.memory_now -= taken;
    }
    CU_ASSERT_TRUE(refused > 3 && count > ITEMS / 3);
    CU_ASSERT_TRUE(read_items(items, count));
    log_free(&kept);
    CU_ASSERT_EQUAL(block->refs, 1);
    relay_block_release(block);
    finish();
}
