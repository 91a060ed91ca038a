/* Another process of the job writes anything anywhere, also just before it is read, and again
 * before it is read once more: neither side of a stream leaves the memory, and none goes on for
 * ever. */
#include "tests/interleave/programs.h"
#include "tests/interleave/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 20000u
#define STEPS 60u
#define ACCESSES_MAX 20000u /* of one step: of all blocks, some */
#define SIDES 4u

struct side {
    struct cw_stream stream;
    bool reads;
};

static struct side sides[SIDES];
static const char *wrong;
static uint64_t seed;
static unsigned odds; /* one of so many reads finds what was written just before */
static unsigned accesses;

static uint64_t below(uint64_t bound)
{
    seed = seed * 0x5851f42d4c957f2dull + 0x14057b7ef767814full;
    return (seed >> 33) % bound;
}

static void expect(bool good, const char *what)
{
    if (!good && !wrong)
        wrong = what;
}

/* What may pass for what stands there; or anything. */
static uint64_t some_word(void)
{
    const struct cw_stream *of = &sides[below(SIDES)].stream;

    switch (below(6)) {
    case 0:
        return of->at + 1;
    case 1:
        return below(2 * SITE_BLOCKS_MAX);
    case 2:
        return below(3 * SITE_BLOCKS_MAX) << 32 | below(SITE_BLOCKS_MAX + 2);
    case 3:
        return below(CW_CHANNEL_BLOCK_MAX);
    default:
        return below(1ull << 31) << 33 | below(1ull << 31) << 1 | below(2);
    }
}

static void scribble(uint8_t *at, size_t size)
{
    uint64_t word;

    for (size_t n; size > 0; at += n, size -= n) {
        n = size < sizeof(word) ? size : sizeof(word);
        word = some_word();
        memcpy(at, &word, n);
    }
}

static uint8_t *first_block(void)
{
    return site_memory + site_channel.size - (size_t)site_channel.blocks * CW_CHANNEL_BLOCK_MAX;
}

/* Where blocks begin or lead to the next one, or anywhere else. */
static void write_somewhere(void)
{
    uint8_t *block = first_block() + below(site_channel.blocks) * CW_CHANNEL_BLOCK_MAX;
    uint32_t link = (uint32_t)below(site_channel.blocks + 2);

    switch (below(4)) {
    case 0:
        memcpy(block + CW_CHANNEL_BLOCK_MAX - sizeof(link), &link, sizeof(link));
        break;
    case 1:
        scribble(block, sizeof(struct cw_piece));
        break;
    case 2:
        scribble(site_memory + below((size_t)(first_block() - site_memory) / 8) * 8, 8);
        break;
    default:
        scribble(site_memory + below(site_channel.size / 8) * 8, 8);
    }
}

static void meddle(void *at, size_t size, bool writes)
{
    if ((uint8_t *)at + size > site_memory + site_channel.size || ++accesses > ACCESSES_MAX) {
        printf("# %s\n", accesses > ACCESSES_MAX ? "it goes on for ever" : "it leaves the memory");
        exit(1);
    }
    if (!writes && below(odds) == 0)
        scribble(at, size);
}

static void check_side(const struct cw_stream *stream)
{
    if (!stream->block)
        return;
    expect(stream->number < site_channel.blocks, "it is in a block that there is not");
    expect(stream->block == first_block() + (size_t)stream->number * CW_CHANNEL_BLOCK_MAX,
           "it is in another block than its number says");
    expect(stream->offset <= CW_CHANNEL_BLOCK_MAX - CW_CHANNEL_LINE,
           "it is behind the end of its block");
}

/* A new incarnation. */
static void begin_side(unsigned number)
{
    struct side *side = &sides[number];
    bool keeps = cw_channel_keeps(&site_channel);

    side->reads = number & 1;
    side->stream = number < 2 ? cw_channel_stream(&site_channel, 1, 0, keeps)
                              : cw_channel_decisions(&site_channel, 0);
    if (!side->reads && side->stream.keeps)
        cw_stream_find_end(&side->stream);
}

static void write_side(struct cw_stream *stream)
{
    uint8_t bytes[CW_CHANNEL_BLOCK_MAX] = {0};
    struct cw_piece piece = {.type = CW_PIECE_MORE};
    int32_t room = cw_stream_room(stream, below(CW_CHANNEL_BLOCK_MAX));

    if (room < 0) {
        cw_stream_wait(stream);
        return;
    }
    piece.size = (uint32_t)room;
    cw_stream_put(stream, &piece, &(struct iovec){bytes, piece.size}, 0);
}

static void read_side(struct cw_stream *stream)
{
    struct cw_piece piece;

    if (!cw_stream_next(stream, &piece))
        return;
    expect(piece.type < CW_PIECE_TYPES, "it reads a piece of a type that there is not");
    expect(cw_stream_payload(stream) + piece.size <= stream->block + CW_CHANNEL_BLOCK_MAX,
           "it reads more than there is in a block");
    cw_stream_take(stream, &piece);
    cw_stream_is_awaited(stream);
}

static void step(void)
{
    unsigned number = (unsigned)below(SIDES);
    struct side *side = &sides[number];
    uint64_t what = below(20);

    accesses = 0;
    if (side->stream.broken || what == 0)
        begin_side(number);
    else if (what < 4)
        write_somewhere();
    else if (what == 4 && side->reads)
        cw_stream_forget(&side->stream);
    else if (what < 7 && (side->reads || number >= 2))
        cw_stream_free(&side->stream, side->stream.at);
    else if (!side->reads)
        write_side(&side->stream);
    else
        read_side(&side->stream);
    check_side(&side->stream);
}

const char *hostile_run(void)
{
    model_use(site_memory, sizeof(site_memory));
    wrong = NULL;
    for (unsigned run = 0; run < RUNS && !wrong; run++) {
        seed = run;
        odds = 4u << below(6);
        explore_meddle = NULL;
        site_start(run & 1 ? 4 : 0);
        explore_meddle = meddle;
        for (unsigned i = 0; i < SIDES; i++)
            begin_side(i);
        for (unsigned i = 0; i < STEPS && !wrong; i++)
            step();
    }
    explore_meddle = NULL;
    return wrong;
}
