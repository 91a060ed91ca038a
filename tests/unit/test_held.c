/* The copy of a relay's log at its backup: whenever either is killed, it is that of the last whole
 * commit, with every byte. */
#include "common/err.h"
#include "relay/log/held.h"
#include "tests/unit/history.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

SUITE("copies of logs");

#define PARTS_MAX 4096u /* on their way */
#define INCARNATION 1u

/* A part that was made, and has not come to the copy. */
struct made {
    uint8_t *bytes;
    uint32_t size;
    uint64_t commit;
    bool ends;
    uint64_t step; /* with its end: that it is of */
};

static struct history h;
static struct ledger_memory *copy; /* of the backup */
static struct relay_region region;
static struct held held;
static struct made parts[PARTS_MAX];
static uint32_t first, count;
static uint64_t whole; /* the step that the copy is of; 0: of none */

static struct commit *commit(void)
{
    return &h.j.site.store.commit;
}

/* --- from the one to the other ------------------------------------------------------------------
 */
static bool make(void)
{
    static uint8_t room[RELAY_BLOCK_BYTES];
    uint32_t size = commit_copy_part(commit(), room, sizeof(room));
    struct made *made = &parts[(first + count) % PARTS_MAX];

    if (size == 0)
        return false;
    CU_ASSERT_TRUE_FATAL(count < PARTS_MAX);
    *made = (struct made){.bytes = malloc(size),
                          .size = size,
                          .commit = commit()->number,
                          .ends = commit()->ends,
                          .step = h.j.step};
    CU_ASSERT_PTR_NOT_NULL_FATAL(made->bytes);
    memcpy(made->bytes, room, size);
    store_committed(&h.j.site.store);
    count++;
    return true;
}

static int take(const uint8_t *bytes, uint64_t size)
{
    struct journal_reader reader;
    struct journal_part part;
    struct cw_err err = {0};

    if (!journal_part_at(bytes, size, &part))
        return CW_EPROTO;
    reader = journal_read_part(bytes, &part);
    return held_take(&held, &reader, &err);
}

static struct made pop(void)
{
    struct made made = parts[first];

    first = (first + 1) % PARTS_MAX;
    count--;
    return made;
}

static void forget_parts(void)
{
    while (count > 0)
        free(pop().bytes);
}

/* One part comes to the copy, and is acknowledged. */
static void bring(void)
{
    struct made made = pop();

    CU_ASSERT_EQUAL(take(made.bytes, made.size), CW_OK);
    free(made.bytes);
    if (!made.ends)
        return;
    whole = made.step;
    commit_copied(commit(), made.commit);
}

static void serve(void)
{
    for (uint64_t n = history_below(&h, 4); n > 0 && make(); n--)
        ;
    for (uint64_t n = history_below(&h, 3); n > 0; n--)
        journal_site_ask(&h.j);
    for (uint64_t n = history_below(&h, 3); n > 0 && journal_site_done(&h.j); n--)
        store_end_round(&h.j.site.store);
    for (uint64_t n = history_below(&h, 5); n > 0 && count > 0; n--)
        bring();
}

static void go_on(uint32_t steps)
{
    for (uint32_t i = 0; i < steps && h.j.step < STEPS_MAX; i++) {
        history_step(&h);
        serve();
    }
}

/* Until all is there. */
static void settle(void)
{
    bool more = true;

    commit_want(commit());
    while (more) {
        more = make();
        more |= journal_site_ask(&h.j);
        more |= journal_site_done(&h.j);
        store_end_round(&h.j.site.store);
        if (count > 0) {
            bring();
            more = true;
        }
    }
    CU_ASSERT_EQUAL(whole, h.j.step);
}

/* --- what the copy is ---------------------------------------------------------------------------
 */
/* A successor that begins on it now finds the last whole commit. */
static void check(void)
{
    static struct journal_owner owners[OWNERS];
    struct journal_site j = {.journal.copies = true};

    if (whole == 0) {
        CU_ASSERT_FALSE(held_is_whole(&held));
        return;
    }
    CU_ASSERT_TRUE(held_is_whole(&held));
    journal_site_open(&j, left_copy(copy), SITE_MEMORY);
    history_take_up(&j, owners, &h.moments[whole]);
    for (uint32_t i = 0; i < OWNERS; i++)
        journal_owner_leave(&owners[i]);
    left_site_step(&j.site);
    left_site_close(&j.site);
}

static void open_copy(uint32_t incarnation)
{
    region = (struct relay_region){.start = left_region(copy), .size = LEFT_REGION};
    CU_ASSERT_EQUAL_FATAL(held_open(&held, copy, &region, incarnation), CW_OK);
}

/* A new session: all that is comes again. */
static void begin_session(void)
{
    forget_parts();
    held_begin(&held);
    commit_copy(commit(), true);
}

/* The backup is killed, and another process takes its memory up. */
static void kill_backup(void)
{
    struct ledger_memory *left = left_copy(copy);

    held_close(&held);
    left_free(copy);
    copy = left;
    open_copy(INCARNATION);
    begin_session();
}

/* The relay is killed, and goes on with the memory that its host keeps. */
static void kill_relay(void)
{
    struct ledger_memory *left = left_copy(h.j.site.left);

    history_forget_process(&h);
    journal_site_open(&h.j, left, LOG_MEMORY);
    history_take_up(&h.j, h.owners, &h.moments[h.j.step]);
    begin_session();
}

static void begin(uint64_t seed)
{
    memset(&h, 0, sizeof(h));
    h.seed = seed;
    journal_site_start_copies(&h.j, LOG_MEMORY, seed);
    journal_owner_enter(&h.j, &h.owners[0], 0);
    copy = left_new();
    whole = 0;
    open_copy(INCARNATION);
}

static void end(void)
{
    forget_parts();
    history_forget_process(&h);
    fake_disk_fini(&h.j.disk);
    held_close(&held);
    left_free(copy);
}

TEST(copy_is_that_of_the_last_whole_commit)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        begin(seed);
        go_on(20); /* before there is a copy */
        begin_session();
        for (int life = 0; life < 12; life++) {
            go_on(1 + (uint32_t)history_below(&h, 40));
            check();
        }
        settle();
        check();
        end();
    }
}

TEST(either_is_killed_at_any_time)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        begin(100 + seed);
        begin_session();
        for (int life = 0; life < 16; life++) {
            go_on(1 + (uint32_t)history_below(&h, 30));
            if (history_below(&h, 2))
                kill_backup();
            else
                kill_relay();
            check();
        }
        settle();
        check();
        end();
    }
}

/* The first records of a part, as a part of its own that does not end a commit. */
static uint32_t cut(const struct made *made, uint32_t records, uint8_t *to)
{
    struct journal_record record;
    struct journal_reader reader;
    struct journal_writer writer;
    struct journal_part part;
    const uint8_t *bytes;
    bool sense;

    CU_ASSERT_TRUE_FATAL(journal_part_at(made->bytes, made->size, &part));
    reader = journal_read_part(made->bytes, &part);
    journal_start(&writer, to, RELAY_BLOCK_BYTES);
    while (records-- > 0) {
        if (!journal_next_record(&reader, &record, &bytes, &sense))
            return 0;
        memcpy(journal_add(&writer, &record), bytes, record.size);
    }
    part.ends = false;
    return journal_seal(&writer, &part);
}

/* The backup is killed behind each record of a part. */
static void cut_everywhere(const struct made *made)
{
    static uint8_t some[RELAY_BLOCK_BYTES];
    struct ledger_memory *before = left_copy(copy);
    struct held was = held;
    uint32_t size;

    for (uint32_t n = 1; (size = cut(made, n, some)) > 0; n++) {
        held_close(&held);
        left_free(copy);
        copy = left_copy(before);
        open_copy(INCARNATION);
        held.journal = was.journal;
        held.part = was.part;
        held.round = was.round + 1;
        held.first = was.first;
        CU_ASSERT_EQUAL(take(some, size), CW_OK);
        check();
    }
    left_free(before);
    kill_backup();
}

TEST(backup_is_killed_behind_each_record)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        begin(200 + seed);
        begin_session();
        for (int life = 0; life < 6; life++) {
            go_on(10 + (uint32_t)history_below(&h, 20));
            history_step(&h);
            if (count == 0 && !make())
                continue;
            struct made made = pop();

            cut_everywhere(&made);
            free(made.bytes);
        }
        settle();
        check();
        end();
    }
}

/* What another incarnation left there goes before anything of this one comes. */
TEST(another_incarnation_begins_anew)
{
    begin(300);
    begin_session();
    go_on(30);
    settle();
    held_close(&held);
    open_copy(INCARNATION + 1);
    whole = 0;
    check();
    begin_session();
    go_on(10);
    settle();
    check();
    end();
}

TEST(copy_that_is_no_more_wanted_and_another)
{
    begin(400);
    begin_session();
    go_on(30);
    forget_parts();
    commit_copy_end(commit());
    CU_ASSERT_FALSE(commit_is_on(commit()) || commit_holds(commit()));
    go_on(40);
    CU_ASSERT_EQUAL(count, 0);
    begin_session();
    settle();
    check();
    end();
}

TEST(bounded_commits_are_on_their_way)
{
    begin(500);
    begin_session();
    for (uint32_t i = 0; i < 3 * COMMITS_OUT_MAX; i++) {
        history_step(&h);
        while (make())
            ;
    }
    CU_ASSERT_EQUAL(commit()->number, COMMITS_OUT_MAX);
    CU_ASSERT_FALSE(commit_is_next(commit()));
    settle();
    check();
    end();
}

/* --- hostile bytes ------------------------------------------------------------------------------
 */
static int say(const struct journal_record *record, const struct journal_part *part)
{
    static const uint8_t zeros[RELAY_BLOCK_BYTES];
    static uint8_t room[RELAY_BLOCK_BYTES];
    struct journal_writer writer;

    journal_start(&writer, room, sizeof(room));
    memcpy(journal_add(&writer, record), zeros, record->size);
    return take(room, journal_seal(&writer, part));
}

TEST(parts_that_make_no_sense)
{
    static const struct journal_record wrong[] = {
        {.type = JOURNAL_TYPES},
        {.type = JOURNAL_CELL, .kind = LEDGER_RANK},
        {.type = JOURNAL_CELL, .kind = LEDGER_KINDS, .size = LEDGER_BODY},
        {.type = JOURNAL_CELL, .kind = LEDGER_RANK, .size = LEDGER_BODY, .number = LEDGER_CELLS},
        {.type = JOURNAL_BYTES, .size = 8},
        {.type = JOURNAL_BYTES, .size = 8, .chain = 5, .from = 8},
        {.type = JOURNAL_BYTES, .size = 8, .chain = 5, .from = RELAY_BLOCK_BYTES},
        {.type = JOURNAL_BYTES, .size = 8, .chain = 5, .from = UINT32_MAX},
        {.type = JOURNAL_PLACE, .chain = 5},
    };

    begin(600);
    begin_session();
    go_on(30);
    settle();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        held_begin(&held);
        CU_ASSERT_EQUAL(say(&wrong[i], &(struct journal_part){.journal = 90 + i, .ends = 1}),
                        CW_EPROTO);
        check();
    }
    /* out of order */
    CU_ASSERT_EQUAL(say(&wrong[0], &(struct journal_part){.journal = 7, .number = 1}), CW_EPROTO);
    check();
    end();
}

TEST(region_that_is_too_small)
{
    int failed = CW_OK;

    begin(700);
    held_close(&held);
    region.size = sizeof(struct relay_block);
    CU_ASSERT_EQUAL_FATAL(held_open(&held, copy, &region, INCARNATION), CW_OK);
    held_begin(&held);
    for (uint32_t i = 0; i < 2; i++) {
        const struct journal_record record = {.type = JOURNAL_BYTES, .size = 8, .chain = 5 + i};

        failed = say(&record, &(struct journal_part){.journal = 1, .number = i});
    }
    CU_ASSERT_EQUAL(failed, CW_EINVAL);
    end();
}
