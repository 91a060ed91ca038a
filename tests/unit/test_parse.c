/* Numbers as people write them. */
#include "common/parse.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("parse");

static struct cw_err err;

static void is_number(const char *text, uint64_t expected)
{
    uint64_t value;

    CU_ASSERT_EQUAL(cw_parse_number("-n", text, 1, 1000, &value, &err), CW_OK);
    CU_ASSERT_EQUAL(value, expected);
}

static void no_number(const char *text)
{
    uint64_t value;

    memset(&err, 0, sizeof(err));
    CU_ASSERT_EQUAL(cw_parse_number("-n", text, 1, 1000, &value, &err), CW_EINVAL);
    CU_ASSERT_EQUAL(err.code, CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "-n '"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "expected a whole number from 1 to 1000"));
}

TEST(numbers)
{
    static const char *const bad[] = {"",
                                      "0",
                                      "1001",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "x",
                                      "0x1",
                                      "1.0",
                                      "1e2",
                                      "1,0",
                                      "99999999999999999999",
                                      "18446744073709551617"};
    uint64_t value;

    is_number("1", 1);
    is_number("1000", 1000);
    is_number("007", 7);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        no_number(bad[i]);
    CU_ASSERT_EQUAL(cw_parse_number("x", "18446744073709551615", 0, UINT64_MAX, &value, &err),
                    CW_OK);
    CU_ASSERT_EQUAL(value, UINT64_MAX);
}

static void are_bytes(const char *text, uint64_t expected)
{
    uint64_t value;

    CU_ASSERT_EQUAL(cw_parse_bytes("--memory-max", text, &value, &err), CW_OK);
    CU_ASSERT_EQUAL(value, expected);
}

TEST(bytes)
{
    static const char *const bad[] = {"",    "0",    "0K", "-1",        "+1",
                                      " 1",  "1 K",  "K",  "1X",        "1KB",
                                      "1KK", "1.5G", "1P", "16777216T", "99999999999999999999"};
    uint64_t value;

    are_bytes("1", 1);
    are_bytes("3k", 3ull << 10);
    are_bytes("500M", 500ull << 20);
    are_bytes("2G", 2ull << 30);
    are_bytes("2g", 2ull << 30);
    are_bytes("16777215T", 16777215ull << 40);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CU_ASSERT_EQUAL(cw_parse_bytes("--memory-max", bad[i], &value, &err), CW_EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--memory-max '"));
    }
}

static void lasts(const char *text, uint64_t expected_ns)
{
    uint64_t ns;

    CU_ASSERT_EQUAL(cw_parse_duration("--timeout", text, &ns, &err), CW_OK);
    CU_ASSERT_EQUAL(ns, expected_ns);
}

TEST(durations)
{
    static const char *const bad[] = {"",      "s",   "-1",  "+1",  " 1",
                                      "1 s",   "1x",  "1us", "nan", "inf",
                                      "1e300", "1mm", "1S",  ".5",  "100000000000h"};
    uint64_t ns;

    lasts("0", 0);
    lasts("90", 90000000000);
    lasts("1.5s", 1500000000);
    lasts("300ms", 300000000);
    lasts("0.05ms", 50000);
    lasts("5m", 300000000000);
    lasts("2h", 7200000000000);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CU_ASSERT_EQUAL(cw_parse_duration("--timeout", bad[i], &ns, &err), CW_EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--timeout '"));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "expected a time"));
    }
}

/* A long value from the command line is cut, not written past the end of the text. */
TEST(long_values)
{
    char text[2000];
    uint64_t value;

    memset(text, 'y', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    CU_ASSERT_EQUAL(cw_parse_number("-n", text, 1, 2, &value, &err), CW_EINVAL);
    CU_ASSERT_EQUAL(strlen(err.text), CW_ERR_TEXT_MAX - 1);
}

TEST(errors_gather_context)
{
    cw_err_set(&err, CW_ESYS, "open %s: %s", "/x", "no");
    CU_ASSERT_EQUAL(cw_err_wrap(&err, "starting rank %d", 3), CW_ESYS);
    CU_ASSERT_STRING_EQUAL(err.text, "starting rank 3: open /x: no");
    for (int i = 0; i < 100; i++)
        cw_err_wrap(&err, "again and again");
    CU_ASSERT_EQUAL(strlen(err.text), CW_ERR_TEXT_MAX - 1);
    CU_ASSERT_EQUAL(err.code, CW_ESYS);
}
