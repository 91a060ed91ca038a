/* Group commit: what changed is in the next part, a commit counts with its end, and nothing that an
 * earlier one needs is overwritten before. */
#include "relay/log/commit.h"
#include "tests/unit/journal_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#define SEGMENT RELAY_BLOCK_BYTES
#define PART_SEGMENTS (JOURNAL_PART_MAX / SEGMENT) /* more than fit one part */
#define LITTLE (4ull * SEGMENT)                    /* log memory: segments soon go to disk */
#define ROTATE_STEPS_MAX 100

static struct journal_site now;
static struct journal_owner owner;

static void start(uint64_t log_memory)
{
    journal_site_start(&now, log_memory, 7);
    journal_owner_enter(&now, &owner, 11);
}

static void finish(void)
{
    journal_owner_leave(&owner);
    journal_site_step(&now);
    while (now.disk.count > 0)
        journal_site_done(&now);
    left_site_close(&now.site);
    fake_disk_fini(&now.disk);
}

SUITE_AFTER_EACH("group commit", finish);

static struct commit *commit(void)
{
    return &now.site.store.commit;
}

static void append_segments(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        journal_owner_append(&owner, SEGMENT);
}

static void change(uint64_t value)
{
    journal_owner_set(&owner, value);
    journal_site_step(&now);
}

/* The owner's value that counts on the disk now; 0: none does. */
static uint64_t value_on_disk(void)
{
    struct journal_saved saved = {0};

    journal_owner_on_disk(&now, &owner, &saved);
    return saved.value;
}

/* Records of a type in the part that the disk has been asked to write last. */
static uint32_t records_in_part(enum journal_type type)
{
    const struct relay_log_io *io = &now.disk.out[now.disk.count - 1];
    struct journal_reader reader = journal_read(io->at, io->size);
    struct journal_record record;
    struct journal_part part;
    const uint8_t *bytes;
    uint32_t count = 0;
    bool sense;

    memcpy(&part, io->at, sizeof(part));
    reader.part = (struct journal_part){.journal = part.journal, .number = part.number - 1};
    if (part.number == 0)
        reader.part = (struct journal_part){0};
    CU_ASSERT_TRUE(journal_next_part(&reader));
    while (journal_next_record(&reader, &record, &bytes, &sense))
        count += record.type == (uint32_t)type;
    CU_ASSERT_TRUE(sense);
    return count;
}

/* --- what is due --------------------------------------------------------------------------------
 */
TEST(what_changed_is_due)
{
    struct relay_log_io io;

    journal_site_start(&now, SITE_MEMORY, 1);
    CU_ASSERT_FALSE(commit_next(commit(), &io));
    journal_owner_enter(&now, &owner, 1);
    change(5);
    CU_ASSERT_TRUE_FATAL(commit_next(commit(), &io));
    CU_ASSERT_TRUE(io.write && io.sync && !io.segment && io.file == STORE_JOURNAL_0);
    CU_ASSERT_TRUE(io.offset == 0 && io.size == JOURNAL_ALIGN && commit()->ends);
    fake_disk_take(&now.disk, &io);
    CU_ASSERT_FALSE(commit_next(commit(), &io)); /* one is out */
    CU_ASSERT_TRUE(journal_site_done(&now));
    CU_ASSERT_FALSE(commit_next(commit(), &io)); /* nothing has changed */
    CU_ASSERT_EQUAL(value_on_disk(), 5);
    change(6);
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_EQUAL(records_in_part(JOURNAL_CELL), 1);
    CU_ASSERT_EQUAL(now.disk.out[0].offset, JOURNAL_ALIGN);
}

TEST(step_that_is_not_done_is_not_noted)
{
    start(SITE_MEMORY);
    change(1);
    journal_site_settle(&now);
    journal_owner_set(&owner, 2);
    CU_ASSERT_FALSE(journal_site_ask(&now));
    journal_site_step(&now);
    CU_ASSERT_EQUAL(value_on_disk(), 1);
    journal_site_settle(&now);
    CU_ASSERT_EQUAL(value_on_disk(), 2);
}

/* Nothing is told to anybody after this step. */
static void change_in_silence(uint64_t value)
{
    journal_owner_set(&owner, value);
    left_site_step(&now.site);
}

TEST(what_nobody_is_told_waits)
{
    struct relay_log_io io;

    start(SITE_MEMORY);
    change(1);
    journal_site_settle(&now);
    change_in_silence(2);
    CU_ASSERT_FALSE(journal_site_ask(&now));
    commit_want(commit());
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_TRUE(journal_site_done(&now));
    CU_ASSERT_EQUAL(value_on_disk(), 2);
    for (uint64_t bytes = 0; bytes <= JOURNAL_PART_MAX / 2; bytes += 1000) {
        CU_ASSERT_FALSE(commit_next(commit(), &io));
        journal_owner_append(&owner, 1000);
    }
    change_in_silence(3);
    CU_ASSERT_TRUE_FATAL(commit_next(commit(), &io)); /* so much is not kept back */
    fake_disk_take(&now.disk, &io);
}

TEST(what_changes_meanwhile_is_in_the_next)
{
    start(SITE_MEMORY);
    journal_owner_append(&owner, 100);
    change(1);
    CU_ASSERT_TRUE(journal_site_ask(&now));
    journal_owner_append(&owner, 50);
    change(2);
    journal_owner_append(&owner, 7);
    change(3);
    CU_ASSERT_TRUE(journal_site_done(&now));
    CU_ASSERT_EQUAL(value_on_disk(), 1);
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_EQUAL(records_in_part(JOURNAL_BYTES), 1);
    CU_ASSERT_TRUE(commit()->ends);
    CU_ASSERT_TRUE(journal_site_done(&now));
    CU_ASSERT_EQUAL(value_on_disk(), 3);
    CU_ASSERT_FALSE(journal_site_ask(&now));
}

/* It counts with the last of them, and is then of that moment. */
TEST(commit_of_several_parts)
{
    uint32_t parts = 0;

    start(SITE_MEMORY);
    change(1);
    journal_site_settle(&now);
    append_segments(2 * PART_SEGMENTS + 2);
    change(2);
    while (journal_site_ask(&now)) {
        parts++;
        CU_ASSERT_EQUAL(value_on_disk(), 1);
        if (parts < 3) {
            CU_ASSERT_FALSE(commit()->ends);
            append_segments(1);
            change(2 + parts);
        }
        CU_ASSERT_TRUE(journal_site_done(&now));
    }
    CU_ASSERT_EQUAL(parts, 3);
    CU_ASSERT_EQUAL(value_on_disk(), 4);
}

/* Nobody need know of what came and went between two commits. */
TEST(segment_that_was_never_told)
{
    start(SITE_MEMORY);
    change(1);
    journal_site_settle(&now);
    append_segments(3);
    journal_site_step(&now);
    chain_trim(&owner.chain, 2);
    journal_site_step(&now);
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_EQUAL(records_in_part(JOURNAL_DROP), 0);
    CU_ASSERT_EQUAL(records_in_part(JOURNAL_BYTES), 1);
    journal_site_settle(&now);
    chain_trim(&owner.chain, 3);
    journal_site_step(&now);
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_EQUAL(records_in_part(JOURNAL_DROP), 1);
}

/* The segment that the last one of a commit's parts would have noted is gone: it ends all the same.
 */
TEST(commit_ends_without_what_was_dropped)
{
    start(SITE_MEMORY);
    change(1);
    journal_site_settle(&now);
    append_segments(PART_SEGMENTS + 1);
    change(2);
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_FALSE(commit()->ends);
    chain_trim(&owner.chain, PART_SEGMENTS + 1);
    journal_site_step(&now);
    journal_site_settle(&now);
    CU_ASSERT_EQUAL(now.acked, now.step);
    CU_ASSERT_EQUAL(value_on_disk(), 2);
}

TEST(input_waits_when_it_is_behind)
{
    start(SITE_MEMORY);
    append_segments(COMMIT_BEHIND_MAX / SEGMENT);
    journal_site_step(&now);
    CU_ASSERT_FALSE(commit_waits(commit()));
    append_segments(1);
    journal_site_step(&now);
    CU_ASSERT_TRUE(commit_waits(commit()) && store_waits(&now.site.store));
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_FALSE(commit_waits(commit())); /* that part is as good as written */
    journal_site_settle(&now);
    CU_ASSERT_FALSE(store_waits(&now.site.store));
    CU_ASSERT_EQUAL(commit()->due_bytes, 0);
}

/* --- places on disk -----------------------------------------------------------------------------
 */
/* What counts on the disk then knows where they are. */
TEST(segments_are_written_after_the_first_commit)
{
    struct relay_log_io io;

    start(LITTLE);
    append_segments(6);
    change(1);
    CU_ASSERT_FALSE(store_next_io(&now.site.store, &io));
    CU_ASSERT_FALSE(store_spent(&now.site.store));
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_FALSE(store_next_io(&now.site.store, &io));
    CU_ASSERT_TRUE(journal_site_done(&now));
    CU_ASSERT_TRUE(store_next_io(&now.site.store, &io));
    CU_ASSERT_TRUE(io.write && io.sync && io.file == STORE_SEGMENTS);
    fake_disk_take(&now.disk, &io);
    journal_site_settle(&now);
    CU_ASSERT_TRUE(now.disk.files[STORE_SEGMENTS].high >= 3 * SEGMENT);
    CU_ASSERT_EQUAL(value_on_disk(), 1);
}

static bool is_free(uint32_t extent)
{
    const struct log_store *store = &now.site.store;
    bool found = false;

    for (uint32_t i = 0; i < store->free_count; i++)
        found |= store->free_extents[i] == extent;
    return found;
}

TEST(place_is_free_when_its_end_is_committed)
{
    uint32_t extent;

    start(LITTLE);
    append_segments(8);
    change(1);
    journal_site_settle(&now);
    extent = owner.chain.segments[0]->extent;
    CU_ASSERT_NOT_EQUAL(extent, STORE_NO_EXTENT);
    chain_trim(&owner.chain, 1);
    CU_ASSERT_FALSE(is_free(extent));
    change(2);
    CU_ASSERT_FALSE(is_free(extent));
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_EQUAL(records_in_part(JOURNAL_DROP), 1);
    CU_ASSERT_FALSE(is_free(extent));
    CU_ASSERT_EQUAL(value_on_disk(), 1); /* the segment is still there */
    while (!is_free(extent) && journal_site_done(&now))
        ;
    CU_ASSERT_TRUE(is_free(extent));
    CU_ASSERT_EQUAL(value_on_disk(), 2);
}

/* Dropped while it is being written: its place is free later than that. */
TEST(place_of_one_that_is_being_written)
{
    uint32_t extent;

    start(LITTLE);
    change(1);
    journal_site_settle(&now);
    append_segments(8);
    change(2);
    while (now.site.store.writing == 0)
        CU_ASSERT_TRUE_FATAL(journal_site_ask(&now));
    extent = owner.chain.segments[0]->extent;
    CU_ASSERT_EQUAL(owner.chain.segments[0]->state, SEGMENT_WRITING);
    chain_trim(&owner.chain, 8);
    change(3);
    while (now.site.store.writing > 0)
        CU_ASSERT_TRUE_FATAL(journal_site_done(&now));
    CU_ASSERT_FALSE(is_free(extent));
    journal_site_settle(&now);
    CU_ASSERT_TRUE(is_free(extent));
    CU_ASSERT_EQUAL(value_on_disk(), 3);
}

/* Until it is written its place holds something else: its bytes are noted. */
TEST(one_that_is_being_written_has_no_place)
{
    struct relay_log_io io;

    start(LITTLE);
    change(1);
    journal_site_settle(&now);
    change(2);
    CU_ASSERT_TRUE_FATAL(commit_next(commit(), &io));
    append_segments(8);
    change(3);
    CU_ASSERT_TRUE_FATAL(store_next_io(&now.site.store, &io));
    CU_ASSERT_EQUAL(io.segment->state, SEGMENT_WRITING);
    CU_ASSERT_TRUE(commit_done(commit(), 0));
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_EQUAL(records_in_part(JOURNAL_PLACE), 0);
    CU_ASSERT_TRUE(records_in_part(JOURNAL_BYTES) >= 8);
    CU_ASSERT_TRUE(journal_site_done(&now));
    store_io_done(&now.site.store, &(struct relay_log_done){.segment = io.segment});
    commit_want(commit());
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_EQUAL(records_in_part(JOURNAL_PLACE), 1);
}

/* --- errors -------------------------------------------------------------------------------------
 */
TEST(error_of_the_disk)
{
    uint32_t extent;

    start(LITTLE);
    append_segments(8);
    change(1);
    journal_site_settle(&now);
    extent = owner.chain.segments[0]->extent;
    chain_trim(&owner.chain, 1);
    append_segments(COMMIT_BEHIND_MAX / SEGMENT + 1);
    change(2);
    now.disk.good_writes = now.disk.writes;
    CU_ASSERT_TRUE(commit_waits(commit()));
    CU_ASSERT_TRUE(journal_site_ask(&now));
    chain_trim(&owner.chain, 2); /* and one more that nobody asks for then */
    change(3);
    while (commit_is_on(commit()))
        CU_ASSERT_TRUE_FATAL(journal_site_done(&now));
    CU_ASSERT_EQUAL(commit()->error, ENOSPC);
    CU_ASSERT_TRUE(is_free(extent) && !commit_waits(commit()));
    CU_ASSERT_PTR_NULL(commit_next_gone(commit()));
    CU_ASSERT_EQUAL(now.acked, 1);
    now.disk.good_writes = 0;
    change(4);
    journal_site_settle(&now);
    CU_ASSERT_EQUAL(now.acked, 1);
}

/* Its first write fails: there never was a commit. */
TEST(error_at_once)
{
    start(LITTLE);
    append_segments(8);
    change(1);
    CU_ASSERT_TRUE(journal_site_ask(&now));
    CU_ASSERT_TRUE(commit_done(commit(), EIO));
    now.disk.count = 0;
    CU_ASSERT_FALSE(commit_is_on(commit()));
    journal_site_settle(&now); /* logs go to disk all the same */
    CU_ASSERT_TRUE(now.disk.writes > 0);
    CU_ASSERT_EQUAL(value_on_disk(), 0);
}

/* --- the other journal --------------------------------------------------------------------------
 */
/* Until another journal begins, the first part of which is out then. What is written is dropped
 * again, but for some that are on disk or in memory. */
static void write_until_it_rotates(void)
{
    const struct chain *chain = &owner.chain;

    for (uint32_t i = 0; i < ROTATE_STEPS_MAX; i++) {
        append_segments(PART_SEGMENTS);
        if (chain->count > 10 * PART_SEGMENTS)
            chain_trim(&owner.chain, chain->first + PART_SEGMENTS);
        change(i + 1);
        while (journal_site_ask(&now) && commit()->journal == 1)
            ;
        if (commit()->journal == 2)
            return;
        while (journal_site_done(&now) && commit()->journal == 1)
            while (journal_site_ask(&now) && commit()->journal == 1)
                ;
        if (commit()->journal == 2)
            return;
    }
    CU_FAIL("no other journal begins");
}

TEST(another_journal_holds_everything)
{
    uint64_t before;
    uint32_t parts = 1;
    uint32_t extent = STORE_NO_EXTENT;
    struct journal_owner still; /* it has not changed for long */
    struct journal_saved saved;

    start(SITE_MEMORY / 2);
    journal_owner_enter(&now, &still, 12);
    write_until_it_rotates();
    before = now.acked;
    CU_ASSERT_EQUAL(commit()->file, 1);
    CU_ASSERT_FALSE(commit()->ends);
    CU_ASSERT_TRUE(now.disk.files[STORE_JOURNAL_0].high >= COMMIT_JOURNAL_MIN);
    for (uint32_t i = 0; i < owner.chain.count && extent == STORE_NO_EXTENT; i++)
        if (owner.chain.segments[i]->state == SEGMENT_COLD ||
            owner.chain.segments[i]->state == SEGMENT_CLEAN) {
            extent = owner.chain.segments[i]->extent;
            chain_trim(&owner.chain, owner.chain.first + i + 1);
        }
    CU_ASSERT_NOT_EQUAL(extent, STORE_NO_EXTENT);
    change(1000);
    while (now.acked == before) {
        /* the one before counts, and what it needs is not given out */
        CU_ASSERT_FALSE(is_free(extent));
        CU_ASSERT_EQUAL(value_on_disk(), before);
        CU_ASSERT_TRUE_FATAL(journal_site_done(&now));
        if (now.acked == before && !commit()->out)
            parts += journal_site_ask(&now);
    }
    CU_ASSERT_TRUE(parts > 1);
    CU_ASSERT_TRUE(is_free(extent));
    /* the segments file alone is of the first journal's time */
    memset(now.disk.files[STORE_JOURNAL_0].bytes, 0, now.disk.files[STORE_JOURNAL_0].high);
    CU_ASSERT_EQUAL(value_on_disk(), 1000);
    CU_ASSERT_TRUE(journal_owner_on_disk(&now, &still, &saved));
    journal_owner_leave(&still);
}
