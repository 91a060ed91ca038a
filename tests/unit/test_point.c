/* The points of a log: what is read from one is what was written after it, byte for byte, before
 * and after the log was trimmed to it; what was only needed before is free. */
#include "relay/log/point.h"
#include "tests/lib/codec.h"
#include "tests/lib/fake_disk.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("points of a log");

#define MEMORY (256u << 20)
#define STEPS 1200u
#define SENDERS 6u
#define SLICES 128u

static struct cw_relay_stats stats;
static struct relay_memory memory;
static struct relay_pool pool;
static struct owed_copies copies;
static struct log_store store;
static struct fake_disk disk;
static struct relay_log kept;
static uint64_t seed;

/* A message that is not an event yet. Its tag is its pattern. */
struct message {
    bool under_way;
    struct cw_send send;
    uint64_t arrived;
    uint64_t record;
    uint64_t floor;
    struct message_slice slices[SLICES];
    uint32_t slice_count;
};

/* All that was written. */
static struct message senders[SENDERS];
static struct log_event events[STEPS];
static struct log_determinant determinants[STEPS];
static uint8_t readings[256];
static uint64_t sent[STEPS];
static uint64_t tags;
static uint64_t clock;
static uint64_t acts;

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
}

static void start(uint64_t from, uint64_t log_memory, uint64_t log_disk)
{
    memset(&stats, 0, sizeof(stats));
    memset(senders, 0, sizeof(senders));
    memory = (struct relay_memory){.memory_max = MEMORY, .stats = &stats};
    pool = (struct relay_pool){.memory = &memory};
    copies = (struct owed_copies){0};
    store_init(&store, &pool, NULL, log_memory, log_disk);
    log_init(&kept, &pool, &store, &copies, true);
    disk = (struct fake_disk){.seed = from};
    seed = from;
    tags = clock = acts = 0;
    codec_pattern(readings, 1, 0, sizeof(readings));
}

static bool serve_one(void)
{
    struct relay_log_done done;
    struct relay_log_io io;

    copies_pay_all(&copies);
    while (store_next_io(&store, &io))
        fake_disk_take(&disk, &io);
    if (!fake_disk_done(&disk, &done))
        return false;
    store_io_done(&store, &done);
    store_end_round(&store);
    return true;
}

static void forget(struct message *message)
{
    while (message->slice_count > 0)
        relay_block_release(message->slices[--message->slice_count].block);
    message->under_way = false;
}

static void finish(void)
{
    for (uint32_t src = 0; src < SENDERS; src++)
        forget(&senders[src]);
    log_free(&kept);
    copies_pay_all(&copies);
    while (serve_one())
        ;
    store_fini(&store);
    fake_disk_fini(&disk);
    relay_memory_fini(&memory);
    CU_ASSERT_EQUAL(stats.memory_now, 0);
    CU_ASSERT_EQUAL(pool.log_bytes, 0);
}

/* --- writing ------------------------------------------------------------------------------------
 */
static struct relay_block *pattern_block(uint64_t tag, uint64_t from, size_t size)
{
    struct relay_block *block = relay_block_new(&pool, false);

    CU_ASSERT_PTR_NOT_NULL_FATAL(block);
    codec_pattern(block->bytes, tag, from, size);
    return block;
}

static uint64_t some_size(void)
{
    static const uint64_t most[] = {1, 100, 5000, 60000};

    return below(most[below(4)]);
}

static void pass(void)
{
    struct cw_message m = {.req = (uint32_t)acts, .tag = ++tags, .total = some_size()};
    struct relay_block *block = pattern_block(m.tag, 0, m.total);

    events[kept.event_count] = (struct log_event){
        .type = LOG_PASSED, .req = m.req, .tag = m.tag, .total = m.total, .size = m.total};
    CU_ASSERT_EQUAL(log_message(&kept, &m, block->bytes, (uint32_t)m.total, block), CW_OK);
    relay_block_release(block);
}

static void done(void)
{
    events[kept.event_count] = (struct log_event){.type = LOG_SENT, .req = (uint32_t)acts};
    CU_ASSERT_EQUAL(log_done(&kept, LOG_SENT, (uint32_t)acts), CW_OK);
}

static bool is_small(const struct message *message)
{
    return message->send.total < 1000;
}

static void begin(struct message *message, uint32_t src)
{
    message->under_way = true;
    message->arrived = 0;
    message->send = (struct cw_send){
        .kind = CW_SEND_TAG, .tag = ++tags, .total = 1 + below(2) * 300000 + below(500)};
    CU_ASSERT_EQUAL(log_append(&kept,
                               &(struct log_record){.type = LOG_MESSAGE,
                                                    .src = src,
                                                    .kind = CW_SEND_TAG,
                                                    .tag = message->send.tag,
                                                    .total = message->send.total},
                               &message->record),
                    CW_OK);
    message->floor = chain_next(&kept.payload);
}

static void more(struct message *message, uint32_t src)
{
    struct message_slice *slices =
        is_small(message) ? NULL : &message->slices[message->slice_count];
    uint64_t size = 1 + below(60000);
    struct relay_block *block;
    int count;

    if (size > message->send.total - message->arrived)
        size = message->send.total - message->arrived;
    block = pattern_block(message->send.tag, message->arrived, size);
    CU_ASSERT_TRUE_FATAL(message->slice_count + LOG_PART_SLICES <= SLICES);
    count = log_part(&kept, src, block->bytes, (uint32_t)size, block, slices);
    CU_ASSERT_TRUE(count >= 0);
    if (slices)
        message->slice_count += (uint32_t)count;
    message->arrived += size;
    relay_block_release(block);
}

static void match(struct message *message)
{
    struct cw_message m = {
        .req = (uint32_t)acts, .tag = message->send.tag, .total = message->send.total};
    uint64_t size = below(3) ? m.total : m.total / 2;

    events[kept.event_count] = (struct log_event){
        .type = LOG_PASSED, .req = m.req, .tag = m.tag, .total = m.total, .size = size};
    CU_ASSERT_EQUAL(log_matched(&kept, &m, message->record, message->floor, size), CW_OK);
    forget(message);
}

/* It waits for a while when it is whole. */
static void speak(uint32_t src)
{
    struct message *message = &senders[src];

    if (!message->under_way)
        begin(message, src);
    else if (message->arrived < message->send.total)
        more(message, src);
    else if (below(8) == 0)
        match(message);
}

static void take(uint64_t event)
{
    if (event <= kept.taken)
        return;
    clock += 1 + below(1000);
    determinants[kept.determinant_count] =
        (struct log_determinant){.type = LOG_TAKEN, .events = event - kept.taken, .clock = clock};
    CU_ASSERT_EQUAL(log_taken(&kept, event, clock), CW_OK);
}

static void read_clock(void)
{
    uint32_t size = 1 + (uint32_t)below(sizeof(readings));

    determinants[kept.determinant_count] =
        (struct log_determinant){.type = LOG_READINGS, .size = size};
    CU_ASSERT_EQUAL(
        log_put(&kept, &(struct log_record){.type = LOG_READINGS, .size = size, .bytes = readings}),
        CW_OK);
}

static void send_one(void)
{
    const struct log_record send = {.type = LOG_SEND, .kind = CW_SEND_TAG, .tag = acts};

    sent[kept.send_count] = acts;
    CU_ASSERT_EQUAL(log_put(&kept, &send), CW_OK);
}

static void step(void)
{
    acts++;
    switch (below(12)) {
    case 0:
    case 1:
        pass();
        break;
    case 2:
        done();
        break;
    case 3:
        take(kept.taken + below(kept.event_count - kept.taken + 1));
        break;
    case 4:
        read_clock();
        break;
    case 5:
        send_one();
        break;
    default:
        speak((uint32_t)below(SENDERS));
    }
    copies_pay_all(&copies);
    if (below(4) == 0)
        serve_one();
}

/* --- points -------------------------------------------------------------------------------------
 */
static void put(const struct log_record *record)
{
    uint64_t position;

    CU_ASSERT_EQUAL(log_append(&kept, record, &position), CW_OK);
}

static void hold_bytes(const struct message *message)
{
    uint8_t bytes[1000];

    if (is_small(message) && message->arrived > 0) {
        codec_pattern(bytes, message->send.tag, 0, message->arrived);
        put(&(struct log_record){.type = LOG_HELD_PART, .size = message->arrived, .bytes = bytes});
    }
    for (uint32_t i = 0; i < message->slice_count; i++) {
        const struct message_slice *slice = &message->slices[i];
        uint64_t at = chain_position(slice->block->mark.number, slice->at);

        CU_ASSERT_TRUE(log_pin(&kept, at, log_point_last(&kept)->position));
        put(&(struct log_record){
            .type = LOG_HELD_PART, .placed = true, .size = slice->size, .at = at});
    }
}

static void point(void)
{
    struct cw_point at = {.event = kept.taken, .clock = ++clock, .acts = acts};

    CU_ASSERT_EQUAL(log_point_begin(&kept, &at), CW_OK);
    for (uint32_t src = 0; src < SENDERS; src++) {
        struct message *m = &senders[src];

        if (!m->under_way)
            continue;
        CU_ASSERT_EQUAL(log_append(&kept,
                                   &(struct log_record){.type = LOG_HELD,
                                                        .src = src,
                                                        .kind = m->send.kind,
                                                        .tag = m->send.tag,
                                                        .total = m->send.total,
                                                        .at = m->floor},
                                   &m->record),
                        CW_OK);
        hold_bytes(m);
        put(&(struct log_record){.type = LOG_HELD_END});
    }
}

/* --- reading ------------------------------------------------------------------------------------
 */
/* False: it is to be asked again. */
static bool is_here(enum chain_found found)
{
    if (found == CHAIN_AWAY) {
        CU_ASSERT_TRUE_FATAL(serve_one());
        return false;
    }
    CU_ASSERT_EQUAL_FATAL(found, CHAIN_HERE);
    return true;
}

static void check_payload(const struct log_event *event)
{
    struct log_reading reading = log_read(event);

    while (reading.left > 0) {
        uint64_t at = event->size - reading.left;
        struct log_piece piece;

        if (!is_here(log_read_piece(&kept, &reading, &piece)))
            continue;
        for (uint32_t i = 0; i < piece.size; i++)
            if (piece.at[i] != codec_pattern_at(event->tag, at + i))
                CU_FAIL_FATAL("other bytes than were written");
    }
}

static void check_events(struct log_cursor cursor, uint64_t taken)
{
    while (cursor.event < kept.event_count) {
        const struct log_event *expected = &events[cursor.event];
        struct log_event event;

        if (!is_here(log_next_event(&kept, &cursor, &event)))
            continue;
        CU_ASSERT_TRUE(event.type == expected->type && event.req == expected->req &&
                       event.tag == expected->tag && event.total == expected->total &&
                       event.size == expected->size);
        if (cursor.event > taken)
            check_payload(&event);
    }
}

/* And sends. */
static void check_determinants(struct log_cursor cursor, uint64_t count)
{
    while (count < kept.determinant_count || cursor.send < kept.send_count) {
        const struct log_determinant *expected = &determinants[count];
        struct log_determinant d;

        if (!is_here(log_next_determinant(&kept, &cursor, &d)))
            continue;
        if (d.type == LOG_SEND) {
            CU_ASSERT_EQUAL(d.send.tag, sent[cursor.send - 1]);
            continue;
        }
        count++;
        CU_ASSERT_TRUE(d.type == expected->type && d.events == expected->events &&
                       d.clock == expected->clock && d.size == expected->size);
        if (d.type == LOG_READINGS)
            CU_ASSERT_EQUAL(memcmp(d.bytes, readings, d.size), 0);
    }
}

static void check_from(const struct log_point *from)
{
    check_events(from->from, from->at.event);
    check_determinants(from->from, from->determinant_count);
}

static void check_all(void)
{
    if (log_is_whole(&kept)) {
        check_events((struct log_cursor){0}, 0);
        check_determinants((struct log_cursor){0}, 0);
    }
    for (uint32_t i = 0; kept.points && i < kept.points->count; i++)
        check_from(&kept.points->at[i]);
}

/* --- stories ------------------------------------------------------------------------------------
 */
static void trim_to_any(void)
{
    const struct log_points *points = kept.points;
    uint64_t bytes = kept.bytes;
    struct cw_point at;

    if (!points || points->count == 0)
        return;
    at = points->at[below(points->count)].at;
    log_trim(&kept, log_point_find(&kept, &at));
    CU_ASSERT_TRUE(kept.bytes <= bytes);
    CU_ASSERT_EQUAL(kept.bytes, pool.log_bytes);
    CU_ASSERT_TRUE(points->trimmed && points->at[0].at.clock == at.clock);
}

static void random_stream(uint64_t from, uint64_t log_memory, uint64_t log_disk)
{
    start(from, log_memory, log_disk);
    for (uint32_t i = 0; i < STEPS; i++) {
        step();
        if (below(40) == 0)
            point();
        if (below(60) == 0)
            trim_to_any();
        if (below(100) == 0)
            check_all();
    }
    check_all();
    finish();
}

TEST(streams_in_memory)
{
    for (uint64_t i = 1; i <= 30; i++)
        random_stream(i, MEMORY, 0);
}

TEST(streams_on_disk)
{
    for (uint64_t i = 1; i <= 30; i++)
        random_stream(i, 1u << 20, 256u << 20);
}

/* A point at every step of one stream, and the log trimmed to each of them. */
TEST(trimmed_at_every_step)
{
    start(7, MEMORY, 0);
    for (uint32_t i = 0; i < STEPS / 2; i++) {
        step();
        point();
        check_all();
        log_trim(&kept, log_point_last(&kept));
        check_all();
    }
    finish();
}

static void take_all(void)
{
    for (uint32_t src = 0; src < SENDERS; src++)
        if (senders[src].under_way && senders[src].arrived == senders[src].send.total)
            match(&senders[src]);
    take(kept.event_count);
}

static uint32_t places_in_use(void)
{
    return store.extents - store.free_count;
}

/* Nothing is held: no more than the segment that is being filled stays, and one before it. */
TEST(memory_and_disk_are_free)
{
    start(3, 1u << 20, 256u << 20);
    for (uint32_t i = 0; i < STEPS; i++)
        step();
    for (uint32_t src = 0; src < SENDERS; src++)
        while (senders[src].under_way && senders[src].arrived < senders[src].send.total)
            more(&senders[src], src);
    take_all();
    while (serve_one())
        ;
    CU_ASSERT_TRUE(places_in_use() > 20);
    point();
    log_trim(&kept, log_point_last(&kept));
    while (serve_one())
        ;
    CU_ASSERT_TRUE(kept.records.count <= 2 && kept.payload.count == 1);
    CU_ASSERT_TRUE(places_in_use() <= 2);
    CU_ASSERT_TRUE(store.memory_now <= 3 * STORE_SEGMENT_BYTES);
    check_all();
    finish();
}

/* A large message that waits for ever keeps its own segments, and nothing else. */
TEST(message_that_waits)
{
    struct message *waits = &senders[0];

    start(5, MEMORY, 0);
    begin(waits, 0);
    waits->send.total = 300000;
    while (waits->arrived < waits->send.total)
        more(waits, 0);
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < 80; i++)
            pass();
        take(kept.event_count);
        point();
        log_trim(&kept, log_point_last(&kept));
        CU_ASSERT_TRUE(kept.bytes < 300000 + 4 * STORE_SEGMENT_BYTES);
    }
    match(waits);
    check_all();
    finish();
}

TEST(oldest_point_is_forgotten)
{
    struct cw_point first;

    start(1, MEMORY, 0);
    for (uint32_t i = 0; i < LOG_POINTS_MAX + 1; i++) {
        step();
        point();
        if (i == 0)
            first = log_point_last(&kept)->at;
    }
    CU_ASSERT_PTR_NULL(log_point_find(&kept, &first));
    CU_ASSERT_TRUE(log_is_whole(&kept));
    first = kept.points->at[0].at;
    log_trim(&kept, log_point_find(&kept, &first));
    for (uint32_t i = 0; i < 2 * LOG_POINTS_MAX; i++)
        point();
    CU_ASSERT_EQUAL(kept.points->count, LOG_POINTS_MAX);
    CU_ASSERT_PTR_NOT_NULL(log_point_find(&kept, &first));
    log_points_forget(&kept, 0);
    CU_ASSERT_EQUAL(kept.points->count, 1);
    CU_ASSERT_PTR_EQUAL(log_point_last(&kept), log_point_find(&kept, &first));
    check_all();
    finish();
}
