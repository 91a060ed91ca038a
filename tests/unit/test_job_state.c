/* The journal of a job's dispatcher: records come back as they were put, torn tails are cut off,
 * and damage is told from them. */
#include "dispatcher/state/job_state.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("the journal of a kept job");

#define RANKS 3u

static uint8_t bytes[1 << 20];
static size_t size;

static void begin(void)
{
    job_state_put_header(bytes);
    size = JOB_STATE_HEADER;
}

static void put(const struct job_state_record *record)
{
    size_t used = job_state_put(bytes + size, record);

    CU_ASSERT_TRUE(used >= JOB_STATE_RECORD);
    size += used;
}

static enum job_state_found get(size_t *offset, size_t synced, struct job_state_record *record)
{
    return job_state_get(&(struct job_state_bytes){bytes, size, synced}, offset, RANKS, record);
}

static struct job_state_record text_of(uint32_t type, const char *text)
{
    return (struct job_state_record){
        .type = type, .bytes = (const uint8_t *)text, .size = (uint32_t)strlen(text) + 1};
}

TEST(comes_back)
{
    const struct job_state_record said = {
        .type = JOB_STATE_PMI, .rank = 1, .bytes = (const uint8_t *)"cmd", .size = 3};
    const struct job_state_record place = {
        .type = JOB_STATE_PLACE, .rank = 2, .number = 9, .place = {{7, 8}, 99}};
    const struct job_state_record start = {
        .type = JOB_STATE_START, .rank = 1, .number = 4, .image = 3};
    const struct job_state_record file = {.type = JOB_STATE_FILE, .file = {5, 6, "/bin/a"}};
    const struct job_state_record input = {.type = JOB_STATE_STDIN,
                                           .stdin_file = {1, 2, 3},
                                           .bytes = (const uint8_t *)"/in",
                                           .size = 4};
    struct job_state_record text = text_of(JOB_STATE_ARGUMENT, "run");
    struct job_state_record got;
    size_t at = JOB_STATE_HEADER;

    begin();
    CU_ASSERT_EQUAL(job_state_version(bytes, size), JOB_STATE_VERSION);
    put(&said);
    put(&place);
    put(&start);
    put(&file);
    put(&input);
    put(&text);
    CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_GOT);
    CU_ASSERT_TRUE(got.rank == 1 && got.size == 3 && memcmp(got.bytes, "cmd", 3) == 0);
    CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_GOT);
    CU_ASSERT_TRUE(got.rank == 2 && got.number == 9 && got.place.input == 99);
    CU_ASSERT_TRUE(got.place.printed[0] == 7 && got.place.printed[1] == 8);
    CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_GOT);
    CU_ASSERT_TRUE(got.rank == 1 && got.number == 4 && got.image == 3);
    CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_GOT);
    CU_ASSERT_TRUE(got.file.size == 5 && got.file.mtime_ns == 6);
    CU_ASSERT_STRING_EQUAL(got.file.path, "/bin/a");
    CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_GOT);
    CU_ASSERT_TRUE(got.stdin_file[0] == 1 && got.stdin_file[1] == 2 && got.stdin_file[2] == 3);
    CU_ASSERT_STRING_EQUAL((const char *)got.bytes, "/in");
    CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_GOT);
    CU_ASSERT_STRING_EQUAL((const char *)got.bytes, "run");
    CU_ASSERT_EQUAL(get(&at, size, &got), JOB_STATE_END);
}

/* What is cut anywhere ends before the record that was cut; what was on disk must be there. */
TEST(torn)
{
    const struct job_state_record record = {.type = JOB_STATE_ENDED, .rank = 1, .number = 1};
    struct job_state_record got;
    size_t whole, second;

    begin();
    put(&record);
    second = size;
    put(&record);
    whole = size;
    for (size = second; size < whole; size++) {
        size_t at = JOB_STATE_HEADER;

        CU_ASSERT_EQUAL(get(&at, second, &got), JOB_STATE_GOT);
        CU_ASSERT_EQUAL(get(&at, second, &got), JOB_STATE_END);
        CU_ASSERT_EQUAL(at, second);
        CU_ASSERT_EQUAL(get(&at, whole, &got), JOB_STATE_DAMAGED);
    }
}

/* A bit that has changed is found wherever it is. */
TEST(changed)
{
    const struct job_state_record record = {.type = JOB_STATE_MARK, .rank = 2, .number = 5};
    struct job_state_record got;

    begin();
    put(&record);
    for (size_t bit = JOB_STATE_HEADER * 8; bit < size * 8; bit++) {
        size_t at = JOB_STATE_HEADER;

        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CU_ASSERT_EQUAL(get(&at, size, &got), JOB_STATE_DAMAGED);
        CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_END);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* Right sums and wrong content. */
TEST(makes_no_sense)
{
    struct job_state_record text = {
        .type = JOB_STATE_ARGUMENT, .bytes = (const uint8_t *)"a\0b", .size = 4};
    struct job_state_record rank = {.type = JOB_STATE_MARK, .rank = RANKS};
    struct job_state_record got;
    size_t at = JOB_STATE_HEADER;

    begin();
    put(&text);
    CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_DAMAGED);
    begin();
    put(&rank);
    CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_DAMAGED);
    begin();
    put(&(struct job_state_record){.type = JOB_STATE_TYPES});
    CU_ASSERT_EQUAL(get(&at, 0, &got), JOB_STATE_DAMAGED);
}

TEST(too_large)
{
    static const uint8_t much[JOB_STATE_BODY_MAX];
    struct job_state_record record = {
        .type = JOB_STATE_PMI, .bytes = much, .size = JOB_STATE_BODY_MAX - 7};

    CU_ASSERT_EQUAL(job_state_put(bytes, &record), 0);
    record.size--;
    CU_ASSERT_EQUAL(job_state_put(bytes, &record), JOB_STATE_RECORD + JOB_STATE_BODY_MAX);
}

TEST(printed_in_one_word)
{
    uint64_t printed = job_state_printed(123456789, 54321);

    CU_ASSERT_EQUAL(job_state_printed_lines(printed), 123456789);
    CU_ASSERT_EQUAL(job_state_printed_bytes(printed), 54321);
    CU_ASSERT_TRUE(job_state_printed(2, 0) > job_state_printed(1, 1ull << 40));
}
