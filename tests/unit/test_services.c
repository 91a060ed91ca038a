/* Services of a grid: what is said to hosts, and what they say. dispatcher/node, dispatcher/hosts.
 */
#include "common/transport.h"
#include "dispatcher/hosts/grid_state.h"
#include "dispatcher/hosts/plan.h"
#include "dispatcher/node/service_keeper.h"
#include "dispatcher/status/json_value.h"
#include "dispatcher/wire/ssh_says.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("services of a grid");

enum { PARIS, LYON, NICE, SITES };

static struct grid_host paris_hosts[] = {{.name = "p1"}, {.name = "p2"}};
static struct grid_host lyon_hosts[] = {{.name = "l1"}};
static struct grid_host nice_hosts[] = {{.name = "n1"}};
static struct grid_site sites[SITES];
static struct grid grid = {.name = "demo", .site = sites, .sites = SITES};
static const struct plan plan = {.grid = &grid, .key = "0123\n"};

/* Nice lets nothing in, and is published at lyon. */
static void setup(void)
{
    for (uint32_t i = 0; i < SITES; i++) {
        sites[i] = (struct grid_site){.published_at = GRID_OUTSIDE,
                                      .hosts = 1,
                                      .gateway.port = 22,
                                      .relay = {.host = 0, .port = 7000},
                                      .ckptsrv.host = HOSTS_NONE};
        memset(sites[i].reaches, 1, SITES);
        grid.reaches[i] = true;
    }
    strcpy(sites[PARIS].name, "paris");
    strcpy(sites[PARIS].gateway.host, "gp");
    strcpy(sites[PARIS].relay.options, "--engine uring  --log-safety memory");
    sites[PARIS].host = paris_hosts;
    sites[PARIS].hosts = 2;
    sites[PARIS].ckptsrv = (struct grid_service){.host = 1, .port = 7100};
    strcpy(sites[LYON].name, "lyon");
    strcpy(sites[LYON].gateway.host, "gl");
    sites[LYON].host = lyon_hosts;
    strcpy(sites[NICE].name, "nice");
    sites[NICE].host = nice_hosts;
    sites[NICE].published_at = LYON;
    sites[NICE].published_port = 22001;
}

/* --- plans --- */

TEST(where_services_are)
{
    static const uint32_t hosts[SITES][PLAN_SERVICES] = {
        {HOSTS_NONE, 0, 1, 0}, {HOSTS_NONE, 0, HOSTS_NONE, 0}, {0, 0, HOSTS_NONE, 0}};

    setup();
    for (uint32_t site = 0; site < SITES; site++)
        for (enum plan_service s = 0; s < PLAN_SERVICES; s++)
            CU_ASSERT_EQUAL(plan_host(&plan, site, s), hosts[site][s]);
    grid.sites = 1;
    CU_ASSERT_EQUAL(plan_host(&plan, PARIS, PLAN_DOORS), HOSTS_NONE);
    grid.sites = SITES;
}

/* The words of the command, with blanks between. */
static void is_command(uint32_t site, enum plan_service service, const char *expected)
{
    json_t *request = plan_request(&plan, "start", site, service);
    char *text = json_dumps(request, 0);
    char line[4096] = "";
    struct cw_err err;
    json_t *again, *word;
    size_t i, used = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    again = json_object_read(text, strlen(text), &err);
    CU_ASSERT_EQUAL_FATAL(service_request_check(again, &err), CW_OK);
    json_array_foreach(json_object_get(again, "argv"), i, word)
    {
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s", i ? " " : "",
                                 json_string_value(word));
    }
    CU_ASSERT_STRING_EQUAL(line, expected);
    CU_ASSERT(json_equal(request, again));
    free(text);
    json_decref(request);
    json_decref(again);
}

/* What the grid file says comes after what is said by itself. */
TEST(commands)
{
    setup();
    is_command(PARIS, PLAN_RELAY,
               "relay --listen tcp:p1:7000 --key-file key --log-safety file --engine uring "
               "--log-safety memory");
    is_command(PARIS, PLAN_CKPTSRV,
               "ckptsrv --listen tcp:p2:7100 --key-file key --dir ../paris.images");
    strcpy(sites[PARIS].ckptsrv.dir, "/scratch/images");
    strcpy(sites[PARIS].ckptsrv.options, "--max 1G");
    is_command(PARIS, PLAN_CKPTSRV,
               "ckptsrv --listen tcp:p2:7100 --key-file key --dir /scratch/images --max 1G");
    is_command(NICE, PLAN_PUBLISH,
               "-N -T -v -F ssh_config -oBatchMode=yes -oExitOnForwardFailure=yes "
               "-oServerAliveInterval=5 -oServerAliveCountMax=3 -oConnectTimeout=15 "
               "-oStrictHostKeyChecking=yes -oControlMaster=no -oControlPath=none "
               "-oPermitLocalCommand=no -R 127.0.0.1:22001:localhost:22 -- gateway.lyon");
    sites[NICE].reaches[PARIS] = false;
    is_command(LYON, PLAN_DOORS,
               "tunnel --listen tcp:l1:7001 ssh:gp:22/p1:7000 --listen tcp:l1:7017 "
               "ssh:gp:22/p2:7100 --listen tcp:l1:7003 ssh:gl:22,127.0.0.1:22001/n1:7000");
}

/* Each once, by the name that it has at all sites; the key of the grid is in a file alone. */
TEST(keys)
{
    json_t *request;

    setup();
    strcpy(sites[PARIS].key, "/home/alice/.ssh/id_grid");
    strcpy(sites[LYON].key, "/etc/other");
    for (uint32_t i = 0; i < SITES; i++)
        grid_place_at_home(sites[i].key, "/home/alice");
    strcpy(sites[NICE].key, sites[PARIS].key);
    request = plan_request(&plan, "start", PARIS, PLAN_RELAY);
    CU_ASSERT_STRING_EQUAL(service_text(json_object_get(request, "env"), "CAUSEWAY_SSH_KEYS"),
                           "~/.ssh/id_grid:/etc/other");
    CU_ASSERT_STRING_EQUAL(service_text(json_object_get(request, "files"), "key"), "0123\n");
    json_decref(request);
    request = plan_request(&plan, "stop", PARIS, PLAN_RELAY);
    CU_ASSERT_PTR_NULL(json_object_get(request, "files"));
    json_decref(request);
    strcpy(sites[LYON].key, "/home/alicette/key");
    grid_place_at_home(sites[LYON].key, "/home/alice");
    CU_ASSERT_STRING_EQUAL(sites[LYON].key, "/home/alicette/key");
}

TEST(digests)
{
    char one[SERVICE_DIGEST_BYTES], other[SERVICE_DIGEST_BYTES];
    json_t *request;

    setup();
    request = plan_request(&plan, "start", PARIS, PLAN_RELAY);
    service_digest(request, "1", one);
    service_digest(request, "1", other);
    CU_ASSERT_STRING_EQUAL(one, other);
    service_digest(request, "2", other);
    CU_ASSERT_STRING_NOT_EQUAL(one, other);
    json_object_set_new(json_object_get(request, "files"), "key", json_string("0124\n"));
    service_digest(request, "1", other);
    CU_ASSERT_STRING_NOT_EQUAL(one, other);
    json_decref(request);
}

/* --- requests that are none --- */

static struct cw_err err;

static void is_none(const char *text, const char *expected)
{
    json_t *request = json_object_read(text, strlen(text), &err);

    CU_ASSERT_PTR_NOT_NULL(request);
    CU_ASSERT_EQUAL(service_request_check(request, &err), CW_EPROTO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, expected));
    json_decref(request);
}

#define OF "\"grid\":\"g\",\"site\":\"s\",\"service\":\"x\""
#define START "{\"op\":\"start\"," OF ",\"program\":\"ssh\",\"argv\":[],\"env\":{},"

TEST(no_requests)
{
    is_none("{\"op\":\"go\"," OF "}", "\"op\"");
    is_none("{\"op\":\"stop\",\"grid\":\"..\",\"site\":\"s\",\"service\":\"x\"}", "\"grid\"");
    is_none("{\"op\":\"stop\",\"grid\":\"g\",\"site\":\"s/../..\",\"service\":\"x\"}", "\"site\"");
    is_none("{\"op\":\"start\"," OF ",\"program\":\"/bin/sh\"}", "\"program\"");
    is_none("{\"op\":\"start\"," OF ",\"program\":\"ssh\",\"argv\":[1]}", "\"argv\"");
    is_none("{\"op\":\"start\"," OF ",\"program\":\"ssh\",\"argv\":[],\"env\":[]}", "\"env\"");
    is_none(START "\"files\":{\"../x\":\"\"}}", "\"files\"");
    is_none(START "\"files\":{\"lock\":\"\"}}", "\"files\"");
    is_none(START "\"files\":{},\"address\":\"\",\"ready\":\"soon\"}", "\"ready\"");
    is_none(START "\"files\":{},\"address\":\"\",\"ready\":\"forward\",\"again\":1}", "\"again\"");
}

/* --- answers --- */

TEST(answers)
{
    struct service_answer a = {.state = SERVICE_WAITS,
                               .well = true,
                               .pid = 17,
                               .since = 1700000000,
                               .log_lines = 2,
                               .why = "it ended",
                               .log = {"one", "two \"2\""}};
    struct service_answer again;
    json_t *object = service_answer_put(&a), *said;

    CU_ASSERT_EQUAL(service_answer_get(&again, object, &err), CW_OK);
    said = service_answer_put(&again);
    CU_ASSERT(json_equal(object, said));
    CU_ASSERT_STRING_EQUAL(again.log[1], "two \"2\"");
    CU_ASSERT_EQUAL(again.state, SERVICE_WAITS);
    json_decref(said);
    json_decref(object);
}

TEST(no_answers)
{
    static const char *const bad[] = {"{}", "{\"state\":\"well\"}", "{\"state\":1}"};
    static const char wild[] = "{\"state\":\"failed\",\"why\":\"0\\u001b[2J\",\"pid\":-4,"
                               "\"log\":[1,\"b\",[],{},\"e\",\"f\"],\"well\":\"yes\"}";
    struct service_answer a;
    json_t *object;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        object = json_object_read(bad[i], strlen(bad[i]), &err);
        CU_ASSERT_EQUAL(service_answer_get(&a, object, &err), CW_EPROTO);
        json_decref(object);
    }
    CU_ASSERT_PTR_NULL(json_object_read("[]", 2, &err));
    CU_ASSERT_PTR_NULL(json_object_read("{\"a\":1,\"a\":2}", 13, &err));
    CU_ASSERT_EQUAL(err.code, CW_EPROTO);
    object = json_object_read(wild, strlen(wild), &err);
    CU_ASSERT_EQUAL(service_answer_get(&a, object, &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(a.why, "0?[2J");
    CU_ASSERT(!a.well && a.pid == 0 && a.log_lines == SERVICE_LOG_LINES_MAX);
    CU_ASSERT_STRING_EQUAL(a.log[1], "b");
    json_decref(object);
}

TEST(what_ssh_says)
{
    CU_ASSERT_EQUAL(ssh_says("OpenSSH_9.2p1 Debian-2, OpenSSL 3.0.9"), SSH_SAID_NOISE);
    CU_ASSERT_EQUAL(ssh_says("debug1: Connecting to gl port 22."), SSH_SAID_NOISE);
    CU_ASSERT_EQUAL(ssh_says("Authenticated to gl ([192.0.2.1]:22) using \"publickey\"."),
                    SSH_SAID_LOGIN);
    CU_ASSERT_EQUAL(ssh_says("debug1: remote forward success for: listen 5"), SSH_SAID_FORWARD);
    CU_ASSERT_EQUAL(ssh_says("channel 0: open failed: connect failed: No route to host"),
                    SSH_SAID_OTHER);
    CU_ASSERT_EQUAL(ssh_says("Connection closed by UNKNOWN port 65535"), SSH_SAID_NOISE);
}
