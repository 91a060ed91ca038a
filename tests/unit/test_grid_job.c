/* What a grid means for a job: dispatcher/hosts/grid_job.h. */
#include "dispatcher/hosts/grid_job.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, C, SITES };

#define RANKS 5

static struct grid_job job;
static struct host_list list;
static struct placement placement;
static struct cw_err err;
static char text[CW_ADDRESS_MAX];

/* Two hosts each, with two slots and none; A and C have a checkpoint server, and nothing is open
 * at C. */
static void begin(void)
{
    memset(&job, 0, sizeof(job));
    memset(&err, 0, sizeof(err));
    job.here = job.logs_at = GRID_OUTSIDE;
    strcpy(job.grid.name, "grid");
    job.grid.sites = SITES;
    job.grid.site = calloc(SITES, sizeof(*job.grid.site));
    for (uint32_t i = 0; i < SITES; i++) {
        struct grid_site *s = &job.grid.site[i];

        snprintf(s->name, sizeof(s->name), "%c", 'a' + (int)i);
        snprintf(s->gateway.host, sizeof(s->gateway.host), "g%c", 'a' + (int)i);
        s->gateway.port = 22;
        s->hosts = 2;
        s->host = calloc(2, sizeof(*s->host));
        strcpy(s->host[0].name, "n1");
        strcpy(s->host[1].name, "n2");
        s->host[0].slots = 2;
        s->relay = (struct grid_service){.host = 1, .port = 7000};
        s->ckptsrv = (struct grid_service){.host = i == B ? HOSTS_NONE : 0, .port = 7100};
        memset(s->reaches, 1, SITES);
        job.grid.reaches[i] = true;
    }
    job.grid.site[C].gateway.host[0] = '\0';
    job.grid.site[C].published_at = B;
    job.grid.site[C].published_port = 2201;
}

static void end(void)
{
    grid_job_free(&job);
    host_list_free(&list);
    placement_free(&placement);
}

SUITE_AFTER_EACH("a grid of a job", end);

/* The ranks by site, or by slot. */
static void place(enum placement_map map, uint32_t ranks)
{
    const struct placement_options options = {.map = map};

    CU_ASSERT_EQUAL(grid_job_add_hosts(&job, &list, &err), CW_OK);
    CU_ASSERT_EQUAL(placement_make(&placement, &list, ranks, &options, &err), CW_OK);
}

TEST(hosts_with_slots)
{
    begin();
    strcpy(job.grid.site[B].causeway, "/opt/causeway");
    CU_ASSERT_EQUAL(grid_job_add_hosts(&job, &list, &err), CW_OK);
    CU_ASSERT_EQUAL(list.count, SITES);
    CU_ASSERT_STRING_EQUAL(list.host[B].name, "n1.b");
    CU_ASSERT_EQUAL(list.host[B].site, B);
    CU_ASSERT_EQUAL(list.host[B].slots, 2);
    CU_ASSERT_STRING_EQUAL(list.host[B].causeway, "/opt/causeway");
    CU_ASSERT_PTR_NULL(list.host[A].causeway);
}

TEST(relays_of_sites_with_ranks)
{
    begin();
    place(PLACEMENT_BY_SLOT, 3);
    CU_ASSERT_EQUAL(grid_job_place(&job, &list, &placement, &err), CW_OK);
    CU_ASSERT_EQUAL(job.relays, 2);
    CU_ASSERT_EQUAL(job.rank_relay[1], 0);
    CU_ASSERT_EQUAL(job.rank_relay[2], 1);
    CU_ASSERT_STRING_EQUAL(job.relay[0].text,
                           "ssh:ga:22+gb:22,ga:22+gb:22,127.0.0.1:2201,ga:22/n2:7000");
    CU_ASSERT_STRING_EQUAL(job.link[0 * 2 + 1].text, "ssh:gb:22/n2:7000");
    CU_ASSERT_STRING_EQUAL(job.link[1 * 2 + 0].text, "");
    CU_ASSERT_EQUAL(job.servers, 1);
    CU_ASSERT_EQUAL(job.rank_server[2], 0); /* B has none */
    CU_ASSERT_STRING_EQUAL(job.server[0].text,
                           "ssh:ga:22+gb:22,ga:22+gb:22,127.0.0.1:2201,ga:22/n1:7100");
}

TEST(links_from_the_better_side)
{
    begin();
    job.here = A;
    place(PLACEMENT_BY_SITE, RANKS);
    CU_ASSERT_EQUAL(grid_job_place(&job, &list, &placement, &err), CW_OK);
    CU_ASSERT_EQUAL(job.relays, SITES);
    CU_ASSERT_STRING_EQUAL(job.relay[A].text, "tcp:n2:7000");
    CU_ASSERT_STRING_EQUAL(job.relay[C].text, "ssh:gb:22,127.0.0.1:2201/n2:7000");
    /* two gateways that way, one the other way */
    CU_ASSERT_STRING_EQUAL(job.link[A * SITES + C].text, "");
    CU_ASSERT_STRING_EQUAL(job.link[C * SITES + A].text, "ssh:ga:22+gb:22,ga:22/n2:7000");
    CU_ASSERT_STRING_EQUAL(job.link[C * SITES + B].text, "ssh:gb:22+ga:22,gb:22/n2:7000");
}

TEST(one_relay_for_all)
{
    begin();
    CU_ASSERT_EQUAL(grid_job_keep_logs_at(&job, "c", &err), CW_OK);
    place(PLACEMENT_BY_SITE, RANKS);
    CU_ASSERT_EQUAL(grid_job_place(&job, &list, &placement, &err), CW_OK);
    CU_ASSERT_EQUAL(job.relays, 1);
    CU_ASSERT_EQUAL(job.relay_site[0], C);
    CU_ASSERT_EQUAL(job.servers, 1);
    CU_ASSERT_EQUAL(job.server_site[0], C);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        CU_ASSERT_TRUE(job.rank_relay[rank] == 0 && job.rank_server[rank] == 0);
    grid_job_relay_at(&job, 0, A, text);
    CU_ASSERT_STRING_EQUAL(text, "tcp:n2:7003"); /* a door, on the relay's host of A */
    grid_job_relay_at(&job, 0, C, text);
    CU_ASSERT_STRING_EQUAL(text, "tcp:n2:7000");
}

/* That of another site is not meant. */
TEST(no_server_beside_the_one_relay)
{
    begin();
    CU_ASSERT_EQUAL(grid_job_keep_logs_at(&job, "b", &err), CW_OK);
    place(PLACEMENT_BY_SITE, RANKS);
    CU_ASSERT_EQUAL(grid_job_place(&job, &list, &placement, &err), CW_OK);
    CU_ASSERT_EQUAL(job.relay_site[0], B);
    CU_ASSERT_EQUAL(job.servers, 0);
}

TEST(one_relay_at_no_site)
{
    begin();
    CU_ASSERT_EQUAL(grid_job_keep_logs_at(&job, "host", &err), CW_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.text, "--relay-at host: expected a site of grid grid: a, b, c");
}

/* Others get there, but B does not. */
TEST(one_relay_without_a_way)
{
    begin();
    memset(job.grid.site[B].reaches, 0, SITES);
    job.grid.site[C].published_at = A; /* who would be a way */
    CU_ASSERT_EQUAL(grid_job_keep_logs_at(&job, "a", &err), CW_OK);
    place(PLACEMENT_BY_SITE, RANKS);
    CU_ASSERT_EQUAL(grid_job_place(&job, &list, &placement, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--relay-at a: no way leads there from site b"));
}

TEST(what_cannot_be_reached)
{
    begin();
    memset(job.grid.reaches, 0, sizeof(job.grid.reaches));
    place(PLACEMENT_BY_SLOT, 1);
    CU_ASSERT_EQUAL(grid_job_place(&job, &list, &placement, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no way leads from this machine to site a"));
}

TEST(where_ranks_reach_them)
{
    begin();
    place(PLACEMENT_BY_SITE, RANKS);
    CU_ASSERT_EQUAL(grid_job_place(&job, &list, &placement, &err), CW_OK);
    grid_job_relay_at(&job, B, B, text);
    CU_ASSERT_STRING_EQUAL(text, "tcp:n2:7000");
    grid_job_relay_at(&job, B, C, text);
    CU_ASSERT_STRING_EQUAL(text, "tcp:n2:7002"); /* a door, on the relay's host of C */
    grid_job_server_at(&job, 1, C, text);
    CU_ASSERT_STRING_EQUAL(text, "tcp:n1:7100");
    grid_job_server_at(&job, 1, A, text);
    CU_ASSERT_STRING_EQUAL(text, "tcp:n2:7019");
}
