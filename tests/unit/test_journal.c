/* The format of the journal: what is written is read again; of what is torn, damaged or of another
 * journal nothing is taken, and a commit counts only with its end. */
#include "relay/log/journal.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

SUITE("journal");

#define PARTS_MAX 12u
#define RECORDS_MAX 40u
#define ROOM (16u * JOURNAL_ALIGN) /* of a part in these tests */
#define FILE_MAX (PARTS_MAX * ROOM)
#define JOURNAL 9u
#define ROUNDS 20

/* What was written of a part. */
struct written {
    struct journal_record records[RECORDS_MAX];
    uint64_t seeds[RECORDS_MAX]; /* of their bytes */
    uint32_t count;
    uint64_t from; /* in the file ... */
    uint64_t end;  /* ... without the zeros ... */
    uint64_t next; /* ... and with them */
    bool ends;
};

struct file {
    uint8_t bytes[FILE_MAX];
    uint64_t size;
    struct written parts[PARTS_MAX];
    uint32_t count;
};

static struct file file;
static _Alignas(JOURNAL_ALIGN) uint8_t room[ROOM];
static uint64_t seed;

static uint64_t below(uint64_t bound)
{
    return codec_random_below(&seed, bound);
}

/* --- writing ------------------------------------------------------------------------------------
 */
static void fill(uint8_t *at, uint32_t size, uint64_t with)
{
    for (uint32_t i = 0; i < size; i++)
        at[i] = (uint8_t)codec_random_below(&with, 256);
}

static bool is_filled(const uint8_t *at, uint32_t size, uint64_t with)
{
    for (uint32_t i = 0; i < size; i++)
        if (at[i] != (uint8_t)codec_random_below(&with, 256))
            return false;
    return true;
}

static struct journal_record some_record(uint32_t size)
{
    return (struct journal_record){.type = 1 + (uint32_t)below(JOURNAL_TYPES - 1),
                                   .size = size,
                                   .chain = below(UINT64_MAX),
                                   .sum = below(UINT64_MAX),
                                   .number = (uint32_t)below(UINT32_MAX),
                                   .kind = (uint32_t)below(4),
                                   .from = (uint32_t)below(UINT32_MAX),
                                   .used = (uint32_t)below(UINT32_MAX),
                                   .extent = (uint32_t)below(UINT32_MAX)};
}

static void add_some(struct journal_writer *writer, struct written *part, uint32_t most)
{
    for (uint64_t n = below(most + 1); n > 0 && journal_room(writer) > 0; n--) {
        uint32_t left = journal_room(writer);
        uint32_t size = (uint32_t)below(below(3) ? 100 : left) % (left + 1);

        part->seeds[part->count] = below(UINT64_MAX);
        part->records[part->count] = some_record(size);
        fill(journal_add(writer, &part->records[part->count]), size, part->seeds[part->count]);
        part->count++;
    }
}

/* One more part of journal `number`. */
static void write_part(uint64_t number, bool ends, uint32_t records)
{
    struct written *part = &file.parts[file.count];
    struct journal_writer writer;
    uint32_t size;

    *part = (struct written){.from = file.size, .ends = ends};
    journal_start(&writer, room, sizeof(room));
    CU_ASSERT_TRUE(journal_is_empty(&writer));
    add_some(&writer, part, records);
    part->end = file.size + writer.size;
    size = journal_finish(&writer, &(struct journal_part){.journal = number,
                                                          .number = file.count++,
                                                          .ends = ends,
                                                          .generation = file.count + 5});
    CU_ASSERT_EQUAL(size % JOURNAL_ALIGN, 0);
    memcpy(file.bytes + file.size, room, size);
    file.size += size;
    part->next = file.size;
}

static void write_some(uint64_t number, uint32_t parts, uint32_t records)
{
    memset(&file, 0, sizeof(file));
    for (uint32_t i = 0; i < parts; i++)
        write_part(number, i + 1 == parts || below(2), records);
}

/* --- reading ------------------------------------------------------------------------------------
 */
static bool part_is_right(struct journal_reader *reader, const struct written *part)
{
    struct journal_record record;
    const uint8_t *bytes;
    bool right = reader->part.ends == part->ends;
    bool sense;

    for (uint32_t i = 0; i < part->count; i++)
        right &= journal_next_record(reader, &record, &bytes, &sense) && sense &&
                 memcmp(&record, &part->records[i], sizeof(record)) == 0 &&
                 is_filled(bytes, record.size, part->seeds[i]);
    return right && !journal_next_record(reader, &record, &bytes, &sense) && sense;
}

/* Exactly the first `parts` are there. */
static bool holds(const uint8_t *bytes, uint64_t size, uint32_t parts)
{
    struct journal_reader reader = journal_read(bytes, size);

    for (uint32_t i = 0; i < parts; i++)
        if (!journal_next_part(&reader) || reader.part.number != i ||
            reader.part.generation != i + 6 || !part_is_right(&reader, &file.parts[i]))
            return false;
    return !journal_next_part(&reader);
}

/* What it says of itself is that the first `parts` are whole. */
static bool says(const uint8_t *bytes, uint64_t size, uint32_t parts)
{
    struct journal_summary summary;
    uint64_t commits = 0;
    uint64_t committed = 0;
    uint64_t end = 0;

    for (uint32_t i = 0; i < parts; i++) {
        if (!file.parts[i].ends)
            continue;
        commits++;
        committed = i + 1;
        end = file.parts[i].next < size ? file.parts[i].next : size;
    }
    journal_look(bytes, size, &summary);
    return summary.parts == parts && summary.commits == commits && summary.committed == committed &&
           summary.end == end && summary.journal == (parts ? JOURNAL : 0);
}

/* As a file of exactly so many bytes, so that a sanitizer sees a read behind it. */
static bool truncated_is_right(uint64_t size, uint32_t parts)
{
    uint8_t *copy = malloc(size ? size : 1);
    bool right;

    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    memcpy(copy, file.bytes, size);
    right = holds(copy, size, parts) && says(copy, size, parts);
    free(copy);
    return right;
}

/* --- the tests ----------------------------------------------------------------------------------
 */
TEST(what_is_written_is_read)
{
    seed = 1;
    for (int i = 0; i < ROUNDS; i++) {
        write_some(JOURNAL, 1 + (uint32_t)below(PARTS_MAX), RECORDS_MAX);
        CU_ASSERT_TRUE(holds(file.bytes, file.size, file.count));
        CU_ASSERT_TRUE(says(file.bytes, file.size, file.count));
        CU_ASSERT_TRUE(holds(file.bytes, FILE_MAX, file.count)); /* zeros behind it */
    }
}

/* So much room is there as is said, to the byte. */
TEST(part_is_filled_to_its_end)
{
    struct journal_writer writer;
    struct journal_record record = {.type = JOURNAL_BYTES};

    journal_start(&writer, room, sizeof(room));
    record.size = journal_room(&writer);
    memset(journal_add(&writer, &record), 7, record.size);
    CU_ASSERT_EQUAL(journal_room(&writer), 0);
    CU_ASSERT_TRUE(writer.size <= sizeof(room) && writer.size > sizeof(room) - 16);
    CU_ASSERT_EQUAL(journal_finish(&writer, &(struct journal_part){.journal = 1, .ends = 1}),
                    sizeof(room));
    memset(&file, 0, sizeof(file));
    memcpy(file.bytes, room, sizeof(room));
    file.parts[0] = (struct written){.count = 0};
    {
        struct journal_reader reader = journal_read(file.bytes, sizeof(room));
        const uint8_t *bytes;
        bool sense;

        CU_ASSERT_TRUE(journal_next_part(&reader));
        CU_ASSERT_TRUE(journal_next_record(&reader, &record, &bytes, &sense));
        CU_ASSERT_FALSE(journal_next_record(&reader, &record, &bytes, &sense));
        CU_ASSERT_TRUE(sense);
    }
}

TEST(truncated_at_every_byte)
{
    uint32_t whole = 0;
    bool right = true;

    seed = 2;
    write_some(JOURNAL, 5, 6);
    for (uint64_t size = 0; size <= file.size; size++) {
        if (whole < file.count && size == file.parts[whole].end)
            whole++;
        right &= truncated_is_right(size, whole);
    }
    CU_ASSERT_TRUE(right);
    CU_ASSERT_EQUAL(whole, file.count);
}

/* The parts before it are there, and none from it on. */
TEST(flipped_bit_is_found)
{
    bool right = true;

    seed = 3;
    write_some(JOURNAL, 3, 8);
    for (uint32_t i = 0; i < file.count; i++)
        for (uint64_t at = file.parts[i].from; at < file.parts[i].end; at++) {
            uint8_t bit = (uint8_t)(1u << below(8));

            file.bytes[at] ^= bit;
            right &= holds(file.bytes, file.size, i) && says(file.bytes, file.size, i);
            file.bytes[at] ^= bit;
        }
    CU_ASSERT_TRUE(right);
    CU_ASSERT_TRUE(holds(file.bytes, file.size, file.count));
}

/* The parts of an older journal stand behind it, with the numbers that would follow. */
TEST(older_journal_behind_the_end)
{
    static struct file older;

    for (uint64_t of = 1; of <= ROUNDS; of++) {
        seed = of;
        write_some(JOURNAL - 2, PARTS_MAX, 3);
        older = file;
        write_some(JOURNAL, 1 + (uint32_t)below(4), 3);
        memcpy(older.bytes, file.bytes, file.size);
        if (older.size < file.size)
            older.size = file.size;
        CU_ASSERT_TRUE(holds(older.bytes, older.size, file.count));
        CU_ASSERT_TRUE(says(older.bytes, older.size, file.count));
    }
}

TEST(parts_out_of_order_are_not_taken)
{
    uint64_t size;

    seed = 4;
    write_some(JOURNAL, 3, 3);
    /* the second one is gone */
    size = file.parts[1].next - file.parts[1].from;
    memmove(file.bytes + file.parts[1].from, file.bytes + file.parts[2].from,
            file.size - file.parts[2].from);
    CU_ASSERT_TRUE(holds(file.bytes, file.size - size, 1));
    /* ... and the first one */
    CU_ASSERT_TRUE(holds(file.bytes + file.parts[0].next, file.size - file.parts[0].next, 0));
}

TEST(other_version_is_not_taken)
{
    struct journal_summary summary;
    struct journal_part part;

    seed = 5;
    write_some(JOURNAL, 2, 3);
    memcpy(&part, file.bytes, sizeof(part));
    part.version = JOURNAL_VERSION + 1;
    memcpy(file.bytes, &part, sizeof(part));
    CU_ASSERT_TRUE(holds(file.bytes, file.size, 0));
    journal_look(file.bytes, file.size, &summary);
    CU_ASSERT_EQUAL(summary.version, JOURNAL_VERSION + 1);
    CU_ASSERT_EQUAL(summary.journal, 0);
    file.bytes[0] ^= 1; /* no journal at all */
    journal_look(file.bytes, file.size, &summary);
    CU_ASSERT_EQUAL(summary.version, 0);
}

/* A part with a right sum may hold records that make no sense. */
TEST(record_that_makes_no_sense_is_told)
{
    static const struct journal_record senseless[] = {
        {.type = 0, .size = 8},
        {.type = JOURNAL_TYPES, .size = 8},
        {.type = JOURNAL_CELL, .size = JOURNAL_BYTES_MAX + 1},
        {.type = JOURNAL_CELL, .size = UINT32_MAX},
        {.type = JOURNAL_CELL, .size = 17},
    };

    for (size_t i = 0; i < sizeof(senseless) / sizeof(*senseless); i++) {
        struct journal_record record = {.type = JOURNAL_CELL, .size = 16};
        struct journal_writer writer;
        struct journal_reader reader;
        const uint8_t *bytes;
        uint32_t size;
        bool sense;

        journal_start(&writer, room, sizeof(room));
        memset(journal_add(&writer, &record), 1, record.size);
        memcpy(room + sizeof(struct journal_part), &senseless[i], sizeof(senseless[i]));
        size = journal_finish(&writer, &(struct journal_part){.journal = 1, .ends = 1});
        reader = journal_read(room, size);
        CU_ASSERT_TRUE(journal_next_part(&reader));
        CU_ASSERT_FALSE(journal_next_record(&reader, &record, &bytes, &sense));
        CU_ASSERT_FALSE(sense);
    }
}
