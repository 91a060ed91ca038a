/* What the dispatcher tells the device, and the device reports. */
#include "common/setup.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

static struct cw_setup some_setup(void)
{
    struct cw_setup v;

    memset(&v, 0, sizeof(v));
    for (int i = 0; i < CW_KEY_SIZE; i++)
        v.key[i] = (uint8_t)(i + 1);
    memset(v.job, 0x77, sizeof(v.job));
    v.rank = 3;
    v.ranks = 5;
    v.incarnation = 2;
    v.spin_ns = 1ull << 40;
    strcpy(v.address, "unix:/tmp/relay");
    return v;
}

static void round_trip(void)
{
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_setup v = some_setup();
    struct cw_setup back;
    size_t size = cw_setup_put(bytes, &v);

    memset(&back, 0, sizeof(back));
    CU_ASSERT_TRUE(size <= CW_SETUP_MAX);
    CU_ASSERT_TRUE(cw_setup_get(bytes, size, &back));
    CU_ASSERT_EQUAL(memcmp(&v, &back, sizeof(v)), 0);
}

static void other_sizes(void)
{
    uint8_t bytes[CW_SETUP_MAX + 1] = {0};
    struct cw_setup v = some_setup();
    size_t size = cw_setup_put(bytes, &v);

    for (size_t i = 0; i <= sizeof(bytes); i++)
        CU_ASSERT_EQUAL(cw_setup_get(bytes, i, &v), i == size);
}

static bool survives(const struct cw_setup *v)
{
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_setup back;

    return cw_setup_get(bytes, cw_setup_put(bytes, v), &back);
}

static void values_out_of_bounds(void)
{
    struct cw_setup v = some_setup();
    uint8_t bytes[CW_SETUP_MAX];
    size_t size = cw_setup_put(bytes, &v);

    v.rank = v.ranks;
    CU_ASSERT_FALSE(survives(&v));
    v.ranks = CW_RANKS_MAX;
    CU_ASSERT_TRUE(survives(&v));
    v.ranks++;
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

static void reports(void)
{
    uint8_t bytes[CW_SETUP_MAX];
    char text[1000];
    struct cw_report v;
    size_t size = cw_report_put(bytes, CW_REPORT_FATAL, "lost\033[31m it");

    CU_ASSERT_TRUE(cw_report_get(bytes, size, &v));
    CU_ASSERT_EQUAL(v.kind, CW_REPORT_FATAL);
    CU_ASSERT_STRING_EQUAL(v.text, "lost?[31m it");
    memset(text, 'y', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    size = cw_report_put(bytes, CW_REPORT_RELAY_LOST, text);
    CU_ASSERT_TRUE(size <= CW_SETUP_MAX);
    CU_ASSERT_TRUE(cw_report_get(bytes, size, &v));
    CU_ASSERT_EQUAL(strlen(v.text), CW_TEXT_MAX);
    CU_ASSERT_FALSE(cw_report_get(bytes, 7, &v));
    CU_ASSERT_FALSE(cw_report_get(bytes, 0, &v));
}

void add_setup_tests(void)
{
    CU_pSuite suite = CU_add_suite("setup", NULL, NULL);

    CU_ADD_TEST(suite, round_trip);
    CU_ADD_TEST(suite, other_sizes);
    CU_ADD_TEST(suite, values_out_of_bounds);
    CU_ADD_TEST(suite, reports);
}
