/* Ways over a grid: dispatcher/hosts/routes.h. */
#include "dispatcher/hosts/ssh_config.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("routes of a grid");

enum { A, B, C, D, SITES };

static struct grid_site sites[SITES];
static struct grid grid = {.site = sites, .sites = SITES};
static char text[CW_ADDRESS_MAX];

/* All have a gateway that all reach. */
static void setup(void)
{
    for (uint32_t i = 0; i < SITES; i++) {
        sites[i] = (struct grid_site){.gateway = {.port = 22}, .published_at = GRID_OUTSIDE};
        snprintf(sites[i].gateway.host, sizeof(sites[i].gateway.host), "g%c", 'a' + i);
        memset(sites[i].reaches, 1, SITES);
        grid.reaches[i] = true;
    }
}

static void only(uint32_t from, uint32_t to)
{
    memset(sites[from].reaches, 0, SITES);
    sites[from].reaches[to] = true;
}

static void is_way(uint32_t from, uint32_t to, uint32_t ways, const char *address)
{
    CU_ASSERT_EQUAL(routes_address(&grid, from, to, "n1", 7000, text), ways);
    CU_ASSERT_STRING_EQUAL(text, address);
}

TEST(within_a_site)
{
    setup();
    is_way(A, A, 1, "tcp:n1:7000");
}

TEST(direct_ones_first)
{
    struct route route[ROUTES_MAX];

    setup();
    CU_ASSERT_EQUAL(routes_find(&grid, A, B, route), ROUTES_MAX);
    CU_ASSERT_EQUAL(route[0].hops, 1);
    CU_ASSERT_EQUAL(route[1].hops, 2);
    is_way(A, B, 3, "ssh:gb:22+gc:22,gb:22+gd:22,gb:22/n1:7000");
    is_way(GRID_OUTSIDE, B, 3, "ssh:gb:22+ga:22,gb:22+gc:22,gb:22/n1:7000");
}

/* B can be reached from C alone. */
TEST(over_a_third_site)
{
    setup();
    sites[A].reaches[B] = sites[D].reaches[B] = false;
    strcpy(sites[B].gateway.user, "bob");
    is_way(A, B, 2, "ssh:gc:22,bob@gb:22+gd:22,gc:22,bob@gb:22/n1:7000");
    only(C, A);
    is_way(A, B, 0, "");
}

/* Nothing is open at D, which keeps a port at the gateway of C. */
TEST(over_a_published_port)
{
    setup();
    sites[D].gateway.host[0] = '\0';
    sites[D].published_at = C;
    sites[D].published_port = 2201;
    strcpy(sites[D].user, "dan");
    only(A, C);
    is_way(A, D, 1, "ssh:gc:22,dan@127.0.0.1:2201/n1:7000");
    is_way(C, D, 1, "ssh:gc:22,dan@127.0.0.1:2201/n1:7000");
    only(D, C);
    is_way(D, C, 1, "ssh:gc:22/n1:7000");
}

/* A line of sites is passed only as far as there may be gateways. */
TEST(no_more_gateways_than_allowed)
{
    struct grid_site line[SSH_HOPS_MAX + 2];
    struct grid long_grid = {.site = line, .sites = SSH_HOPS_MAX + 2};

    setup();
    for (uint32_t i = 0; i < long_grid.sites; i++) {
        line[i] = sites[A];
        memset(line[i].reaches, 0, sizeof(line[i].reaches));
        line[i].reaches[i + 1] = true;
    }
    CU_ASSERT_EQUAL(routes_address(&long_grid, 0, SSH_HOPS_MAX, "n", 1, text), 1);
    CU_ASSERT_EQUAL(routes_address(&long_grid, 0, SSH_HOPS_MAX + 1, "n", 1, text), 0);
}

/* Long names: the worst ways are left out, and what is left is an address. */
TEST(what_fits)
{
    struct ssh_address address;
    struct cw_err err;

    setup();
    for (uint32_t i = 0; i < SITES; i++)
        memset(sites[i].gateway.host, 'a' + (int)i, SSH_HOST_MAX);
    CU_ASSERT_EQUAL(routes_address(&grid, A, B, "n1", 7000, text), 2);
    CU_ASSERT_EQUAL(ssh_address_parse(&address, text, &err), CW_OK);
    CU_ASSERT_EQUAL(address.ways, 2);
}

static void is_in(const char *config, const char *part)
{
    CU_ASSERT_PTR_NOT_NULL(strstr(config, part));
}

/* As ssh(1) reads it: the first value that fits counts, so the user's own configuration comes last.
 */
TEST(as_ssh_is_told)
{
    static struct grid_host host = {.name = "n1"};
    char *config;

    setup();
    for (uint32_t i = 0; i < SITES; i++) {
        snprintf(sites[i].name, sizeof(sites[i].name), "site-%c", 'a' + i);
        sites[i].host = &host;
        sites[i].hosts = 1;
    }
    sites[A].reaches[B] = sites[D].reaches[B] = false;
    strcpy(sites[B].gateway.user, "gwen");
    strcpy(sites[B].user, "bob");
    strcpy(sites[B].key, "/home/bob/a key");
    config = ssh_config_make(&grid, A);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    is_in(config, "Host n1.site-a\n  HostName n1\nHost gateway.site-b\n");
    is_in(config, "Host gateway.site-b\n  HostName gb\n  Port 22\n  User gwen\n"
                  "  IdentityFile \"/home/bob/a key\"\n  ProxyJump gateway.site-c\n");
    is_in(config, "Host n1.site-b\n  HostName n1\n  User bob\n"
                  "  IdentityFile \"/home/bob/a key\"\n"
                  "  ProxyJump gateway.site-c,gateway.site-b\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(config, "Include ~/.ssh/config"));
    CU_ASSERT_PTR_NULL(strstr(strstr(config, "Include ~/.ssh/config"), "Host n1"));
    free(config);
}
