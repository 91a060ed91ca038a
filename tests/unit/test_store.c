/* The store of logs: what is full goes to disk in order, its memory is used again, and it comes
 * back as it was, whatever order the disk works in; what cannot be written or read harms nothing
 * else. */
#include "relay/log/store.h"
#include "tests/lib/codec.h"
#include "tests/lib/fake_disk.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#define MEMORY (64u << 20)
#define SEGMENT STORE_SEGMENT_BYTES
#define SEGMENTS_MAX 64u
#define PAGE 4096u

static struct cw_relay_stats stats;
static struct relay_memory memory;
static struct relay_pool pool;
static struct log_store store;
static struct fake_disk disk;
static uint64_t seed;

/* Sizes are in segments. */
static void start(uint32_t memory_max, uint32_t disk_max)
{
    memset(&stats, 0, sizeof(stats));
    memory = (struct relay_memory){.memory_max = MEMORY, .stats = &stats};
    pool = (struct relay_pool){.memory = &memory};
    store_init(&store, &pool, NULL, (uint64_t)memory_max * SEGMENT, (uint64_t)disk_max * SEGMENT);
    disk = (struct fake_disk){.seed = 1};
    seed = 1;
}

static void finish(void)
{
    if (!store.pool)
        return; /* a test that begins several times has ended it */
    store_fini(&store);
    CU_ASSERT_EQUAL(store.memory_now, 0);
    CU_ASSERT_EQUAL(store.clean_now, 0);
    fake_disk_fini(&disk);
    relay_memory_fini(&memory);
    CU_ASSERT_EQUAL(stats.memory_now, 0);
    CU_ASSERT_EQUAL(pool.held, 0);
    store.pool = NULL;
}

SUITE_AFTER_EACH("store", finish);

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
}

/* --- segments with a number ------------------------------------------------------------------- */
static void fill(struct log_segment *segment, uint64_t number)
{
    memset(segment->bytes, (int)number, segment->size);
    for (uint32_t at = 0; at < segment->size; at += PAGE)
        memcpy(segment->bytes + at, &number, sizeof(number));
    memcpy(segment->bytes + segment->size - sizeof(number), &number, sizeof(number));
    segment->used = segment->size;
}

static bool is_of(const struct log_segment *segment, uint64_t number)
{
    for (uint32_t at = 0; at < segment->size; at += PAGE)
        if (memcmp(segment->bytes + at, &number, sizeof(number)) != 0 ||
            segment->bytes[at + PAGE / 2] != (uint8_t)number)
            return false;
    return memcmp(segment->bytes + segment->size - sizeof(number), &number, sizeof(number)) == 0;
}

static struct log_segment *add(uint64_t number)
{
    struct log_segment *segment = store_new(&store, &pool, SEGMENT, false);

    CU_ASSERT_PTR_NOT_NULL_FATAL(segment);
    CU_ASSERT_PTR_EQUAL(segment->bytes, segment->block->bytes);
    fill(segment, number);
    store_seal(&store, segment);
    return segment;
}

/* Those from `first` on, each with its place as its number. */
static void add_some(struct log_segment **segments, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        segments[i] = add(i);
}

static void drop_all(struct log_segment **segments, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        store_drop(&store, segments[i]);
}

/* --- the disk --------------------------------------------------------------------------------- */
static uint32_t take(void)
{
    struct relay_log_io io;
    uint32_t count = 0;

    for (; store_next_io(&store, &io); count++)
        fake_disk_take(&disk, &io);
    return count;
}

static bool done_one(void)
{
    struct relay_log_done done;

    if (!fake_disk_done(&disk, &done))
        return false;
    store_io_done(&store, &done);
    return true;
}

static void settle(void)
{
    do
        take();
    while (done_one());
}

/* It is in memory then, or LOST. */
static bool bring(struct log_segment *segment)
{
    while (!store_want(&store, segment) && segment->state != SEGMENT_LOST) {
        take();
        if (!done_one())
            return false;
    }
    return segment->state != SEGMENT_LOST;
}

/* Looks at it, as one who waited for it. */
static bool comes_back(struct log_segment *segment, uint64_t number)
{
    bool right = bring(segment) && is_of(segment, number);

    store_end_round(&store);
    return right;
}

static uint32_t count_of(struct log_segment *const *segments, uint32_t count, uint8_t state)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++)
        n += segments[i]->state == state;
    return n;
}

/* --- to disk ---------------------------------------------------------------------------------- */
TEST(written_in_order)
{
    struct log_segment *segments[16];
    struct relay_log_io io;
    uint32_t next = 0;

    start(16, 100);
    CU_ASSERT_EQUAL(store.memory_begin, 8 * SEGMENT);
    add_some(segments, 0, 4);
    CU_ASSERT_FALSE(store_next_io(&store, &io));
    add_some(segments, 4, 12);
    for (; store_next_io(&store, &io); next++) {
        CU_ASSERT_PTR_EQUAL_FATAL(io.segment, segments[next]);
        CU_ASSERT_PTR_EQUAL(io.at, segments[next]->bytes);
        CU_ASSERT_TRUE(io.write && io.size == SEGMENT && io.offset % STORE_ALIGN == 0);
        CU_ASSERT_EQUAL((uintptr_t)io.at % STORE_ALIGN, 0);
        fake_disk_take(&disk, &io);
        CU_ASSERT_TRUE_FATAL(done_one());
    }
    CU_ASSERT_TRUE(next >= 8 && next < 16);
    CU_ASSERT_EQUAL(store.memory_now, 16 * SEGMENT);
    CU_ASSERT_EQUAL(store.clean_now, next * SEGMENT);
    drop_all(segments, 16);
}

/* The budget is far off, and there is enough in memory all the same. */
TEST(begins_before_a_large_budget)
{
    start(8192, 8192);
    CU_ASSERT_EQUAL(store.memory_begin, STORE_BEGIN_MAX);
}

TEST(small_ones_stay)
{
    struct log_segment *segments[32];
    struct relay_log_io io;

    start(2, 100);
    for (uint32_t i = 0; i < 32; i++) {
        segments[i] = store_new(&store, &pool, SEGMENT / 4, false);
        CU_ASSERT_PTR_NOT_NULL_FATAL(segments[i]);
        CU_ASSERT_PTR_NULL(segments[i]->block);
        store_seal(&store, segments[i]);
    }
    CU_ASSERT_EQUAL(store.memory_now, 8 * SEGMENT);
    CU_ASSERT_FALSE(store_next_io(&store, &io));
    CU_ASSERT_TRUE(store_want(&store, segments[0]));
    CU_ASSERT_TRUE(store_spent(&store));
    drop_all(segments, 32);
    CU_ASSERT_FALSE(store_spent(&store));
}

TEST(without_a_disk)
{
    struct log_segment *segments[5];
    struct relay_log_io io;

    start(4, 0);
    add_some(segments, 0, 4);
    CU_ASSERT_FALSE(store_spent(&store));
    add_some(segments, 4, 1);
    CU_ASSERT_FALSE(store_next_io(&store, &io));
    CU_ASSERT_FALSE(store_waits(&store));
    CU_ASSERT_TRUE(store_spent(&store));
    for (uint32_t i = 0; i < 5; i++)
        CU_ASSERT_TRUE(store_want(&store, segments[i]) && is_of(segments[i], i));
    drop_all(segments, 5);
}

/* --- and back --------------------------------------------------------------------------------- */
TEST(come_back_in_any_order)
{
    enum { COUNT = 24 };
    struct log_segment *segments[COUNT];

    for (uint64_t order = 1; order <= 4; order++) {
        start(6, 100);
        seed = disk.seed = order;
        for (uint32_t i = 0; i < COUNT; i++) {
            segments[i] = add(i);
            settle();
            CU_ASSERT_TRUE(store.memory_now <= 6 * SEGMENT);
        }
        CU_ASSERT_TRUE(count_of(segments, COUNT, SEGMENT_COLD) >= COUNT - 6);
        for (uint32_t i = 0; i < COUNT; i++)
            CU_ASSERT_TRUE(comes_back(segments[i], i));
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t any = (uint32_t)below(COUNT);

            CU_ASSERT_TRUE(comes_back(segments[any], any));
            CU_ASSERT_TRUE(store.memory_now <= 6 * SEGMENT);
        }
        drop_all(segments, COUNT);
        finish();
    }
}

/* Many are asked for at once; each that arrives is there until the round ends. */
TEST(asked_for_at_once)
{
    struct log_segment *segments[32];
    uint32_t arrived = 0;

    start(4, 100);
    for (uint32_t i = 0; i < 32; i++) {
        segments[i] = add(i);
        settle();
    }
    for (uint32_t i = 0; i < 24; i++)
        CU_ASSERT_FALSE(store_want(&store, segments[i]));
    CU_ASSERT_EQUAL(take(), STORE_IO_MAX);
    while (done_one()) {
        CU_ASSERT_TRUE(store.arrived);
        for (uint32_t i = 0; i < 24; i++)
            if (segments[i]->state == SEGMENT_CLEAN && segments[i]->round == store.round) {
                CU_ASSERT_TRUE(store_want(&store, segments[i]) && is_of(segments[i], i));
                arrived++;
            }
        store_end_round(&store);
        CU_ASSERT_FALSE(store.arrived);
        take();
    }
    CU_ASSERT_EQUAL(arrived, 24);
    store_trim(&store);
    CU_ASSERT_TRUE(store.memory_now <= 4 * SEGMENT);
    drop_all(segments, 32);
}

/* Not let go of before those who waited for it have seen it. */
TEST(stays_until_the_round_ends)
{
    struct log_segment *segments[20];

    start(2, 100);
    for (uint32_t i = 0; i < 10; i++) {
        segments[i] = add(i);
        settle();
    }
    CU_ASSERT_TRUE(bring(segments[0]));
    add_some(segments, 10, 10);
    store_trim(&store);
    CU_ASSERT_TRUE(segments[0]->bytes && is_of(segments[0], 0));
    store_end_round(&store);
    settle();
    store_trim(&store);
    CU_ASSERT_EQUAL(segments[0]->state, SEGMENT_COLD);
    drop_all(segments, 20);
}

/* --- who else holds it ------------------------------------------------------------------------ */
TEST(held_by_others)
{
    struct log_segment *segments[40];
    struct relay_block *block;

    start(4, 100);
    segments[0] = add(0);
    block = segments[0]->block;
    block->refs++;
    for (uint32_t i = 1; i < 20; i++) {
        segments[i] = add(i);
        settle();
    }
    CU_ASSERT_EQUAL(segments[0]->state, SEGMENT_CLEAN);
    CU_ASSERT_TRUE(segments[0]->block == block && is_of(segments[0], 0));
    CU_ASSERT_TRUE(count_of(segments, 20, SEGMENT_COLD) >= 16);
    relay_block_release(block);
    for (uint32_t i = 20; i < 40; i++) {
        segments[i] = add(i);
        settle();
    }
    CU_ASSERT_EQUAL(segments[0]->state, SEGMENT_COLD);
    CU_ASSERT_TRUE(comes_back(segments[0], 0));
    /* the block goes to who holds it last */
    CU_ASSERT_TRUE(bring(segments[1]));
    block = segments[1]->block;
    block->refs++;
    drop_all(segments, 40);
    CU_ASSERT_EQUAL(block->refs, 1);
    CU_ASSERT_EQUAL(block->bytes[PAGE / 2], 1);
    relay_block_release(block);
}

/* All that could go is held: others are found behind them. */
TEST(many_are_held)
{
    struct log_segment *segments[48];

    start(8, 200);
    for (uint32_t i = 0; i < 40; i++) {
        segments[i] = add(i);
        segments[i]->block->refs += i % 2;
        settle();
    }
    store_trim(&store);
    for (uint32_t i = 0; i < 32; i++)
        CU_ASSERT_EQUAL(segments[i]->state, i % 2 ? SEGMENT_CLEAN : SEGMENT_COLD);
    CU_ASSERT_FALSE(store_spent(&store));
    for (uint32_t i = 1; i < 40; i += 2)
        relay_block_release(segments[i]->block);
    store_trim(&store);
    CU_ASSERT_TRUE(store.memory_now <= 8 * SEGMENT);
    drop_all(segments, 40);
}

TEST(not_filled_yet)
{
    struct log_segment *segments[12];
    struct relay_log_io io;

    start(4, 100);
    segments[0] = add(0);
    segments[0]->block->filling = 2;
    add_some(segments, 1, 3);
    CU_ASSERT_FALSE(store_next_io(&store, &io));
    segments[0]->block->filling--;
    CU_ASSERT_FALSE(store_next_io(&store, &io));
    segments[0]->block->filling--;
    CU_ASSERT_TRUE_FATAL(store_next_io(&store, &io));
    CU_ASSERT_PTR_EQUAL(io.segment, segments[0]);
    fake_disk_take(&disk, &io);
    settle();
    drop_all(segments, 4);
}

/* --- requests --------------------------------------------------------------------------------- */
TEST(requests_at_a_time)
{
    struct log_segment *segments[40];
    uint32_t more = 0;

    start(4, 100);
    add_some(segments, 0, 40);
    CU_ASSERT_EQUAL(take(), STORE_IO_MAX);
    CU_ASSERT_EQUAL(store.out_count, STORE_IO_MAX);
    CU_ASSERT_EQUAL(store.writing, STORE_IO_MAX);
    for (; done_one(); more += take())
        CU_ASSERT_EQUAL(store.out_count, disk.count);
    CU_ASSERT_TRUE(more >= 40 - STORE_IO_MAX - 1);
    drop_all(segments, 40);
}

TEST(places_are_used_again)
{
    enum { COUNT = 10, ROUNDS = 12 };
    struct log_segment *segments[COUNT];

    start(2, COUNT);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            segments[i] = add(round * COUNT + i);
            if (i % 3 == round % 3)
                settle();
        }
        settle();
        CU_ASSERT_FALSE(store_spent(&store));
        for (uint32_t i = 0; i < COUNT; i++)
            CU_ASSERT_TRUE(comes_back(segments[i], round * COUNT + i));
        drop_all(segments, COUNT);
        CU_ASSERT_TRUE(disk.files[STORE_SEGMENTS].high <= (uint64_t)COUNT * SEGMENT);
        CU_ASSERT_EQUAL(store.free_count, store.extents);
    }
    CU_ASSERT_TRUE(disk.writes >= (COUNT - 1) * ROUNDS);
}

/* --- dropped while a request is out ----------------------------------------------------------- */
TEST(dropped_while_written)
{
    for (int fails = 0; fails < 2; fails++) {
        struct log_segment *segments[8];

        start(2, 100);
        disk.good_writes = fails ? 1 : 0;
        add_some(segments, 0, 8);
        CU_ASSERT_EQUAL(take(), 8);
        drop_all(segments, 8);
        CU_ASSERT_EQUAL(store.memory_now, 8 * SEGMENT);
        CU_ASSERT_TRUE(store_waits(&store));
        while (done_one())
            ;
        CU_ASSERT_EQUAL(store.memory_now, 0);
        CU_ASSERT_EQUAL(store.free_count, store.extents);
        CU_ASSERT_EQUAL(store.out_count, 0);
        CU_ASSERT_EQUAL(store.writing, 0);
        CU_ASSERT_FALSE(store_waits(&store));
        finish();
    }
}

/* What was asked for and dropped before the request is not asked for any more. */
TEST(dropped_while_wanted)
{
    struct log_segment *segments[12];
    struct relay_log_io io;

    start(2, 100);
    for (uint32_t i = 0; i < 12; i++) {
        segments[i] = add(i);
        settle();
    }
    CU_ASSERT_FALSE(store_want(&store, segments[0]));
    CU_ASSERT_FALSE(store_want(&store, segments[1]));
    drop_all(segments, 12);
    CU_ASSERT_FALSE(store_next_io(&store, &io));
}

/* The core ends before its disk does. */
TEST(requests_that_never_end)
{
    struct log_segment *segments[16];

    start(2, 100);
    for (uint32_t i = 0; i < 8; i++) {
        segments[i] = add(i);
        settle();
    }
    add_some(segments, 8, 8);
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT_FALSE(store_want(&store, segments[i]));
    CU_ASSERT_TRUE(take() >= 10);
    CU_ASSERT_TRUE(store.writing > 0 && store.writing < store.out_count);
    drop_all(segments, 16);
}

/* --- a disk that fails ------------------------------------------------------------------------ */
TEST(cannot_write)
{
    struct log_segment *segments[32];
    uint32_t count = 0;

    start(8, 100);
    disk.good_writes = 5;
    while (!store_spent(&store) && count < 32) {
        segments[count] = add(count);
        count++;
        settle();
    }
    CU_ASSERT_EQUAL(store.error, ENOSPC);
    CU_ASSERT_EQUAL(disk.writes, 5);
    /* the budget, the slack, and the first that is too many; and those that are on disk */
    CU_ASSERT_EQUAL(count, 8 + 1 + 1 + 5);
    CU_ASSERT_EQUAL(count_of(segments, count, SEGMENT_FULL), 10);
    CU_ASSERT_FALSE(store_waits(&store));
    for (uint32_t i = 0; i < count; i++)
        CU_ASSERT_TRUE(comes_back(segments[i], i));
    CU_ASSERT_TRUE(store_spent(&store));
    store_drop(&store, segments[--count]);
    CU_ASSERT_FALSE(store_spent(&store));
    CU_ASSERT_EQUAL(take(), 0);
    CU_ASSERT_EQUAL(disk.writes, 5);
    drop_all(segments, count);
}

TEST(cannot_read)
{
    struct log_segment *segments[12];
    struct relay_log_io io;

    start(2, 100);
    for (uint32_t i = 0; i < 12; i++) {
        segments[i] = add(i);
        settle();
    }
    disk.good_reads = 1;
    CU_ASSERT_TRUE(comes_back(segments[0], 0));
    CU_ASSERT_FALSE(bring(segments[1]));
    CU_ASSERT_EQUAL(segments[1]->state, SEGMENT_LOST);
    CU_ASSERT_TRUE(store.arrived);
    CU_ASSERT_PTR_NULL(segments[1]->bytes);
    CU_ASSERT_FALSE(store_want(&store, segments[1]));
    CU_ASSERT_FALSE(store_next_io(&store, &io));
    store_end_round(&store);
    /* it says nothing of what is written, nor of the others */
    disk.good_reads = 0;
    CU_ASSERT_EQUAL(store.error, 0);
    CU_ASSERT_TRUE(comes_back(segments[2], 2));
    drop_all(segments, 12);
    CU_ASSERT_EQUAL(store.free_count, store.extents);
}

/* --- a budget that is spent ------------------------------------------------------------------- */
TEST(full_disk)
{
    struct log_segment *segments[32];
    uint32_t count = 0;

    start(8, 6);
    while (!store_spent(&store) && count < 32) {
        segments[count] = add(count);
        count++;
        settle();
        CU_ASSERT_TRUE(disk.files[STORE_SEGMENTS].high <= 6 * SEGMENT);
    }
    CU_ASSERT_EQUAL(store.error, 0);
    CU_ASSERT_EQUAL(count, 6 + 8 + 1 + 1);
    for (uint32_t i = 0; i < count; i++)
        CU_ASSERT_TRUE(comes_back(segments[i], i));
    /* there is room on disk again */
    store_drop(&store, segments[0]);
    CU_ASSERT_FALSE(store_spent(&store));
    settle();
    CU_ASSERT_EQUAL(disk.writes, 7);
    CU_ASSERT_TRUE(comes_back(segments[6], 6));
    CU_ASSERT_FALSE(store_spent(&store));
    drop_all(segments + 1, count - 1);
}

TEST(waits_for_what_is_written)
{
    struct log_segment *segments[9];

    start(4, 100);
    add_some(segments, 0, 4);
    CU_ASSERT_TRUE(take() > 0);
    CU_ASSERT_FALSE(store_waits(&store));
    add_some(segments, 4, 5);
    CU_ASSERT_TRUE(store_waits(&store));
    CU_ASSERT_FALSE(store_spent(&store)); /* it is about to have room */
    take();
    for (uint32_t left = 9; left > 4; left--) {
        CU_ASSERT_TRUE(store_waits(&store));
        CU_ASSERT_TRUE_FATAL(done_one());
    }
    CU_ASSERT_FALSE(store_waits(&store));
    settle();
    drop_all(segments, 9);
}

/* --- no memory -------------------------------------------------------------------------------- */
/* Others take all of it, the blocks that are kept for later too. */
static uint32_t take_memory(struct relay_block **blocks, uint32_t max)
{
    uint32_t count = 0;

    memory.memory_max = stats.memory_now;
    while (count < max && (blocks[count] = relay_block_new(&pool, false)))
        count++;
    return count;
}

static void give_memory(struct relay_block **blocks, uint32_t count)
{
    memory.memory_max = MEMORY;
    while (count > 0)
        relay_block_release(blocks[--count]);
}

/* Nothing can be let go of either; when there is memory again, what was asked for comes. */
TEST(without_memory)
{
    struct relay_block *blocks[RELAY_BLOCKS_KEPT];
    struct log_segment *segments[12];
    struct relay_log_io io;
    uint32_t count;
    uint64_t held;

    start(2, 100);
    for (uint32_t i = 0; i < 12; i++) {
        segments[i] = add(i);
        segments[i]->block->refs += i > 8;
        settle();
    }
    held = store.memory_now;
    CU_ASSERT_FALSE(store_want(&store, segments[0]));
    count = take_memory(blocks, RELAY_BLOCKS_KEPT);
    CU_ASSERT_PTR_NULL(store_new(&store, &pool, SEGMENT / 8, false));
    CU_ASSERT_PTR_NULL(store_new(&store, &pool, SEGMENT, false));
    CU_ASSERT_FALSE(store_next_io(&store, &io));
    CU_ASSERT_TRUE(store.memory_now <= held);
    CU_ASSERT_EQUAL(segments[0]->state, SEGMENT_WANTED);
    give_memory(blocks, count);
    CU_ASSERT_TRUE(comes_back(segments[0], 0));
    for (uint32_t i = 9; i < 12; i++)
        relay_block_release(segments[i]->block);
    drop_all(segments, 12);
}

/* --- anything, against a model ---------------------------------------------------------------- */
static struct {
    struct log_segment *segments[SEGMENTS_MAX];
    uint64_t numbers[SEGMENTS_MAX];
    struct relay_block *held[SEGMENTS_MAX];
    uint32_t count;
    uint64_t next;
} model;

static void model_drop(uint32_t i)
{
    if (model.held[i])
        relay_block_release(model.held[i]);
    store_drop(&store, model.segments[i]);
    model.count--;
    model.segments[i] = model.segments[model.count];
    model.numbers[i] = model.numbers[model.count];
    model.held[i] = model.held[model.count];
}

static void model_add(void)
{
    uint32_t i = model.count;

    if (i == SEGMENTS_MAX || store_spent(&store))
        return;
    model.numbers[i] = model.next++;
    model.segments[i] = add(model.numbers[i]);
    model.held[i] = NULL;
    model.count++;
}

static void model_hold(uint32_t i)
{
    if (model.held[i]) {
        relay_block_release(model.held[i]);
        model.held[i] = NULL;
    } else if (store_want(&store, model.segments[i])) {
        model.held[i] = model.segments[i]->block;
        model.held[i]->refs++;
    }
}

static void model_step(void)
{
    uint32_t any = model.count ? (uint32_t)below(model.count) : 0;
    struct relay_log_io io;

    switch (below(model.count ? 10 : 2)) {
    case 0:
    case 1:
        model_add();
        break;
    case 2:
        if (below(2))
            model_drop(any);
        break;
    case 3:
    case 4:
        store_want(&store, model.segments[any]);
        break;
    case 5:
    case 6:
        if (store_next_io(&store, &io))
            fake_disk_take(&disk, &io);
        break;
    case 7:
        model_hold(any);
        break;
    case 8:
        store_trim(&store);
        break;
    default:
        done_one();
        if (below(2))
            store_end_round(&store);
    }
}

static bool counts_as_clean(const struct log_segment *segment)
{
    return segment->state == SEGMENT_CLEAN || segment->state == SEGMENT_READING;
}

static bool is_right(uint32_t i, bool reads_fail)
{
    const struct log_segment *segment = model.segments[i];

    if (segment->state == SEGMENT_LOST)
        return reads_fail && !segment->bytes;
    if (!segment->bytes || segment->state == SEGMENT_READING)
        return !model.held[i] && (segment->bytes || segment->extent < store.extents);
    return segment->block->bytes == segment->bytes &&
           memcmp(segment->bytes + SEGMENT - sizeof(uint64_t), &model.numbers[i],
                  sizeof(uint64_t)) == 0;
}

/* Returns whether all that the store says of itself adds up. */
static bool model_is_right(void)
{
    bool right = store.out_count == disk.count && store.memory_now >= store.clean_now;
    uint64_t in_memory = 0;
    uint64_t clean = 0;

    for (uint32_t i = 0; i < model.count; i++) {
        in_memory += model.segments[i]->bytes ? SEGMENT : 0;
        clean += counts_as_clean(model.segments[i]) ? SEGMENT : 0;
        right &= is_right(i, disk.good_reads > 0);
    }
    for (const struct log_segment *s = store.out.first; s; s = s->next) {
        in_memory += s->dropped ? SEGMENT : 0;
        clean += s->dropped && counts_as_clean(s) ? SEGMENT : 0;
    }
    return right && in_memory == store.memory_now && clean == store.clean_now;
}

/* Every kind of disk, by `with`. */
static void anything(uint64_t with, uint32_t disk_max, uint32_t steps)
{
    bool right = true;

    start(6, disk_max);
    seed = disk.seed = with;
    disk.good_writes = with % 4 == 2 ? 20 : 0;
    disk.good_reads = with % 4 == 3 ? 20 : 0;
    model.count = 0;
    for (uint32_t i = 0; i < steps && right; i++) {
        model_step();
        right = model_is_right();
    }
    CU_ASSERT_TRUE(right);
    for (uint32_t i = 0; i < model.count; i++)
        CU_ASSERT_TRUE(comes_back(model.segments[i], model.numbers[i]) || disk.good_reads > 0);
    while (model.count > 0)
        model_drop(model.count - 1);
    if (with % 2)
        settle();
    finish();
}

TEST(anything_at_all)
{
    for (uint64_t with = 1; with <= 8; with++)
        anything(with, with % 4 == 1 ? 12 : 1000, 1200);
}
