/* Striped tunnels: what is cut into chunks for several connections is put in order again. */
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"
#include "tunnels/stripe_cut.h"
#include "tunnels/stripes.h"

#include <CUnit/CUnit.h>
#include <lz4.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

SUITE("striped tunnels");

#define WAYS 5u
#define ROOM (STRIPE_HEADER_BYTES + STRIPE_CHUNK_BYTES_MAX)

static uint64_t seed;
static struct stripe_order order;
static struct stripe_arrived arrived[WAYS];
static struct cw_err err;
static struct stripe_cut cut;
static uint8_t bytes[STRIPE_CHUNK_BYTES_MAX], made[ROOM];

static uint32_t below(uint32_t bound)
{
    return (uint32_t)codec_random_below(&seed, bound);
}

static void begin(void)
{
    seed = 1;
    stripe_order_init(&order);
    memset(arrived, 0, sizeof(arrived));
    cut = (struct stripe_cut){0};
}

/* --- what is said --- */

TEST(words_come_back)
{
    static struct stripe_greeting said[] = {
        {.kind = STRIPE_FIRST, .name = "n", .token = "t", .host = "node.site-b", .port = 7000},
        {.kind = STRIPE_JOIN, .name = "other", .token = "t"}};
    uint8_t at[STRIPE_GREETING_BYTES], to[sizeof(STRIPE_ANSWER_MARK) + STRIPE_ANSWER_BYTES];
    struct stripe_answer answer = {.version = 7, .joined = true, .text = "a\x01text"}, heard;
    struct stripe_greeting got;

    for (size_t i = 0; i < 2; i++) {
        stripe_greeting_put(at, &said[i]);
        memcpy(said[i].magic, "CWSTRIPE", 8);
        said[i].version = STRIPE_VERSION;
        CU_ASSERT_EQUAL(stripe_greeting_get(at, &got, &err), CW_OK);
        CU_ASSERT_EQUAL(memcmp(&got, &said[i], sizeof(got)), 0);
    }
    CU_ASSERT_EQUAL(stripe_answer_put(to, &answer), sizeof(to) - 1);
    CU_ASSERT_EQUAL(memcmp(to, STRIPE_ANSWER_MARK, sizeof(STRIPE_ANSWER_MARK) - 1), 0);
    stripe_answer_get(to + sizeof(STRIPE_ANSWER_MARK) - 1, &heard);
    CU_ASSERT_EQUAL(heard.version, 7);
    CU_ASSERT_TRUE(heard.joined);
    CU_ASSERT_STRING_EQUAL(heard.text, "a text");
}

static void is_refused(size_t at, uint8_t value, const char *why)
{
    struct stripe_greeting greeting = {
        .kind = STRIPE_FIRST, .name = "n", .token = "t", .host = "h", .port = 1};
    uint8_t said[STRIPE_GREETING_BYTES];

    stripe_greeting_put(said, &greeting);
    said[at] = value;
    CU_ASSERT_EQUAL(stripe_greeting_get(said, &greeting, &err), CW_EPROTO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

TEST(greetings_without_sense)
{
    is_refused(0, 'X', "no greeting");
    is_refused(8, STRIPE_VERSION + 1, "version");
    is_refused(12, 0, "without sense");
    is_refused(12, STRIPE_JOIN + 1, "without sense");
    is_refused(64, 0, "without sense"); /* port */
    is_refused(68, 0, "without sense"); /* host */
    is_refused(68, ' ', "without sense");
    is_refused(68, '[', "without sense");
    is_refused(68, 0x80, "without sense");
}

static bool is_header(uint32_t size, uint32_t stored)
{
    struct stripe_header header = {.number = 1, .size = size, .stored = stored}, got;
    uint8_t at[STRIPE_HEADER_BYTES];

    stripe_header_put(at, &header);
    return stripe_header_get(at, &got) && memcmp(&got, &header, sizeof(got)) == 0;
}

TEST(headers)
{
    CU_ASSERT_TRUE(is_header(0, 0));
    CU_ASSERT_TRUE(is_header(1, 1));
    CU_ASSERT_TRUE(is_header(STRIPE_CHUNK_BYTES_MAX, 1));
    CU_ASSERT_FALSE(is_header(STRIPE_CHUNK_BYTES_MAX + 1, 1));
    CU_ASSERT_FALSE(is_header(1, 0));
    CU_ASSERT_FALSE(is_header(1, 2));
    CU_ASSERT_FALSE(is_header(0, 1));
}

/* --- any order --- */

struct way {
    struct codec_bytes on_it;
};

static void feed(struct way *way, uint32_t number, uint32_t most)
{
    size_t left = codec_left(&way->on_it), used, size = left < most ? left : most;
    bool ahead;

    CU_ASSERT_EQUAL_FATAL(stripe_order_take(&order, &arrived[number],
                                            way->on_it.at + way->on_it.start, size, &used, &ahead,
                                            &err),
                          CW_OK);
    codec_take(&way->on_it, used);
}

/* What comes out is the pattern, from *at on. */
static void drain(uint64_t *at)
{
    struct stripe_chunk *chunk;

    while ((chunk = stripe_order_first(&order))) {
        for (uint32_t i = 0; i < chunk->size; i++, (*at)++)
            if (chunk->bytes[i] != (uint8_t)(*at / 1000 + *at % 7)) {
                CU_FAIL_FATAL("another byte");
            }
        stripe_order_drop(&order);
    }
}

static void cut_one(struct way *ways, uint64_t *at)
{
    uint32_t size = 1 + below(below(4) ? 300 : STRIPE_CHUNK_BYTES_MAX), made_bytes, turn;

    for (uint32_t i = 0; i < size; i++, (*at)++)
        bytes[i] = (uint8_t)(*at / 1000 + *at % 7);
    turn = stripe_cut_turn(&cut, 1 + below((1u << WAYS) - 1));
    CU_ASSERT_TRUE_FATAL(turn < WAYS);
    made_bytes = stripe_cut_chunk(&cut, bytes, size, below(2), made);
    memcpy(codec_room(&ways[turn].on_it, made_bytes), made, made_bytes);
}

static void put_ends(struct way *ways)
{
    for (uint32_t i = 0; i < WAYS; i++)
        memcpy(codec_room(&ways[i].on_it, STRIPE_HEADER_BYTES), made, stripe_cut_end(&cut, made));
}

/* Two thousand chunks wait on five ways, which are read in any order, so chunks are too far ahead.
 */
TEST(any_order_is_put_right)
{
    struct way ways[WAYS] = {0};
    uint64_t there = 0, back = 0, left = 1;

    begin();
    for (int i = 0; i < 2000; i++)
        cut_one(ways, &there);
    put_ends(ways);
    for (int i = 0; i < 100000 && left; i++) {
        uint32_t number = below(1 + below(WAYS));

        feed(&ways[number], number, below(2) ? 2 * ROOM : below(40));
        if (below(4) == 0)
            drain(&back);
        left = 0;
        for (uint32_t k = 0; k < WAYS; k++)
            left += codec_left(&ways[k].on_it);
    }
    drain(&back);
    CU_ASSERT_EQUAL(left, 0);
    CU_ASSERT_EQUAL(back, there);
    CU_ASSERT_TRUE(stripe_order_is_over(&order));
    for (uint32_t i = 0; i < WAYS; i++) {
        CU_ASSERT_TRUE(arrived[i].ended);
        free(ways[i].on_it.at);
    }
    stripe_order_fini(&order);
}

/* --- bounds, and what is hostile --- */

static int sends(uint32_t way, uint64_t number, uint32_t size, uint32_t stored, bool *ahead)
{
    struct stripe_header header = {.number = number, .size = size, .stored = stored};
    size_t used;

    stripe_header_put(made, &header);
    memset(made + STRIPE_HEADER_BYTES, 0xff, stored);
    return stripe_order_take(&order, &arrived[way], made, STRIPE_HEADER_BYTES + stored, &used,
                             ahead, &err);
}

TEST(who_is_too_far_ahead_waits)
{
    bool ahead;

    begin();
    CU_ASSERT_EQUAL(sends(1, STRIPE_AHEAD_MAX - 1, 1, 1, &ahead), CW_OK);
    CU_ASSERT_FALSE(ahead);
    CU_ASSERT_EQUAL(sends(2, STRIPE_AHEAD_MAX, 1, 1, &ahead), CW_OK);
    CU_ASSERT_TRUE(ahead);
    CU_ASSERT_PTR_NULL(stripe_order_first(&order));
    CU_ASSERT_EQUAL(sends(0, 0, 1, 1, &ahead), CW_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(stripe_order_first(&order));
    stripe_order_drop(&order);
    CU_ASSERT_EQUAL(sends(2, STRIPE_AHEAD_MAX, 1, 1, &ahead), CW_OK);
    CU_ASSERT_FALSE(ahead);
    stripe_order_fini(&order);
}

/* After number 0 on way 0 and number 5 on way 1 */
static void breaks(uint32_t way, uint64_t number, uint32_t size, uint32_t stored)
{
    bool ahead;

    begin();
    CU_ASSERT_EQUAL(sends(0, 0, 4, 4, &ahead), CW_OK);
    stripe_order_drop(&order);
    CU_ASSERT_EQUAL(sends(1, 5, 4, 4, &ahead), CW_OK);
    CU_ASSERT_EQUAL(sends(way, number, size, stored, &ahead), CW_EPROTO);
    stripe_order_fini(&order);
}

TEST(what_is_no_stream_of_chunks_is_refused)
{
    breaks(0, 1, STRIPE_CHUNK_BYTES_MAX + 1, 4);
    breaks(0, 1, 4, 0);
    breaks(0, 1, 4, 5);
    breaks(0, 1, 100, 4); /* is not what LZ4 makes */
    breaks(2, 0, 4, 4);   /* had its turn */
    breaks(2, 5, 4, 4);   /* is there */
    breaks(1, 5, 4, 4);
    breaks(1, 4, 4, 4); /* numbers of a way grow */
    breaks(2, 5, 0, 0); /* an end before a chunk */
    breaks(1, 3, 0, 0);
}

TEST(nothing_follows_an_end)
{
    bool ahead;

    begin();
    CU_ASSERT_EQUAL(sends(0, 3, 0, 0, &ahead), CW_OK);
    CU_ASSERT_EQUAL(sends(0, 3, 0, 0, &ahead), CW_EPROTO);
    CU_ASSERT_EQUAL(sends(1, 4, 0, 0, &ahead), CW_EPROTO);
    arrived[1] = (struct stripe_arrived){0};
    CU_ASSERT_EQUAL(sends(1, 3, 4, 4, &ahead), CW_EPROTO);
    CU_ASSERT_EQUAL(sends(2, 2, 4, 4, &ahead), CW_OK);
    CU_ASSERT_FALSE(stripe_order_is_over(&order));
    stripe_order_fini(&order);
}

TEST(signs_of_life_are_no_chunks)
{
    bool ahead;

    begin();
    CU_ASSERT_EQUAL(sends(0, STRIPE_SIGN, 0, 0, &ahead), CW_OK);
    CU_ASSERT_EQUAL(sends(0, 0, 4, 4, &ahead), CW_OK);
    stripe_order_drop(&order);
    CU_ASSERT_EQUAL(sends(0, 1, 0, 0, &ahead), CW_OK);
    CU_ASSERT_EQUAL(sends(0, STRIPE_SIGN, 0, 0, &ahead), CW_OK);
    CU_ASSERT_FALSE(ahead);
    CU_ASSERT_TRUE(stripe_order_is_over(&order));
    stripe_order_fini(&order);
}

/* --- one end --- */

static struct stripes one_end;
static int user[2], way[2][2]; /* of each the second descriptor is the other side's */

static void open_end(bool is_far, uint32_t ways)
{
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, user), 0);
    stripes_init(&one_end, is_far, user[0], user[0]);
    one_end.sign_ms = 1;
    for (uint32_t i = 0; i < ways; i++) {
        CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, way[i]), 0);
        CU_ASSERT_EQUAL_FATAL(stripes_add(&one_end, way[i][0], way[i][0], false, &err), CW_OK);
    }
}

/* The other sides are closed by who asks for it. */
static void close_end(void)
{
    close(user[0]);
    for (uint32_t i = 0; i < one_end.count; i++)
        if (one_end.of[i].in >= 0)
            close(one_end.of[i].in);
    stripes_fini(&one_end);
}

static void *run_end(void *ctx)
{
    struct stripes_door none = {.fd = -1};
    struct cw_err *why = ctx;

    *why = (struct cw_err){0};
    stripes_run(&one_end, &none, why);
    return NULL;
}

TEST(a_silent_near_end_is_gone)
{
    open_end(true, 1);
    run_end(&err);
    CU_ASSERT_EQUAL(err.code, CW_ECLOSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no sign of life"));
    close(user[1]);
    close(way[0][1]);
    close_end();
}

static bool is_sign(void)
{
    uint8_t at[STRIPE_HEADER_BYTES];
    struct stripe_header header;

    return recv(way[0][1], at, sizeof(at), MSG_WAITALL) == (ssize_t)sizeof(at) &&
           stripe_header_get(at, &header) && header.number == STRIPE_SIGN && header.size == 0;
}

TEST(the_near_end_gives_signs_of_life)
{
    pthread_t thread;
    struct cw_err why;

    open_end(false, 1);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run_end, &why), 0);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_TRUE(is_sign());
    close(way[0][1]);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(why.code, CW_ECLOSED);
    close(user[1]);
    close_end();
}

/* As one that opened when all had been said already. */
TEST(a_connection_without_a_chunk_is_not_missed)
{
    uint8_t at[STRIPE_HEADER_BYTES];

    begin();
    open_end(true, 2);
    stripe_cut_end(&cut, at);
    CU_ASSERT_EQUAL(write(way[0][1], at, sizeof(at)), (ssize_t)sizeof(at));
    close(way[1][1]);
    shutdown(user[1], SHUT_WR);
    run_end(&err);
    CU_ASSERT_EQUAL(err.code, CW_OK);
    close(way[0][1]);
    close(user[1]);
    close_end();
}

/* --- whose turn it is --- */

static uint32_t cut_for(uint32_t ready, uint32_t size)
{
    uint32_t turn = stripe_cut_turn(&cut, ready);

    stripe_cut_chunk(&cut, bytes, size, false, made);
    return turn;
}

TEST(large_messages_go_over_all_and_small_ones_stay)
{
    begin();
    for (uint32_t i = 0; i < 3 * STRIPES_MAX; i++)
        CU_ASSERT_EQUAL(cut_for(0xffff, STRIPE_CHUNK_BYTES_MAX), i % STRIPES_MAX);
    begin();
    for (uint32_t i = 0; i < 100; i++)
        CU_ASSERT_EQUAL(cut_for(0xffff, 100), 0);
}

TEST(who_has_no_room_is_passed_over)
{
    begin();
    CU_ASSERT_EQUAL(cut_for(0x8004, 100), 2);
    CU_ASSERT_EQUAL(cut_for(0x8000, 100), 15);
    CU_ASSERT_EQUAL(cut_for(0x8004, 100), 15);
    CU_ASSERT_EQUAL(cut_for(0x8004, STRIPE_CHUNK_BYTES_MAX), 15);
    CU_ASSERT_EQUAL(cut_for(0x8004, 100), 2);
}

/* --- packing --- */

/* Of `kinds` different bytes: 256 cannot be packed. */
static void fill(uint32_t kinds)
{
    for (uint32_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)below(kinds);
}

/* How many of 1000 chunks were packed, or tried to be, where the ways take a byte in so many
 * picoseconds and each chunk has to wait for room; 0: there always is room. */
static uint32_t packed_of_1000(uint32_t kinds, uint64_t ps_per_byte)
{
    uint64_t now_ps = 1000;
    uint32_t tried = 0;

    begin();
    fill(kinds);
    for (uint32_t i = 0; i < 1000; i++) {
        bool packs = stripe_cut_packs(&cut);

        tried += packs;
        now_ps += ps_per_byte * stripe_cut_chunk(&cut, bytes, sizeof(bytes), packs, made);
        if (ps_per_byte)
            stripe_cut_waited(&cut, now_ps / 1000);
    }
    return tried;
}

TEST(packing_has_to_pay)
{
    CU_ASSERT_TRUE(packed_of_1000(2, 100000) > 900);  /* 10 MB/s */
    CU_ASSERT_TRUE(packed_of_1000(256, 100000) < 40); /* of which nothing is saved */
    CU_ASSERT_TRUE(packed_of_1000(2, 500) < 40);      /* 2 GB/s, faster than LZ4 */
    CU_ASSERT_TRUE(packed_of_1000(2, 0) < 40);
}

/* A burst, then nothing for an hour, and the next one: the ways are as fast as in the burst. */
TEST(pauses_do_not_count)
{
    uint64_t now_ns = 1;
    uint32_t tried = 0;

    begin();
    fill(2);
    for (uint32_t i = 0; i < 1000; i++) {
        bool packs = stripe_cut_packs(&cut);

        tried += packs;
        stripe_cut_chunk(&cut, bytes, sizeof(bytes), packs, made);
        now_ns += 30000;
        stripe_cut_waited(&cut, now_ns);
        if (i % 10 == 9) {
            stripe_cut_pause(&cut);
            now_ns += 3600000000000ull;
        }
    }
    CU_ASSERT_TRUE(tried < 40);
}

/* Once there is always room again, packing ends. */
TEST(what_is_fast_again_is_not_packed_for)
{
    uint32_t tried = 0;

    CU_ASSERT_TRUE(packed_of_1000(2, 10000) > 900);
    for (uint32_t i = 0; i < 20000; i++)
        stripe_cut_chunk(&cut, bytes, sizeof(bytes), stripe_cut_packs(&cut), made);
    for (uint32_t i = 0; i < 1000; i++)
        tried += stripe_cut_packs(&cut);
    CU_ASSERT_TRUE(tried < 40);
}
