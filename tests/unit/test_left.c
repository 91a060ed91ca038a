/* Chains that were left: what the last step says of them is found again in blocks and on disk; what
 * is missing or makes no sense is refused, and nothing is lost or held twice. */
#include "tests/lib/fake_disk.h"
#include "tests/unit/left_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("left chains");

#define SEGMENT STORE_SEGMENT_BYTES
#define SEGMENTS 10u

/* Whose chains they are. */
struct owner {
    struct ledger_entry entry;
    struct chain chain;
};

static struct site now;
static struct owner owner;
static struct fake_disk disk;

static void save_chain(const void *of, void *body)
{
    struct chain_end end = chain_end(&((const struct owner *)of)->chain);

    memcpy(body, &end, sizeof(end));
}

static void start(uint64_t log_memory, bool with_disk)
{
    disk = (struct fake_disk){.seed = with_disk};
    left_site_open(&now, left_new(), log_memory, with_disk ? SITE_MEMORY : 0);
    memset(&owner, 0, sizeof(owner));
    CU_ASSERT_TRUE(ledger_enter(&now.ledger, &owner.entry, LEDGER_RANK, &owner, save_chain));
    chain_init(&owner.chain, &now.store, &now.pool);
    chain_keep(&owner.chain, &owner.entry, 2);
}

/* The relay is killed, and another one finds what it left. */
static void kill_it(struct site *next)
{
    struct ledger_memory *copy = left_copy(now.left);

    disk.count = 0;
    left_site_open(next, copy, now.store.memory_max, disk.seed ? SITE_MEMORY : 0);
}

static void finish(void)
{
    chain_free(&owner.chain);
    left_site_step(&now);
    left_site_close(&now);
    fake_disk_fini(&disk);
}

/* --- chains -------------------------------------------------------------------------------------
 */
/* The whole of a segment that is the first of so many that the number is in each of its bytes. */
static void append(uint8_t number)
{
    uint64_t position;
    uint64_t held = 0;
    uint8_t *at = chain_append(&owner.chain, SEGMENT, &position, &held);

    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    memset(at, number, SEGMENT);
}

static void serve(struct site *s, bool all)
{
    struct relay_log_done done;
    struct relay_log_io io;

    do
        while (store_next_io(&s->store, &io))
            fake_disk_take(&disk, &io);
    while (all && fake_disk_done(&disk, &done) && (store_io_done(&s->store, &done), true));
}

/* Takes the owner's state out of what was left. */
static int take_chain(struct site *s, struct owner *to, uint32_t cell)
{
    const void *body = ledger_find(&s->ledger, cell, LEDGER_RANK);
    struct chain_end end;

    CU_ASSERT_PTR_NOT_NULL_FATAL(body);
    memcpy(&end, body, sizeof(end));
    memset(to, 0, sizeof(*to));
    chain_init(&to->chain, &s->store, &s->pool);
    ledger_return(&s->ledger, &to->entry, cell, to, save_chain);
    return chain_return(&to->chain, &to->entry, 2, end);
}

/* All of it, from segment `first` on: each byte is the number of its segment. */
static void check_bytes(struct site *s, const struct chain *chain, uint32_t first, uint32_t count)
{
    uint64_t position = (uint64_t)first << CHAIN_SHIFT;
    struct chain_bytes bytes;
    uint32_t seen = 0;

    for (enum chain_found found = CHAIN_HERE; found != CHAIN_END;) {
        found = chain_read(chain, &position, &bytes);
        CU_ASSERT_NOT_EQUAL_FATAL(found, CHAIN_LOST);
        if (found == CHAIN_AWAY) {
            serve(s, true);
            store_end_round(&s->store);
        }
        if (found != CHAIN_HERE)
            continue;
        CU_ASSERT_EQUAL(bytes.size, SEGMENT);
        CU_ASSERT_EQUAL(bytes.at[0], first + seen);
        CU_ASSERT_EQUAL(bytes.at[bytes.size - 1], first + seen);
        position += bytes.size;
        seen++;
    }
    CU_ASSERT_EQUAL(seen, count);
}

static void finish_next(struct site *next, struct owner *of)
{
    left_site_returned(next);
    chain_free(&of->chain);
    left_site_step(next);
    left_site_close(next);
}

TEST(blocks_are_found)
{
    struct relay_block *other[2];
    struct site next;
    struct owner to;

    start(SITE_MEMORY, false);
    other[0] = relay_block_new(&now.pool, false);
    for (uint8_t i = 0; i < 3; i++)
        append(i);
    other[1] = relay_block_new(&now.pool, false);
    left_site_step(&now);
    append(3); /* no step follows */
    kill_it(&next);
    CU_ASSERT_EQUAL(next.ledger.left_count, 4);
    CU_ASSERT_EQUAL(next.memory.supply.spare_count, 2);
    CU_ASSERT_PTR_NULL(ledger_left(&next.ledger, owner.chain.name, 4));
    CU_ASSERT_PTR_NULL(ledger_left(&next.ledger, owner.chain.name + 1, 0));
    CU_ASSERT_EQUAL(take_chain(&next, &to, owner.entry.cell), CW_OK);
    CU_ASSERT_EQUAL(next.stats.memory_now, 3 * sizeof(struct relay_block) +
                                               3 * sizeof(struct log_segment) +
                                               4 * sizeof(struct log_segment *));
    left_site_returned(&next);
    CU_ASSERT_EQUAL(next.ledger.left_count, 0);
    CU_ASSERT_EQUAL(next.memory.supply.spare_count, 3);
    check_bytes(&next, &to.chain, 0, 3);
    finish_next(&next, &to);
    relay_block_release(other[0]);
    relay_block_release(other[1]);
    finish();
}

/* In memory, on disk, or both: each segment is one piece, and comes once. */
TEST(disk_and_memory_are_one)
{
    struct site next;
    struct owner to;
    uint32_t both = 0;
    uint32_t cold = 0;

    start(6 * SEGMENT, true);
    for (uint8_t i = 0; i < SEGMENTS; i++) {
        append(i);
        serve(&now, true);
    }
    left_site_step(&now);
    kill_it(&next);
    CU_ASSERT_EQUAL(next.ledger.left_count, SEGMENTS);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        const struct ledger_piece *piece = ledger_left(&next.ledger, owner.chain.name, i);

        CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
        both += piece->block && piece->extent != LEDGER_EXTENTS;
        cold += !piece->block && piece->extent != LEDGER_EXTENTS;
    }
    CU_ASSERT_TRUE(both > 0 && cold > 0 && both + cold < SEGMENTS);
    CU_ASSERT_EQUAL(take_chain(&next, &to, owner.entry.cell), CW_OK);
    left_site_returned(&next);
    check_bytes(&next, &to.chain, 0, SEGMENTS);
    finish_next(&next, &to);
    finish();
}

/* What is being written, or was dropped, has no place there. */
TEST(untaken_places_are_free)
{
    struct site next;
    struct owner to;

    start(6 * SEGMENT, true);
    for (uint8_t i = 0; i < SEGMENTS; i++) {
        append(i);
        serve(&now, i < 6);
    }
    CU_ASSERT_TRUE(disk.count > 0);
    chain_trim(&owner.chain, 2);
    left_site_step(&now);
    append(SEGMENTS);
    kill_it(&next);
    CU_ASSERT_EQUAL(take_chain(&next, &to, owner.entry.cell), CW_OK);
    CU_ASSERT_EQUAL(to.chain.first, 2);
    CU_ASSERT_EQUAL(to.chain.count, SEGMENTS - 2);
    left_site_returned(&next);
    CU_ASSERT_TRUE(next.store.free_count >= 2);
    for (uint32_t i = 0; i < next.store.free_count; i++)
        CU_ASSERT_EQUAL(next.left->extents[next.store.free_extents[i]].chain, 0);
    serve(&next, true);
    check_bytes(&next, &to.chain, 2, SEGMENTS - 2);
    finish_next(&next, &to);
    while (disk.count)
        disk.count--;
    finish();
}

/* A chain that was taken, and given up before all were: its places on disk are free, and once. */
TEST(places_are_free_once)
{
    uint32_t times[SEGMENTS] = {0};
    struct site next;
    struct owner to;

    start(6 * SEGMENT, true);
    for (uint8_t i = 0; i < SEGMENTS; i++) {
        append(i);
        serve(&now, true);
    }
    left_site_step(&now);
    kill_it(&next);
    CU_ASSERT_EQUAL(take_chain(&next, &to, owner.entry.cell), CW_OK);
    chain_free(&to.chain);
    store_settle(&next.store);
    left_site_returned(&next);
    CU_ASSERT_EQUAL(next.store.free_count, next.store.extents);
    for (uint32_t i = 0; i < next.store.free_count; i++)
        times[next.store.free_extents[i]]++;
    for (uint32_t i = 0; i < next.store.extents; i++)
        CU_ASSERT_EQUAL(times[i], 1);
    left_site_close(&next);
    finish();
}

/* Segments that were let go of stay until the step that says so. */
TEST(trimmed_chain_is_whole_until_the_step)
{
    struct site next;
    struct owner to;

    start(SITE_MEMORY, false);
    for (uint8_t i = 0; i < 5; i++)
        append(i);
    left_site_step(&now);
    chain_trim(&owner.chain, 3);
    for (int done = 0; done < 2; done++) {
        kill_it(&next);
        CU_ASSERT_EQUAL(take_chain(&next, &to, owner.entry.cell), CW_OK);
        left_site_returned(&next);
        check_bytes(&next, &to.chain, done ? 3 : 0, done ? 2 : 5);
        finish_next(&next, &to);
        left_site_step(&now);
    }
    finish();
}

/* What a copy says is changed before it is taken up. */
static void chain_is_refused(void (*spoil)(struct site *next, struct ledger_piece *second))
{
    struct site next;
    struct owner to;

    start(SITE_MEMORY, false);
    for (uint8_t i = 0; i < 3; i++)
        append(i);
    left_site_step(&now);
    kill_it(&next);
    spoil(&next, ledger_left(&next.ledger, owner.chain.name, 1));
    CU_ASSERT_EQUAL(take_chain(&next, &to, owner.entry.cell), CW_EPROTO);
    finish_next(&next, &to);
    finish();
}

static void lose_segment(struct site *next, struct ledger_piece *second)
{
    (void)next;
    second->number = 77;
}

static void take_segment(struct site *next, struct ledger_piece *second)
{
    (void)next;
    second->number = 77;
    second->taken = true;
    second->block->mark.chain = 0;
    supply_give(&next->memory.supply, second->block);
}

static void use_too_much(struct site *next, struct ledger_piece *second)
{
    (void)next;
    second->used = RELAY_BLOCK_BYTES + 1;
}

static void end_too_late(struct site *next, struct ledger_piece *second)
{
    struct chain_end end = {.count = 3, .used = RELAY_BLOCK_BYTES + 1};

    (void)second;
    memcpy(next->left->cells[owner.entry.cell].copy[0].body, &end, sizeof(end));
    memcpy(next->left->cells[owner.entry.cell].copy[1].body, &end, sizeof(end));
}

TEST(chain_that_is_not_whole)
{
    chain_is_refused(lose_segment);
    chain_is_refused(take_segment);
    chain_is_refused(use_too_much);
    chain_is_refused(end_too_late);
}
