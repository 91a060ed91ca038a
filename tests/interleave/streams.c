/* A writer and a reader of one stream: each piece is read once, in order and whole, also after
 * deaths; and no one sleeps for ever. */
#include "tests/interleave/programs.h"
#include "tests/interleave/site.h"

#define READER 0u
#define WRITER 1u
#define LARGE 300u /* bytes of payload: one in a block */
#define LOG_BLOCKS 4u
#define MIXED_IN_A_BLOCK 5u
#define ALL_BLOCKS 12u /* of the memory then */

static struct {
    struct cw_stream writer;
    struct cw_stream second; /* of another writer, to the same reader or to another */
    struct cw_stream reader;
    struct cw_stream second_reader;
    struct cw_stream image; /* of the reader, which goes on from there */
    struct cw_stream decisions;
    unsigned taken;
    unsigned image_taken;
    unsigned second_taken;
    unsigned pieces;
    struct cw_piece (*piece)(unsigned number);
} s;

static struct cw_stream new_stream(bool keeps)
{
    return cw_channel_stream(&site_channel, WRITER, READER, keeps);
}

static void start(unsigned log_blocks, struct cw_piece (*piece)(unsigned number), unsigned pieces)
{
    site_start(log_blocks);
    s.writer = s.reader = s.image = new_stream(log_blocks > 0);
    s.second = s.second_reader = cw_channel_stream(&site_channel, READER, READER, log_blocks > 0);
    s.decisions = (struct cw_stream){.block = NULL};
    s.taken = s.image_taken = s.second_taken = 0;
    s.piece = piece;
    s.pieces = pieces;
}

static void put_before(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct cw_piece piece = s.piece(i);

        explore_check(site_put(&s.writer, &piece), "there is no room for what is put before");
    }
}

static bool take_next(void)
{
    struct cw_piece piece = s.piece(s.taken);

    if (s.taken == s.pieces || !site_take(&s.reader, &piece))
        return false;
    s.taken++;
    return true;
}

static void take_before(unsigned count)
{
    while (s.taken < count)
        explore_check(take_next(), "a piece is not there that was put before");
}

/* --- pieces -----------------------------------------------------------------------------------
 */

static struct cw_piece one_in_a_block(unsigned number)
{
    return site_piece(CW_PIECE_INPUTS, number, LARGE);
}

static struct cw_piece small(unsigned number)
{
    return site_piece(CW_PIECE_SENT, number, 0);
}

/* Messages of two pieces, each with a SENT behind it; the last SENT of two goes to the next block.
 */
static struct cw_piece mixed(unsigned number)
{
    static const unsigned types[] = {CW_PIECE_TAG, CW_PIECE_MORE, CW_PIECE_SENT};
    static const unsigned sizes[] = {64, 24, 0};

    return site_piece(types[number % 3], number, sizes[number % 3]);
}

/* How many of them were put, as a successor finds it. */
static unsigned mixed_of(const struct cw_stream_sum *sum)
{
    unsigned number = (unsigned)sum->sents * 3;

    if (sum->messages > sum->sents)
        number += sum->bytes == 64 ? 1 : 2;
    explore_check(sum->messages - sum->sents <= 1, "a successor finds messages that were not put");
    explore_check(sum->messages == 0 || sum->bytes == 88 || number % 3 == 1,
                  "a successor finds other bytes of a message than were put");
    return number;
}

/* --- actors -----------------------------------------------------------------------------------
 */

static void write_and_sleep(void)
{
    while (s.writer.sum.sents < s.pieces) {
        struct cw_piece piece = s.piece((unsigned)s.writer.sum.sents);

        explore_forget(1);
        while (!site_put(&s.writer, &piece)) {
            explore_check(!s.writer.spent, "there is no block");
            site_sleep_writing(WRITER, &s.writer, piece.size);
        }
        s.writer.sum.sents++; /* which is not counted where nothing is kept */
        site_wake(READER);
    }
}

static void read_and_sleep(void)
{
    while (s.taken < s.pieces) {
        explore_forget(1);
        if (!take_next())
            site_sleep_reading(READER, &s.reader);
        else if (cw_stream_is_awaited(&s.reader))
            site_wake(WRITER);
    }
}

/* Goes on behind what its predecessors put, and wakes the reader as if it had been asleep. */
static void write_mixed(void)
{
    unsigned number;

    if (explore_lives() > 0) {
        s.writer = new_stream(true);
        cw_stream_find_end(&s.writer);
        site_wake(READER);
    }
    while ((number = mixed_of(&s.writer.sum)) < s.pieces) {
        struct cw_piece piece = s.piece(number);

        explore_forget(1);
        explore_check(site_put(&s.writer, &piece), "there is no room");
        explore_check(mixed_of(&s.writer.sum) == number + 1, "the writer counts otherwise");
        site_wake(READER);
    }
}

/* An image after each piece, which is safe at once. */
static void take_image(void)
{
    s.image = s.reader;
    s.image_taken = s.taken;
    cw_stream_free(&s.reader, s.image.at);
}

static void read_with_images(void)
{
    s.reader = s.image;
    s.taken = s.image_taken;
    while (s.taken < s.pieces) {
        explore_forget(1);
        if (take_next())
            take_image();
        else
            site_sleep_reading(READER, &s.reader);
    }
}

/* Nobody sleeps: the reader looks once, and the rest is taken in the end. An image may follow
 * though nothing came. */
static void read_once(void)
{
    take_next();
    take_image();
}

static void write_large(bool wakes)
{
    if (explore_lives() > 0) {
        s.writer = new_stream(true);
        cw_stream_find_end(&s.writer);
        if (wakes)
            site_wake(READER);
    }
    while (s.writer.at / CW_CHANNEL_BLOCK_MAX + (s.writer.offset > 0) < s.pieces) {
        struct cw_piece piece =
            one_in_a_block((unsigned)(s.writer.at / CW_CHANNEL_BLOCK_MAX) + (s.writer.offset > 0));

        explore_forget(1);
        explore_check(site_put(&s.writer, &piece), "there is no room");
        if (wakes)
            site_wake(READER);
    }
}

static void write_and_wake(void)
{
    write_large(true);
}

static void write_quietly(void)
{
    write_large(false);
}

/* Another process, which takes blocks that were given back. */
static void take_blocks(void)
{
    struct cw_piece piece = one_in_a_block(99);

    explore_check(site_put(&s.second, &piece), "there is no room");
}

/* --- two writers ---
 */

static void write_one(struct cw_stream *stream, unsigned number)
{
    struct cw_piece piece = small(number);

    explore_check(site_put(stream, &piece), "there is no room");
    site_wake(READER);
}

static void write_first(void)
{
    write_one(&s.writer, 1);
}

static void write_second(void)
{
    write_one(&s.second, 1);
}

static bool take_second(void)
{
    struct cw_piece piece = small(s.second_taken);

    if (s.second_taken == s.pieces || !site_take(&s.second_reader, &piece))
        return false;
    s.second_taken++;
    return true;
}

static void read_both(void)
{
    while (s.taken < s.pieces || s.second_taken < s.pieces) {
        explore_forget(1);
        if (!take_next() & !take_second())
            site_sleep_reading_two(READER, &s.reader, &s.second_reader);
    }
}

/* --- decisions ---
 */

/* Repeats what its predecessors wrote down since the last image, then decides itself. */
static void decide(void)
{
    s.writer = s.image;
    s.taken = s.image_taken;
    for (struct cw_piece piece = s.piece(s.taken); site_take(&s.writer, &piece);
         piece = s.piece(++s.taken))
        explore_forget(1);
    cw_stream_find_end(&s.writer);
    while (s.taken < s.pieces) {
        struct cw_piece piece = s.piece(s.taken);

        explore_forget(2);
        explore_check(site_put(&s.writer, &piece), "there is no room");
        s.taken++;
        s.image = s.writer;
        s.image_taken = s.taken;
        cw_stream_free(&s.writer, s.image.at);
    }
}

/* --- a log that is spent ---
 */

static void write_until_spent(void)
{
    while (s.second_taken < s.pieces) {
        struct cw_piece piece = s.piece(s.second_taken);

        explore_forget(1);
        while (!site_put(&s.writer, &piece)) {
            if (s.writer.spent) {
                cw_channel_set_spent(&site_channel);
                s.writer.keeps = false;
            }
            site_sleep_writing(WRITER, &s.writer, piece.size);
        }
        s.second_taken++;
        site_wake(READER);
    }
}

static void read_until_spent(void)
{
    while (s.taken < s.pieces) {
        explore_forget(1);
        if (s.reader.keeps && cw_channel_is_spent(&site_channel))
            cw_stream_forget(&s.reader);
        if (!take_next())
            site_sleep_reading(READER, &s.reader);
        else if (cw_stream_is_awaited(&s.reader))
            site_wake(WRITER);
    }
}

/* --- programs ---------------------------------------------------------------------------------
 */

static void check_blocks_with(uint32_t writer, uint32_t second, uint32_t decisions)
{
    uint32_t last[SITE_STREAMS];

    for (unsigned i = 0; i < SITE_STREAMS; i++)
        last[i] = UINT32_MAX;
    last[READER * SITE_RANKS + WRITER] = writer;
    last[READER * SITE_RANKS + READER] = second;
    last[SITE_RANKS * SITE_RANKS + READER] = decisions;
    explore_check(s.taken == s.pieces, "pieces are missing");
    site_check_blocks(last, explore_deaths());
}

static uint32_t last_of(const struct cw_stream *stream)
{
    return stream->block ? stream->number : UINT32_MAX;
}

static void check_ends(void)
{
    check_blocks_with(s.writer.number, last_of(&s.second), last_of(&s.decisions));
}

static void check_rest(void)
{
    take_before(s.pieces);
    check_ends();
}

static void check_decisions(void)
{
    check_blocks_with(UINT32_MAX, s.second.number, s.writer.number);
}

static void start_empty(void)
{
    start(0, small, 3);
}

/* And there are no blocks but those of this stream: what its reader gives back is taken next. */
static void start_full(void)
{
    start(0, one_in_a_block, 3);
    s.decisions = cw_channel_decisions(&site_channel, READER);
    for (unsigned i = 0; i < site_channel.blocks - CW_CHANNEL_AHEAD; i++) {
        struct cw_piece piece = one_in_a_block(i);

        explore_check(site_put(&s.decisions, &piece), "there is no block for what is put before");
    }
    put_before(1);
    s.writer.sum.sents = 1;
}

static void start_full_longer(void)
{
    start_full();
    s.pieces = 4;
}

static void start_two_writers(void)
{
    start(0, small, 2);
    put_before(1);
    write_one(&s.second, 0);
}

/* The first block that is taken was the first one of another stream: what lies there looks right.
 */
static void start_log_empty(void)
{
    start(LOG_BLOCKS, mixed, 2);
    for (unsigned i = 0; i < 2 * MIXED_IN_A_BLOCK + 1; i++) {
        struct cw_piece piece = mixed(i);

        explore_check(site_put(&s.second, &piece) && site_take(&s.second_reader, &piece),
                      "a piece does not pass before");
    }
    cw_stream_free(&s.second_reader, s.second_reader.at);
}

static void start_log_empty_longer(void)
{
    start_log_empty();
    s.pieces = 3;
}

static void image_before(unsigned taken)
{
    take_before(taken);
    s.image = s.reader;
    s.image_taken = s.taken;
}

static void start_log_before_a_block(void)
{
    start(LOG_BLOCKS, mixed, 6);
    put_before(4);
    image_before(3);
}

static void start_log_before_a_block_longer(void)
{
    start_log_before_a_block();
    s.pieces = 7;
}

static void start_blocks(void)
{
    start(LOG_BLOCKS, one_in_a_block, 4);
    put_before(3);
    image_before(2);
}

static void start_blocks_longer(void)
{
    start_blocks();
    s.pieces = 5;
}

static void start_one_block(void)
{
    start(LOG_BLOCKS, one_in_a_block, 3);
    put_before(2);
    image_before(2);
}

static void start_decisions(void)
{
    start(LOG_BLOCKS, one_in_a_block, 3);
    s.writer = s.image = cw_channel_decisions(&site_channel, READER);
}

static void start_decisions_longer(void)
{
    start_decisions();
    s.pieces = 4;
}

static void start_spent(void)
{
    start(LOG_BLOCKS, one_in_a_block, ALL_BLOCKS + 2);
    put_before(ALL_BLOCKS);
    s.second_taken = ALL_BLOCKS;
    take_before(ALL_BLOCKS - 1);
}

static const struct program list[] = {
    {.name = "pieces pass, both sides sleep",
     .start = start_empty,
     .actors = {{read_and_sleep, false}, {write_and_sleep, false}},
     .end = check_ends},
    {.name = "a stream is full, both sides sleep",
     .start = start_full,
     .actors = {{read_and_sleep, false}, {write_and_sleep, false}},
     .end = check_ends},
    {.name = "a stream is full for longer, both sides sleep",
     .start = start_full_longer,
     .actors = {{read_and_sleep, false}, {write_and_sleep, false}},
     .end = check_ends,
     .slow = true},
    {.name = "two writers wake a reader",
     .start = start_two_writers,
     .actors = {{read_both, false}, {write_first, false}, {write_second, false}},
     .end = check_ends},
    {.name = "a writer dies in its first block",
     .start = start_log_empty,
     .actors = {{read_with_images, false}, {write_mixed, true}},
     .end = check_ends,
     .deaths = 1},
    {.name = "a writer dies within what it writes, and so does its successor",
     .start = start_log_empty_longer,
     .actors = {{read_with_images, false}, {write_mixed, true}},
     .end = check_ends,
     .deaths = 2,
     .torn = true,
     .slow = true},
    {.name = "a writer dies between two blocks",
     .start = start_log_before_a_block,
     .actors = {{read_with_images, false}, {write_mixed, true}},
     .end = check_ends,
     .deaths = 1},
    {.name = "a writer dies within what it writes",
     .start = start_log_before_a_block_longer,
     .actors = {{read_once, false}, {write_mixed, true}},
     .end = check_rest,
     .deaths = 1,
     .torn = true},
    {.name = "a reader dies",
     .start = start_log_before_a_block,
     .actors = {{read_with_images, true}, {write_mixed, false}},
     .end = check_ends,
     .deaths = 1},
    {.name = "a reader that gives blocks back dies",
     .start = start_blocks,
     .actors = {{read_with_images, true}, {write_and_wake, false}},
     .end = check_ends,
     .deaths = 1},
    {.name = "a writer dies while blocks are given back",
     .start = start_blocks,
     .actors = {{read_with_images, false}, {write_and_wake, true}},
     .end = check_ends,
     .deaths = 1},
    {.name = "both sides of a stream die",
     .start = start_blocks_longer,
     .actors = {{read_with_images, true}, {write_and_wake, true}},
     .end = check_ends,
     .deaths = 2,
     .slow = true},
    {.name = "a writer dies while blocks that are given back are taken",
     .start = start_one_block,
     .actors = {{read_once, false}, {write_quietly, true}, {take_blocks, false}},
     .end = check_rest,
     .deaths = 1},
    {.name = "a rank dies while it decides",
     .start = start_decisions,
     .actors = {{decide, true}, {take_blocks, false}},
     .end = check_decisions,
     .deaths = 1},
    {.name = "a rank dies within what it decides, and so does its successor",
     .start = start_decisions_longer,
     .actors = {{decide, true}, {take_blocks, false}},
     .end = check_decisions,
     .deaths = 2,
     .torn = true,
     .slow = true},
    {.name = "a log is spent",
     .start = start_spent,
     .actors = {{read_until_spent, false}, {write_until_spent, false}},
     .end = check_ends,
     .times_out = true},
};

const struct programs stream_programs = {.list = list,
                                         .count = sizeof(list) / sizeof(*list),
                                         .memory = site_memory,
                                         .size = SITE_BYTES_MAX,
                                         .state = {&s, sizeof(s)}};
