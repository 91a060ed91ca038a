/* Which relay is whose home. */
#include "dispatcher/job/homes.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

SUITE("homes");

#define RANKS 64

static uint8_t homes[RANKS];
static struct cw_err err;

TEST(in_turn)
{
    CU_ASSERT_EQUAL(homes_fill(homes, 7, 3, NULL, &err), CW_OK);
    CU_ASSERT_EQUAL(memcmp(homes, (uint8_t[]){0, 1, 2, 0, 1, 2, 0}, 7), 0);
}

TEST(by_map)
{
    CU_ASSERT_EQUAL(homes_fill(homes, 6, 2, "1,0*4,1", &err), CW_OK);
    CU_ASSERT_EQUAL(memcmp(homes, (uint8_t[]){1, 0, 0, 0, 0, 1}, 6), 0);
}

static void bad(const char *map, const char *says)
{
    err.code = CW_OK;
    CU_ASSERT_EQUAL(homes_fill(homes, 4, 2, map, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
}

TEST(bad_maps)
{
    bad("", "0 ranks, but the job has 4");
    bad("0,1,0", "3 ranks, but the job has 4");
    bad("0*5", "count");
    bad("0*3,1*2", "more than the 4 ranks");
    bad("0,1,2,0", "relay '2'");
    bad("0,,1,0", "relay ''");
    bad("0*0,1*4", "count '0'");
    bad("0,x,1,0", "relay 'x'");
    bad("0,-1,1,0", "relay '-1'");
    bad("0*4,00000000000000000000000000000000000000", "too long");
}

/* What relays are told is all, and nothing twice. */
TEST(routes_tell_all)
{
    uint64_t seed = 3;

    for (int round = 0; round < 200; round++) {
        uint32_t relays = 2 + (uint32_t)codec_random_below(&seed, 4);
        uint8_t heard[RANKS];
        bool told[RANKS] = {false};
        struct cw_route route;
        bool once = true;
        int count = 0;

        memset(heard, 0xff, sizeof(heard));
        homes_fill(homes, RANKS, relays, NULL, &err);
        for (uint32_t i = 0; round % 2 && i < RANKS; i++)
            homes[i] = (uint8_t)codec_random_below(&seed, relays);
        while (homes_next_route(homes, RANKS, told, &route) && once) {
            count++;
            for (uint32_t i = 0; i < route.count && once; i++) {
                uint32_t rank = route.first + i * route.step;

                once = rank < RANKS && heard[rank] == 0xff;
                if (once)
                    heard[rank] = (uint8_t)route.home;
            }
        }
        CU_ASSERT_TRUE(once);
        CU_ASSERT_EQUAL(memcmp(heard, homes, RANKS), 0);
        CU_ASSERT_TRUE(round % 2 || count == (int)relays);
    }
}

TEST(told_to_ranks)
{
    char *text;

    homes_fill(homes, 5, 16, "0*2,10,15,1", &err);
    text = homes_setting(homes, 5);
    CU_ASSERT_STRING_EQUAL(text, "CAUSEWAY_SITES=00af1");
    free(text);
}
