/* A ring: what goes in comes out, in order, whatever the sizes; who sleeps is woken; and no
 * position of the other side makes this side leave the memory. */
#include "common/ring.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

SUITE("ring");

#define GUARD 4096 /* bytes on both sides of what may be touched */
#define GUARDED 0xa5
#define SIZE_MAX_ASKED (3 * CW_RING_BYTES)
#define HOSTILE_STEPS 3000
#define STREAM (16u << 20) /* bytes from thread to thread */
#define SLEEP_SECONDS_MAX 60

/* Some bytes with a guard before and after. */
struct guarded {
    uint8_t *all;
    uint8_t *bytes;
    size_t size;
};

static struct cw_ring_shared shared;
static struct cw_ring writer;
static struct cw_ring reader;
static struct guarded memory; /* of the ring */
static struct guarded from;   /* what is put */
static struct guarded to;     /* what is taken */
static uint64_t put;          /* bytes so far: byte i of the stream is that of the pattern */
static uint64_t taken;
static uint64_t seed;

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
}

static struct guarded guard(size_t size)
{
    struct guarded g = {.all = malloc(size + 2 * GUARD), .size = size};

    CU_ASSERT_PTR_NOT_NULL_FATAL(g.all);
    memset(g.all, GUARDED, size + 2 * GUARD);
    g.bytes = g.all + GUARD;
    return g;
}

/* Checks that nothing was written outside, and frees it. */
static void unguard(struct guarded *g)
{
    bool whole = true;

    for (size_t i = 0; i < GUARD; i++)
        whole &= g->all[i] == GUARDED && g->bytes[g->size + i] == GUARDED;
    CU_ASSERT_TRUE(whole);
    free(g->all);
}

/* A ring of which this many bytes were used before. */
static void start(uint64_t used)
{
    memory = guard(CW_RING_BYTES);
    from = guard(SIZE_MAX_ASKED);
    to = guard(SIZE_MAX_ASKED);
    memset(&shared, 0, sizeof(shared));
    atomic_store(&shared.written, used);
    atomic_store(&shared.taken, used);
    writer = reader = (struct cw_ring){.shared = &shared, .bytes = memory.bytes, .at = used};
    put = taken = 0;
}

static void finish(void)
{
    unguard(&memory);
    unguard(&from);
    unguard(&to);
}

static size_t put_some(size_t size)
{
    size_t n;

    codec_pattern(from.bytes, 1, put, size);
    n = cw_ring_put(&writer, from.bytes, size);
    put += n;
    return n;
}

/* Checks each byte; those beyond what was returned stay as they were. */
static size_t take_some(size_t size)
{
    bool right = true;
    size_t n;

    memset(to.bytes, GUARDED, size);
    n = cw_ring_take(&reader, to.bytes, size);
    CU_ASSERT_TRUE_FATAL(n <= size);
    for (size_t i = 0; i < size; i++)
        right &= to.bytes[i] == (i < n ? codec_pattern_at(1, taken + i) : GUARDED);
    CU_ASSERT_TRUE(right);
    taken += n;
    return n;
}

static void is_sound(void)
{
    CU_ASSERT_FALSE(writer.broken || reader.broken);
    CU_ASSERT_EQUAL(cw_ring_readable(&reader), put > taken);
    CU_ASSERT_EQUAL(cw_ring_writable(&writer), put - taken < CW_RING_BYTES);
}

/* --- sizes ------------------------------------------------------------------------------------ */
/* Over the end of the memory, and the ring's positions over the end of their numbers. */
static void wrap_from(uint64_t used, size_t size)
{
    start(used);
    for (uint64_t moved = 0; moved < 2ull * CW_RING_BYTES + size; moved += size) {
        CU_ASSERT_EQUAL_FATAL(put_some(size), size);
        CU_ASSERT_EQUAL_FATAL(take_some(size), size);
    }
    is_sound();
    finish();
}

TEST(wrap_around)
{
    static const uint64_t used[] = {0, 1, CW_RING_BYTES - 1, CW_RING_BYTES, 0 - 1000ull};
    static const size_t sizes[] = {997, 32768, 32769, 65521, CW_RING_BYTES - 1, CW_RING_BYTES};

    for (size_t u = 0; u < sizeof(used) / sizeof(*used); u++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
            wrap_from(used[u], sizes[s]);
}

/* Each offset of the end of the memory within what is moved. */
TEST(end_at_each_place)
{
    for (size_t before = 0; before <= 130; before++) {
        start(CW_RING_BYTES - before);
        CU_ASSERT_EQUAL(put_some(129), 129);
        CU_ASSERT_EQUAL(take_some(64), 64);
        CU_ASSERT_EQUAL(take_some(200), 65);
        is_sound();
        finish();
    }
}

TEST(any_mix_comes_out_as_it_went_in)
{
    static const size_t most[] = {10, 1000, 70000, SIZE_MAX_ASKED};

    seed = 5;
    start(CW_RING_BYTES + 12345);
    for (int i = 0; i < 400; i++) {
        size_t size = below(most[below(4)]);
        bool puts = below(2);
        uint64_t most_now = puts ? CW_RING_BYTES - (put - taken) : put - taken;
        size_t moved = puts ? put_some(size) : take_some(size);

        CU_ASSERT_EQUAL(moved, size < most_now ? size : most_now);
        is_sound();
    }
    finish();
}

/* --- the other side lies ---------------------------------------------------------------------- */

/* The writer says that it has written so many bytes. */
static void reader_refuses(uint64_t at, uint64_t written)
{
    start(at);
    atomic_store(&shared.written, written);
    CU_ASSERT_TRUE(cw_ring_readable(&reader)); /* so that somebody looks */
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(take_some(SIZE_MAX_ASKED), 0);
        CU_ASSERT_TRUE(reader.broken);
        CU_ASSERT_EQUAL(reader.at, at);
    }
    atomic_store(&shared.written, at); /* too late */
    CU_ASSERT_EQUAL(take_some(100), 0);
    CU_ASSERT_TRUE(reader.broken);
    finish();
}

TEST(written_that_cannot_be)
{
    reader_refuses(1000, 999);
    reader_refuses(1000, 0);
    reader_refuses(0, CW_RING_BYTES + 1);
    reader_refuses(5, 5 + (1ull << 32));
    reader_refuses(0, UINT64_MAX);
    reader_refuses(7, 7 + (1ull << 63));
}

/* The reader says that it has taken so many. */
static void writer_refuses(uint64_t at, uint64_t taken_said)
{
    start(at);
    atomic_store(&shared.taken, taken_said);
    CU_ASSERT_TRUE(cw_ring_writable(&writer));
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(put_some(SIZE_MAX_ASKED), 0);
        CU_ASSERT_TRUE(writer.broken);
        CU_ASSERT_EQUAL(writer.at, at);
    }
    for (size_t i = 0; i < CW_RING_BYTES; i += 997)
        CU_ASSERT_EQUAL(memory.bytes[i], GUARDED);
    atomic_store(&shared.taken, at);
    put_some(100);
    CU_ASSERT_TRUE(writer.broken);
    finish();
}

TEST(taken_that_cannot_be)
{
    writer_refuses(1000, 1001);
    writer_refuses(CW_RING_BYTES + 1, 0);
    writer_refuses(0, 1);
    writer_refuses(1ull << 40, 0);
    writer_refuses(7, 7 + (1ull << 63));
}

/* As far as it may go: the whole ring at once. */
TEST(positions_at_their_bounds)
{
    start(3);
    codec_pattern(memory.bytes, 2, 0, CW_RING_BYTES);
    atomic_store(&shared.written, 3ull + CW_RING_BYTES);
    CU_ASSERT_EQUAL(cw_ring_take(&reader, to.bytes, SIZE_MAX_ASKED), CW_RING_BYTES);
    CU_ASSERT_FALSE(reader.broken);
    CU_ASSERT_EQUAL(to.bytes[0], codec_pattern_at(2, 3));
    CU_ASSERT_EQUAL(to.bytes[CW_RING_BYTES - 1], codec_pattern_at(2, 2));
    writer.at = 3ull + CW_RING_BYTES;
    atomic_store(&shared.taken, 3);
    CU_ASSERT_EQUAL(cw_ring_put(&writer, from.bytes, 10), 0);
    CU_ASSERT_FALSE(writer.broken);
    finish();
}

/* A position that is any number, or nearly right. */
static uint64_t some_position(uint64_t near)
{
    return below(2) ? codec_random(&seed) : near + below(2 * CW_RING_BYTES) - CW_RING_BYTES / 2;
}

/* Bytes are wrong then; what is moved is never more than was asked for, and the guards stay. */
TEST(positions_at_random)
{
    seed = 17;
    start(0);
    for (int i = 0; i < HOSTILE_STEPS; i++) {
        size_t size = below(below(20) ? 3000 : SIZE_MAX_ASKED);

        atomic_store(&shared.written, some_position(reader.at));
        CU_ASSERT_TRUE(cw_ring_take(&reader, to.bytes, size) <= size);
        atomic_store(&shared.taken, some_position(writer.at));
        CU_ASSERT_TRUE(cw_ring_put(&writer, from.bytes, size) <= size);
    }
    CU_ASSERT_TRUE(reader.broken && writer.broken);
    finish();
}

/* --- sleep and wake --------------------------------------------------------------------------- */
TEST(reader_is_woken_once)
{
    start(0);
    put_some(10);
    CU_ASSERT_FALSE(cw_ring_wakes_reader(&writer));
    take_some(10);
    CU_ASSERT_TRUE(cw_ring_reader_sleeps(&reader));
    CU_ASSERT_FALSE(cw_ring_wakes_writer(&reader));
    put_some(10);
    CU_ASSERT_TRUE(cw_ring_wakes_reader(&writer));
    put_some(10);
    CU_ASSERT_FALSE(cw_ring_wakes_reader(&writer));
    CU_ASSERT_FALSE(cw_ring_reader_sleeps(&reader)); /* there is something */
    finish();
}

TEST(writer_is_woken_once)
{
    start(0);
    CU_ASSERT_FALSE(cw_ring_writer_sleeps(&writer)); /* there is room */
    atomic_store(&shared.writer_sleeps, 0);
    put_some(CW_RING_BYTES);
    take_some(1);
    CU_ASSERT_FALSE(cw_ring_wakes_writer(&reader));
    put_some(1);
    CU_ASSERT_TRUE(cw_ring_writer_sleeps(&writer));
    CU_ASSERT_FALSE(cw_ring_wakes_reader(&writer));
    take_some(1);
    CU_ASSERT_TRUE(cw_ring_wakes_writer(&reader));
    take_some(1);
    CU_ASSERT_FALSE(cw_ring_wakes_writer(&reader));
    finish();
}

/* Who would sleep for ever looks: the lie is found when it then takes, or puts. */
TEST(nobody_sleeps_over_a_lie)
{
    start(100);
    atomic_store(&shared.written, 50);
    atomic_store(&shared.taken, 150);
    CU_ASSERT_FALSE(cw_ring_reader_sleeps(&reader));
    CU_ASSERT_FALSE(cw_ring_writer_sleeps(&writer));
    finish();
}

/* --- from ring to ring ------------------------------------------------------------------------ */
/* What was put into the first ring passes into a second one, whose ends are `out` and `far_end`. */
static struct cw_ring_shared second;
static struct guarded second_memory;
static struct guarded copy;
static struct cw_ring out;
static struct cw_ring far_end;
static uint64_t arrived;
static size_t held; /* passed on, and its writer does not have the room back */

static void start_two(uint64_t used, uint64_t used_of_second)
{
    start(used);
    second_memory = guard(CW_RING_BYTES);
    copy = guard(CW_RING_BYTES);
    memset(&second, 0, sizeof(second));
    atomic_store(&second.written, used_of_second);
    atomic_store(&second.taken, used_of_second);
    out = far_end =
        (struct cw_ring){.shared = &second, .bytes = second_memory.bytes, .at = used_of_second};
    arrived = 0;
    held = 0;
}

static void finish_two(void)
{
    finish();
    unguard(&second_memory);
    unguard(&copy);
}

static bool is_pattern(const uint8_t *at, uint64_t begin, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (at[i] != codec_pattern_at(1, begin + i))
            return false;
    return true;
}

static void pass_some(size_t size)
{
    size_t room = cw_ring_room(&writer);

    cw_ring_pass(&reader, &out, size);
    held += size;
    taken += size;
    CU_ASSERT_EQUAL(cw_ring_there(&far_end), taken - arrived);
    CU_ASSERT_EQUAL(cw_ring_there(&reader), put - taken);
    CU_ASSERT_EQUAL(cw_ring_room(&writer), room);
}

/* Any part of what is held can be copied as long as it is. */
static void keep_some(void)
{
    size_t back = below(1 + held);
    size_t size = below(1 + back);
    size_t shift = below(100);
    uint8_t *to_log = copy.bytes + (shift + size > copy.size ? 0 : shift);

    cw_ring_keep(&reader, back, to_log, size);
    CU_ASSERT_TRUE(is_pattern(to_log, taken - back, size));
}

static void release_all(void)
{
    cw_ring_release(&reader, 0);
    held = 0;
    CU_ASSERT_EQUAL(cw_ring_room(&writer), CW_RING_BYTES - (put - taken));
}

static void arrive_some(size_t size)
{
    size_t n = cw_ring_take(&far_end, to.bytes, size);

    CU_ASSERT_TRUE(is_pattern(to.bytes, arrived, n));
    arrived += n;
}

TEST(there_and_room)
{
    start(CW_RING_BYTES - 50);
    CU_ASSERT_EQUAL(cw_ring_there(&reader), 0);
    CU_ASSERT_EQUAL(cw_ring_room(&writer), CW_RING_BYTES);
    put_some(100);
    CU_ASSERT_EQUAL(cw_ring_there(&reader), 100);
    CU_ASSERT_EQUAL(cw_ring_room(&writer), CW_RING_BYTES - 100);
    take_some(30);
    CU_ASSERT_EQUAL(cw_ring_there(&reader), 70);
    CU_ASSERT_EQUAL(cw_ring_room(&writer), CW_RING_BYTES - 70);
    atomic_store(&shared.written, 0);
    atomic_store(&shared.taken, UINT64_MAX);
    CU_ASSERT_EQUAL(cw_ring_there(&reader), 0);
    CU_ASSERT_EQUAL(cw_ring_room(&writer), 0);
    CU_ASSERT_TRUE(reader.broken && writer.broken);
    finish();
}

TEST(peeking_takes_nothing)
{
    start(CW_RING_BYTES - 50);
    put_some(100);
    for (size_t skip = 0; skip <= 100; skip += 10) {
        cw_ring_peek(&reader, skip, to.bytes, 100 - skip);
        CU_ASSERT_TRUE(is_pattern(to.bytes, skip, 100 - skip));
    }
    CU_ASSERT_EQUAL(take_some(200), 100);
    finish();
}

TEST(what_passes_arrives)
{
    seed = 31;
    for (int i = 0; i < 60; i++) {
        start_two(below(2 * CW_RING_BYTES), below(2 * CW_RING_BYTES));
        for (int k = 0; k < 20; k++) {
            size_t there;
            size_t room;

            put_some(below(CW_RING_BYTES));
            there = cw_ring_there(&reader);
            room = cw_ring_room(&out);
            pass_some(below(1 + (there < room ? there : room)));
            arrive_some(below(2 * CW_RING_BYTES));
            keep_some();
            if (below(2))
                release_all();
        }
        CU_ASSERT_FALSE(reader.broken || out.broken || far_end.broken);
        finish_two();
    }
}

TEST(what_is_lost_can_be_kept)
{
    start_two(CW_RING_BYTES - 1000, 0);
    put_some(200000);
    cw_ring_pass(&reader, NULL, 60000);
    cw_ring_pass(&reader, NULL, 100000);
    taken += 160000;
    cw_ring_keep(&reader, 160000, copy.bytes, 150000);
    CU_ASSERT_TRUE(is_pattern(copy.bytes, 0, 150000));
    release_all();
    CU_ASSERT_EQUAL(take_some(SIZE_MAX_ASKED), 40000);
    CU_ASSERT_EQUAL(cw_ring_there(&far_end), 0);
    finish_two();
}

/* --- two threads ------------------------------------------------------------------------------ */
static sem_t reader_bell;
static sem_t writer_bell;

/* Returns false when nobody rings. */
static bool await_bell(sem_t *bell)
{
    struct timespec until;
    int failed;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SLEEP_SECONDS_MAX;
    do
        failed = sem_timedwait(bell, &until);
    while (failed && errno == EINTR);
    return failed == 0;
}

static size_t some_size(uint64_t *own_seed)
{
    static const size_t most[] = {10, 1000, 40000, 2 * CW_RING_BYTES};

    return 1 + codec_random_below(own_seed, most[codec_random_below(own_seed, 4)]);
}

/* Returns whether all was written; NULL if not. */
static void *produce(void *unused)
{
    uint64_t own_seed = 23;
    size_t left = 0; /* of what is in `from` */
    size_t at = 0;

    (void)unused;
    while (put < STREAM) {
        size_t n;

        if (left == 0) {
            at = 0;
            left = some_size(&own_seed);
            left = left < STREAM - put ? left : STREAM - put;
            codec_pattern(from.bytes, 1, put, left);
        }
        n = cw_ring_put(&writer, from.bytes + at, left);
        put += n;
        at += n;
        left -= n;
        if (n > 0 && cw_ring_wakes_reader(&writer))
            sem_post(&reader_bell);
        if (n == 0 && cw_ring_writer_sleeps(&writer) && !await_bell(&writer_bell))
            return NULL;
    }
    return writer.broken ? NULL : &writer;
}

static bool consume(void)
{
    uint64_t own_seed = 29;
    bool right = true;

    while (taken < STREAM && right) {
        size_t size = some_size(&own_seed);
        size_t n = cw_ring_take(&reader, to.bytes, size);

        for (size_t i = 0; i < n; i++)
            right &= to.bytes[i] == codec_pattern_at(1, taken + i);
        taken += n;
        if (n > 0 && cw_ring_wakes_writer(&reader))
            sem_post(&writer_bell);
        if (n == 0 && cw_ring_reader_sleeps(&reader))
            right &= await_bell(&reader_bell);
    }
    return right && !reader.broken;
}

TEST(from_thread_to_thread)
{
    pthread_t producer;
    void *result;

    start(2 * CW_RING_BYTES - 100);
    CU_ASSERT_EQUAL_FATAL(sem_init(&reader_bell, 0, 0), 0);
    CU_ASSERT_EQUAL_FATAL(sem_init(&writer_bell, 0, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&producer, NULL, produce, NULL), 0);
    CU_ASSERT_TRUE(consume());
    CU_ASSERT_EQUAL(pthread_join(producer, &result), 0);
    CU_ASSERT_PTR_NOT_NULL(result);
    CU_ASSERT_EQUAL(cw_ring_take(&reader, to.bytes, 1), 0);
    sem_destroy(&reader_bell);
    sem_destroy(&writer_bell);
    finish();
}
