/* Streams that take blocks from the free list and give them back, side by side: no block is in two
 * places, and a process that dies loses at most the one that it had in hand. */
#include "tests/interleave/programs.h"
#include "tests/interleave/site.h"

#define LARGE 300u /* bytes of payload: one in a block */

/* Streams from rank `from` to rank `to`, and their reader where the same actor reads. */
struct lane {
    struct cw_stream writer;
    struct cw_stream reader;
    unsigned put;
    unsigned taken;
};

static struct {
    struct lane lanes[SITE_RANKS * SITE_RANKS]; /* by place in the memory */
} s;

static void put(struct lane *lane)
{
    struct cw_piece piece = site_piece(CW_PIECE_INPUTS, lane->put, LARGE);

    explore_check(site_put(&lane->writer, &piece), "there is no room");
    lane->put++;
}

static void take(struct lane *lane)
{
    struct cw_piece piece = site_piece(CW_PIECE_INPUTS, lane->taken, LARGE);

    explore_check(site_take(&lane->reader, &piece), "a piece is not there");
    lane->taken++;
}

static void begin(void)
{
    site_start(0);
    for (unsigned i = 0; i < SITE_RANKS * SITE_RANKS; i++) {
        s.lanes[i].put = s.lanes[i].taken = 0;
        s.lanes[i].writer = s.lanes[i].reader =
            cw_channel_stream(&site_channel, i % SITE_RANKS, i / SITE_RANKS, false);
    }
}

/* Lane 3 has given three blocks back. */
static void start(void)
{
    begin();
    for (unsigned i = 0; i < 4; i++) {
        put(&s.lanes[3]);
        take(&s.lanes[3]);
    }
}

/* Two lanes have one to give back each. */
static void start_giving(void)
{
    begin();
    for (unsigned i = 0; i < 2; i++) {
        put(&s.lanes[1]);
        put(&s.lanes[2]);
    }
}

/* --- actors: who has died does not go on -------------------------------------------------------
 */

static void take_one_block(void)
{
    if (explore_lives() == 0)
        put(&s.lanes[0]);
}

static void take_another_block(void)
{
    put(&s.lanes[2]);
}

/* Takes the first two that are free, and gives back the first. */
static void take_two_and_give_one(void)
{
    if (explore_lives() > 0)
        return;
    put(&s.lanes[1]);
    put(&s.lanes[1]);
    take(&s.lanes[1]);
    take(&s.lanes[1]);
}

static void give_one(void)
{
    if (explore_lives() > 0)
        return;
    take(&s.lanes[1]);
    take(&s.lanes[1]);
}

static void give_another(void)
{
    take(&s.lanes[2]);
    take(&s.lanes[2]);
}

/* --- programs ---------------------------------------------------------------------------------
 */

/* Where each lane ends its writer's notes say, whether it lives or not. */
static void check_ends(void)
{
    uint32_t last[SITE_STREAMS];

    for (unsigned i = 0; i < SITE_STREAMS; i++) {
        struct cw_stream end =
            cw_channel_stream(&site_channel, i % SITE_RANKS, i / SITE_RANKS, true);

        if (i < SITE_RANKS * SITE_RANKS)
            cw_stream_find_end(&end);
        last[i] = end.block ? end.number : UINT32_MAX;
    }
    site_check_blocks(last, explore_deaths());
}

static const struct program list[] = {
    {.name = "the first free block is taken and given back while it is taken",
     .start = start,
     .actors = {{take_one_block, true}, {take_two_and_give_one, true}},
     .end = check_ends,
     .deaths = 1},
    {.name = "two give blocks back",
     .start = start_giving,
     .actors = {{give_one, true}, {give_another, false}},
     .end = check_ends,
     .deaths = 1},
    {.name = "three take blocks, and one gives one back",
     .start = start,
     .actors = {{take_one_block, false},
                {take_two_and_give_one, false},
                {take_another_block, false}},
     .end = check_ends,
     .slow = true},
    {.name = "two give blocks back, and one takes one",
     .start = start_giving,
     .actors = {{take_one_block, false}, {give_one, false}, {give_another, false}},
     .end = check_ends},
};

const struct programs block_programs = {.list = list,
                                        .count = sizeof(list) / sizeof(*list),
                                        .memory = site_memory,
                                        .size = SITE_BYTES_MAX,
                                        .state = {&s, sizeof(s)}};
