/* Ways between sites as they were found: dispatcher/doctor/grid_ways.h; and relays that are asked
 * where there are none. */
#include "dispatcher/doctor/causes.h"
#include "dispatcher/doctor/gate_check.h"
#include "dispatcher/doctor/grid_ways.h"
#include "dispatcher/doctor/tcp_probe.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

SUITE("ways of a grid");

enum { A, B, C, SITES };

static struct grid_host hosts[] = {{.name = "h1", .slots = 4}, {.name = "h2", .slots = 0}};
static struct grid_site sites[SITES] = {
    [A] = {.name = "a",
           .gateway = {.user = "ann", .host = "ga", .port = 22},
           .published_at = GRID_OUTSIDE,
           .host = hosts,
           .hosts = 2,
           .relay = {.host = 0, .port = 7000},
           .ckptsrv = {.host = 1, .port = 7100}},
    [B] = {.name = "b",
           .gateway = {.host = "gb", .port = 222},
           .published_at = GRID_OUTSIDE,
           .host = hosts,
           .hosts = 1,
           .relay = {.host = 0, .port = 7000},
           .ckptsrv = {.host = HOSTS_NONE}},
    [C] = {.name = "c",
           .published_at = B,
           .published_port = 2203,
           .host = hosts,
           .hosts = 1,
           .relay = {.host = 0, .port = 7000},
           .ckptsrv = {.host = HOSTS_NONE}},
};
static const struct grid grid = {.name = "g", .site = sites, .sites = SITES};
static struct grid_ways ways;

static void set(uint32_t from, uint32_t to, enum grid_way_state state, uint32_t over)
{
    *grid_way_of(&ways, from, to) = (struct grid_way){.state = state, .over = over};
}

static void setup(void)
{
    set(GRID_OUTSIDE, A, GRID_WAY_OPEN, A);
    set(GRID_OUTSIDE, B, GRID_WAY_BROKEN, B);
    set(GRID_OUTSIDE, C, GRID_WAY_NONE, C);
    set(A, B, GRID_WAY_OPEN, B);
    set(A, C, GRID_WAY_OPEN, B);
    set(B, A, GRID_WAY_OPEN, A);
    set(B, C, GRID_WAY_OPEN, C);
    set(C, A, GRID_WAY_UNKNOWN, B);
    set(C, B, GRID_WAY_UNKNOWN, B);
    grid_way_of(&ways, A, B)->relay_alone = true;
}

static void is_drawn(uint32_t here, const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    setup();
    grid_ways_draw(&ways, &grid, here, to);
    fclose(to);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, expected));
    if (!strstr(text, expected))
        printf("# expected:\n%s# got:\n%s", expected, text);
    free(text);
}

TEST(a_picture)
{
    is_drawn(GRID_OUTSIDE, "grid g\n"
                           "this machine, at none of its sites\n"
                           "  ----> a\n"
                           "  -X->  b: does not get there\n"
                           "a: gateway ann@ga port 22\n"
                           "  h1                 4 slots, relay at port 7000\n"
                           "  h2                 0 slots, checkpoint server at port 7100\n"
                           "  ----> b: to its relay alone\n"
                           "  ----> c, over b\n"
                           "b: gateway gb port 222\n");
    is_drawn(GRID_OUTSIDE, "c: published at b, port 2203\n"
                           "  h1                 4 slots, relay at port 7000\n"
                           "  -?->  a, over b: not looked at\n"
                           "  -?->  b: not looked at\n");
}

TEST(from_a_site)
{
    is_drawn(A, "grid g\na, where this machine is: gateway ann@ga port 22\n");
}

#define FORWARDING                                                                                 \
    "gateway g: forwarding to h1 port 7000 (it may be forbidden there, or nobody listens): "       \
    "Channel open failure "

TEST(who_does_not_listen)
{
    CU_ASSERT_TRUE(causes_nobody_listens(FORWARDING "(connect failed)", "h1", 7000));
    CU_ASSERT_FALSE(causes_nobody_listens(FORWARDING "(connect failed)", "h1", 700));
    CU_ASSERT_FALSE(causes_nobody_listens(FORWARDING "(connect failed)", "h", 7000));
    CU_ASSERT_FALSE(causes_nobody_listens(FORWARDING "(administratively prohibited)", "h1", 7000));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(causes_advice(FORWARDING "(administratively prohibited)"), "AllowTcpForwarding"));
}

TEST(no_relay)
{
    static const uint8_t token[TCP_PROBE_TOKEN] = {1};
    struct tcp_probe_server server;
    uint8_t key[CW_KEY_SIZE] = {0};
    char address[64];
    struct cw_err err;

    CU_ASSERT_EQUAL(relay_check("tcp:no such host:1", 1000, key, &err), RELAY_NO_WAY);
    CU_ASSERT_EQUAL_FATAL(tcp_probe_serve(&server, token, &err), CW_OK);
    snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", server.port);
    CU_ASSERT_EQUAL(relay_check(address, 5000, NULL, &err), RELAY_LISTENS);
    CU_ASSERT_EQUAL(relay_check(address, 5000, key, &err), RELAY_OTHER);
    tcp_probe_end(&server);
    CU_ASSERT_EQUAL(relay_check(address, 5000, key, &err), RELAY_OFF);
}
