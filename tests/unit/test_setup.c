/* What the dispatcher tells the device, and the device reports. */
#include "common/setup.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("setup");

static struct cw_setup some_setup(void)
{
    struct cw_setup v;

    memset(&v, 0, sizeof(v));
    for (int i = 0; i < CW_KEY_SIZE; i++)
        v.key[i] = (uint8_t)(i + 1);
    memset(v.job, 0x77, sizeof(v.job));
    v.process.rank = 3;
    v.ranks = 5;
    v.process.incarnation = 2;
    v.spin_ns = 1ull << 40;
    v.resume_ms = CW_RESUME_MAX_MS;
    v.fault_event = 3ull << 40;
    v.input_inode = 5ull << 40;
    v.output_inodes[1] = 7ull << 40;
    strcpy(v.address, "unix:/tmp/relay");
    v.image_servers = CW_IMAGE_SERVERS_MAX;
    strcpy(v.image_address[CW_IMAGE_SERVERS_MAX - 1], "tcp:node9:4000");
    return v;
}

TEST(round_trip)
{
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_setup v = some_setup();
    struct cw_setup back;
    size_t size = cw_setup_put(bytes, &v);

    v.magic = CW_SETUP_MAGIC;
    v.version = CW_SETUP_VERSION;
    memset(&back, 0, sizeof(back));
    CU_ASSERT_TRUE(size <= CW_SETUP_MAX);
    CU_ASSERT_TRUE(cw_setup_get(bytes, size, &back));
    CU_ASSERT_EQUAL(back.early_size, 0);
    back.early = v.early; /* where nothing is, it may point anywhere */
    CU_ASSERT_EQUAL(memcmp(&v, &back, sizeof(v)), 0);
}

/* More servers than there are places, and a place without an end. */
TEST(servers_that_make_no_sense)
{
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_setup many = some_setup(), endless = some_setup(), back;

    many.image_servers++;
    CU_ASSERT_FALSE(cw_setup_get(bytes, cw_setup_put(bytes, &many), &back));
    memset(endless.image_address[1], 'x', CW_SETUP_ADDRESS_MAX);
    CU_ASSERT_FALSE(cw_setup_get(bytes, cw_setup_put(bytes, &endless), &back));
}

/* Of the ranks that share channel memory. */
TEST(channel_ranks)
{
    static const struct {
        uint16_t ranks[3];
        uint32_t count;
        bool good;
    } tries[] = {{{1, 3, 4}, 3, true}, {{3}, 1, true},         {{1, 4}, 2, false},
                 {{3, 1}, 2, false},   {{3, 3}, 2, false},     {{3, 5}, 2, false},
                 {{0}, 0, false},      {{1, 2, 3}, 129, false}};
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_setup back;

    for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
        struct cw_setup v = some_setup();

        v.flags = CW_SETUP_CHANNEL;
        v.channel_ranks = tries[i].count;
        memcpy(v.channel_rank, tries[i].ranks, sizeof(tries[i].ranks));
        v.channel_group = CW_RELAYS_MAX - 1;
        CU_ASSERT_EQUAL(cw_setup_get(bytes, cw_setup_put(bytes, &v), &back), tries[i].good);
        v.channel_group++;
        CU_ASSERT_FALSE(cw_setup_get(bytes, cw_setup_put(bytes, &v), &back));
    }
}

TEST(early_readings)
{
    static uint8_t bytes[CW_SETUP_MAX + 1];
    static uint8_t early[CW_EARLY_MAX];
    struct cw_setup v = some_setup();
    struct cw_setup back;
    size_t size;

    for (size_t i = 0; i < sizeof(early); i++)
        early[i] = (uint8_t)(i * 7 + i / 256);
    v.early = early;
    for (v.early_size = 1; v.early_size <= CW_EARLY_MAX; v.early_size *= 4) {
        size = cw_setup_put(bytes, &v);
        CU_ASSERT_TRUE(size <= CW_SETUP_MAX);
        CU_ASSERT_TRUE(cw_setup_get(bytes, size, &back));
        CU_ASSERT_EQUAL(back.early_size, v.early_size);
        CU_ASSERT_EQUAL(memcmp(back.early, early, v.early_size), 0);
    }
    CU_ASSERT_EQUAL(v.early_size, 4 * CW_EARLY_MAX);
    CU_ASSERT_FALSE(cw_setup_get(bytes, size + 1, &back));
}

/* What is more than the fixed part is early readings, up to their bound. */
TEST(other_sizes)
{
    static uint8_t bytes[CW_SETUP_MAX + 1];
    struct cw_setup v = some_setup();
    size_t size = cw_setup_put(bytes, &v);

    for (size_t i = 0; i <= sizeof(bytes); i++)
        CU_ASSERT_EQUAL(cw_setup_get(bytes, i, &v), i >= size && i <= size + CW_EARLY_MAX);
}

static bool survives(const struct cw_setup *v)
{
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_setup back;

    return cw_setup_get(bytes, cw_setup_put(bytes, v), &back);
}

TEST(values_out_of_bounds)
{
    struct cw_setup v = some_setup();
    uint8_t bytes[CW_SETUP_MAX];
    size_t size = cw_setup_put(bytes, &v);

    v.process.rank = v.ranks;
    CU_ASSERT_FALSE(survives(&v));
    v.ranks = CW_RANKS_MAX;
    CU_ASSERT_TRUE(survives(&v));
    v.ranks++;
    CU_ASSERT_FALSE(survives(&v));
    v = some_setup();
    v.resume_ms++;
    CU_ASSERT_FALSE(survives(&v));
    v = some_setup();
    memset(v.address, 'x', sizeof(v.address));
    CU_ASSERT_FALSE(survives(&v));
    for (size_t i = 0; i < 8; i++) {
        bytes[i] ^= 1; /* magic, version */
        CU_ASSERT_FALSE(cw_setup_get(bytes, size, &v));
        bytes[i] ^= 1;
    }
    CU_ASSERT_TRUE(cw_setup_get(bytes, size, &v));
}

TEST(reports)
{
    static uint8_t bytes[CW_SETUP_MAX];
    char text[CW_TEXT_MAX];
    struct cw_report v;
    size_t size = cw_report_put(bytes, CW_REPORT_FATAL, "lost\033[31m it", 12);

    CU_ASSERT_TRUE(cw_report_get(bytes, size, &v));
    CU_ASSERT_EQUAL(v.kind, CW_REPORT_FATAL);
    CU_ASSERT_STRING_EQUAL(v.text, "lost?[31m it");
    memset(text, 'y', sizeof(text));
    size = cw_report_put(bytes, CW_REPORT_RELAY_LOST, text, sizeof(text));
    CU_ASSERT_TRUE(cw_report_get(bytes, size, &v));
    CU_ASSERT_EQUAL(strlen(v.text), CW_TEXT_MAX);
    CU_ASSERT_FALSE(cw_report_get(bytes, size + 1, &v));
    CU_ASSERT_FALSE(cw_report_get(bytes, 7, &v));
    CU_ASSERT_FALSE(cw_report_get(bytes, 0, &v));
}

TEST(reports_of_early_readings)
{
    static uint8_t bytes[CW_SETUP_MAX];
    static uint8_t early[CW_EARLY_MAX];
    struct cw_report v;
    size_t size;

    memset(early, 0x9f, sizeof(early));
    size = cw_report_put(bytes, CW_REPORT_EARLY, early, sizeof(early));
    CU_ASSERT_EQUAL(size, CW_REPORT_HEADER + CW_EARLY_MAX);
    CU_ASSERT_TRUE(cw_report_get(bytes, size, &v));
    CU_ASSERT_EQUAL(v.kind, CW_REPORT_EARLY);
    CU_ASSERT_EQUAL(v.early_size, CW_EARLY_MAX);
    CU_ASSERT_EQUAL(memcmp(v.early, early, sizeof(early)), 0);
    CU_ASSERT_FALSE(cw_report_get(bytes, size + 1, &v));
    CU_ASSERT_TRUE(cw_report_get(bytes, CW_REPORT_HEADER, &v));
    CU_ASSERT_EQUAL(v.early_size, 0);
    CU_ASSERT_FALSE(cw_report_get(bytes, CW_REPORT_HEADER - 1, &v));
}

TEST(reports_of_files)
{
    static const struct cw_opening o = {1ull << 40 | 8, 12, 1ull << 60, 77, true, true, 99};
    uint8_t bytes[CW_REPORT_FILE_MAX + 1];
    char path[CW_PATH_TOLD + 4];
    struct cw_report v;
    size_t size = cw_report_put_file(bytes, &o, "/tmp/a\nb");

    CU_ASSERT_TRUE(cw_report_get(bytes, size, &v));
    CU_ASSERT_EQUAL(v.kind, CW_REPORT_FILE);
    CU_ASSERT_EQUAL(v.opening.device, o.device);
    CU_ASSERT_EQUAL(v.opening.inode, o.inode);
    CU_ASSERT_EQUAL(v.opening.born_ns, o.born_ns);
    CU_ASSERT_EQUAL(v.opening.opened_ns, o.opened_ns);
    CU_ASSERT_TRUE(v.opening.writes && v.opening.made);
    CU_ASSERT_EQUAL(v.opening.name, o.name);
    CU_ASSERT_STRING_EQUAL(v.text, "/tmp/a?b");
    for (size_t i = 0; i < CW_REPORT_HEADER + sizeof(o); i++)
        CU_ASSERT_FALSE(cw_report_get(bytes, i, &v));
    /* of a long path its end */
    memset(path, 'd', sizeof(path));
    memcpy(path + sizeof(path) - 3, "/f", 3);
    size = cw_report_put_file(bytes, &o, path);
    CU_ASSERT_EQUAL(size, CW_REPORT_FILE_MAX);
    CU_ASSERT_TRUE(cw_report_get(bytes, size, &v));
    CU_ASSERT_STRING_EQUAL(v.text, path + 3);
}
