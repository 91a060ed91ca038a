/* Addresses of relays behind gateways. */
#include "tests/unit/suites.h"
#include "tunnels/ssh_address.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

SUITE("ssh addresses");

static struct ssh_address address;
static struct cw_err err;

static void is_hop_of(uint32_t way, uint32_t i, const char *user, const char *host, uint16_t port)
{
    CU_ASSERT_STRING_EQUAL(address.way[way].hop[i].user, user);
    CU_ASSERT_STRING_EQUAL(address.way[way].hop[i].host, host);
    CU_ASSERT_EQUAL(address.way[way].hop[i].port, port);
}

static void is_hop(uint32_t i, const char *user, const char *host, uint16_t port)
{
    CU_ASSERT_EQUAL(address.ways, 1);
    is_hop_of(0, i, user, host, port);
}

static void good(const char *text, uint32_t hops, const char *host, uint16_t port)
{
    CU_ASSERT_EQUAL(ssh_address_parse(&address, text, &err), CW_OK);
    CU_ASSERT_EQUAL(address.way[address.ways - 1].hops, hops);
    CU_ASSERT_STRING_EQUAL(address.host, host);
    CU_ASSERT_EQUAL(address.port, port);
}

TEST(ways)
{
    good("ssh:gate/node:7000", 1, "node", 7000);
    is_hop(0, "", "gate", 22);
    good("ssh:alice@gate.site-b:2222/10.0.0.5:1", 1, "10.0.0.5", 1);
    is_hop(0, "alice", "gate.site-b", 2222);
    good("ssh:a,b@c:1,[fe80::1%eth0]:2,d/[::1]:65535", 4, "::1", 65535);
    is_hop(0, "", "a", 22);
    is_hop(1, "b", "c", 1);
    is_hop(2, "", "fe80::1%eth0", 2);
    is_hop(3, "", "d", 22);
    good("ssh:a+b@c:1,d+e/f:7", 1, "f", 7);
    CU_ASSERT_EQUAL(address.ways, 3);
    is_hop_of(0, 0, "", "a", 22);
    is_hop_of(1, 0, "b", "c", 1);
    is_hop_of(1, 1, "", "d", 22);
    is_hop_of(2, 0, "", "e", 22);
}

static void bad(const char *text)
{
    CU_ASSERT_EQUAL(ssh_address_parse(&address, text, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "expected ssh:[USER@]GATEWAY"));
}

TEST(wrong_ones)
{
    static const char *const texts[] = {"",
                                        "ssh:",
                                        "tcp:a:1",
                                        "ssh:a",
                                        "ssh:a/",
                                        "ssh:a/b",
                                        "ssh:a/b:",
                                        "ssh:a/b:0",
                                        "ssh:a/:1",
                                        "ssh:a/b:65536",
                                        "ssh:/b:1",
                                        "ssh:a:/b:1",
                                        "ssh:,a/b:1",
                                        "ssh:+a/b:1",
                                        "ssh:a+/b:1",
                                        "ssh:a+b+c+d/b:1",
                                        "ssh:a,/b:1",
                                        "ssh:-a/b:1",
                                        "ssh:-u@a/b:1",
                                        "ssh:@a/b:1",
                                        "ssh:a@/b:1",
                                        "ssh:a/-b:1",
                                        "ssh:[a/b:1",
                                        "ssh:[]/b:1",
                                        "ssh:a,b,c,d,e/f:1",
                                        "ssh:a/b:1/c",
                                        "ssh:a/[::1]",
                                        "ssh:a/b:1 ",
                                        "ssh:a\n/b:1",
                                        "ssh:[::1]x/b:1",
                                        "ssh:a/b:000001"};
    char text[400];

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        bad(texts[i]);
    snprintf(text, sizeof(text), "ssh:%0256d/b:1", 0);
    bad(text);
    snprintf(text, sizeof(text), "ssh:%065d@a/b:1", 0);
    bad(text);
}

TEST(where_it_is)
{
    CU_ASSERT_STRING_EQUAL(ssh_address_inner("ssh:u@a:1,b/c:2"), "c:2");
    CU_ASSERT_PTR_NULL(ssh_address_inner("tcp:a:1"));
    CU_ASSERT_PTR_NULL(ssh_address_inner("unix:/ssh:/a:1"));
    CU_ASSERT_PTR_NULL(ssh_address_inner("ssh:a"));
}
