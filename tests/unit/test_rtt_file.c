/* Round trips of a grid as text: dispatcher/grid/rtt_file.h. */
#include "dispatcher/grid/rtt_file.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

static struct grid_site sites[] = {{.name = "a"}, {.name = "b"}};
static const struct grid grid = {.site = sites, .sites = 2};
static struct routes_rtt rtt;
static struct cw_err err;

static void read_as_written(void)
{
    struct routes_rtt again;
    char *text;

    rtt = (struct routes_rtt){0};
    rtt.us[0][1] = 12345;
    rtt.us[GRID_SITES_MAX][0] = UINT32_MAX;
    text = rtt_file_make(&grid, &rtt);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\na b 12345\n- a 4294967295\n"));
    CU_ASSERT_EQUAL(rtt_file_parse(&again, &grid, "rtt", text, &err), CW_OK);
    CU_ASSERT_EQUAL(memcmp(&again, &rtt, sizeof(rtt)), 0);
    free(text);
}

static void sites_that_are_gone(void)
{
    CU_ASSERT_EQUAL(rtt_file_parse(&rtt, &grid, "rtt", "c a 1\na c 2\nb a 3\n", &err), CW_OK);
    CU_ASSERT_EQUAL(rtt.us[1][0], 3);
}

static void is_bad(const char *text, const char *place)
{
    rtt.us[0][0] = 1;
    CU_ASSERT_EQUAL(rtt_file_parse(&rtt, &grid, "rtt", text, &err), CW_EINVAL);
    CU_ASSERT_EQUAL(strncmp(err.text, place, strlen(place)), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "expected"));
    CU_ASSERT_EQUAL(rtt.us[0][0], 0);
}

static void wrong_ones(void)
{
    static char longer[5000];

    is_bad("a b\n", "rtt, line 1: ");
    is_bad("a b 1\n\n# x\nb a 1 2", "rtt, line 4: ");
    is_bad("a b 0", "rtt, line 1: ");
    is_bad("a b -1", "rtt, line 1: ");
    is_bad("a b 4294967296", "rtt, line 1: ");
    is_bad("a b 99999999999999999999", "rtt, line 1: ");
    memset(longer, 'a', sizeof(longer) - 1);
    is_bad(longer, "rtt, line 1: ");
}

void add_rtt_file_tests(void)
{
    CU_pSuite suite = CU_add_suite("round trips of a grid", NULL, NULL);

    CU_ADD_TEST(suite, read_as_written);
    CU_ADD_TEST(suite, sites_that_are_gone);
    CU_ADD_TEST(suite, wrong_ones);
}
