/* Reports of hosts, requests to them, what hosts differ in, and what launchers say. Connections
 * over TCP are with a process of this machine. */
#include "dispatcher/doctor/causes.h"
#include "dispatcher/doctor/compare.h"
#include "dispatcher/doctor/tcp_probe.h"
#include "dispatcher/status/json_value.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

static struct host_report report;
static struct findings found;
static struct findings findings;
static struct cw_err err;

/* --- reports --- */

static void take(const char *text)
{
    json_t *object = json_object_read(text, strlen(text), &err);

    findings_free(&found);
    CU_ASSERT_PTR_NOT_NULL_FATAL(object);
    host_report_get(&report, object);
    host_report_get_findings(object, &found);
    json_decref(object);
}

static int end(void)
{
    findings_free(&found);
    findings_free(&findings);
    return 0;
}

SUITE("doctor", NULL, end);

TEST(reports_are_read_as_written)
{
    struct host_report told = {.path = "/a b/causeway",
                               .machine = "x86_64",
                               .mpich = "4.0.2",
                               .memory_mb = 4096,
                               .features = {1, 2, 3, 4, 5, 6, 7, UINT32_MAX},
                               .xcr0 = 0x8000000000000001ull};
    json_t *object;

    findings_add(&findings, DOCTOR_OK, "all is well");
    findings_add(&findings, DOCTOR_WARNING, "it is late");
    findings_add(&findings, DOCTOR_MISSING, "much; get it");
    object = host_report_put(&told, &findings);
    CU_ASSERT_PTR_NOT_NULL_FATAL(object);
    host_report_get(&report, object);
    host_report_get_findings(object, &found);
    json_decref(object);
    findings_free(&findings);
    CU_ASSERT_STRING_EQUAL(report.path, told.path);
    CU_ASSERT_STRING_EQUAL(report.machine, told.machine);
    CU_ASSERT_STRING_EQUAL(report.mpich, told.mpich);
    CU_ASSERT_EQUAL(report.memory_mb, 4096);
    CU_ASSERT_TRUE(report.features_known);
    CU_ASSERT_EQUAL(memcmp(report.features, told.features, sizeof(told.features)), 0);
    CU_ASSERT_EQUAL(report.xcr0, told.xcr0);
    CU_ASSERT_EQUAL_FATAL(found.count, 2);
    CU_ASSERT_EQUAL(found.item[0].level, DOCTOR_WARNING);
    CU_ASSERT_STRING_EQUAL(found.item[0].text, "it is late");
    CU_ASSERT_EQUAL(found.item[1].level, DOCTOR_MISSING);
    CU_ASSERT_STRING_EQUAL(found.item[1].text, "much; get it");
}

TEST(hostile_reports)
{
    static char much[4096];

    take("{\"features\":[1,2,3],\"findings\":[1,{},{\"level\":\"terrible\",\"text\":\"x\"},"
         "{\"level\":\"warning\"},{\"level\":5,\"text\":[]}],\"memory_mb\":-1,\"whatever\":{}}");
    CU_ASSERT_FALSE(report.features_known);
    CU_ASSERT_EQUAL(found.count, 1);
    CU_ASSERT_EQUAL(report.memory_mb, 0);
    take("{\"features\":[1,2,3,4,5,6,7,4294967296,1],\"memory_mb\":\"x\",\"findings\":5}");
    CU_ASSERT_FALSE(report.features_known);
    take("{\"features\":[1,2,3,4,5,6,7,-8,1],\"path\":\"\\u001b[31m\\tred\"}");
    CU_ASSERT_FALSE(report.features_known);
    CU_ASSERT_STRING_EQUAL(report.path, "?[31m?red");
    snprintf(much, sizeof(much), "{\"mpich\":\"%0*d\"}", 2000, 0);
    take(much);
    CU_ASSERT_EQUAL(strlen(report.mpich), HOST_REPORT_TEXT_MAX);
}

TEST(findings_are_bounded)
{
    json_t *object = json_object(), *list = json_array();

    for (int i = 0; i <= FINDINGS_MAX; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "level", "warning", "text", "again"));
    json_object_set_new(object, "findings", list);
    findings_free(&found);
    host_report_get(&report, object);
    host_report_get_findings(object, &found);
    json_decref(object);
    CU_ASSERT_EQUAL(found.count, FINDINGS_MAX);
    CU_ASSERT_TRUE(found.more);
}

/* --- requests --- */

static const uint8_t token[TCP_PROBE_TOKEN] = {5, 0, 0xfe};

TEST(tokens_of_requests)
{
    static const char *const bad[] = {"", "00", "xx0102030405060708090a0b0c0d0e0f",
                                      "000102030405060708090a0b0c0d0e0f00"};
    json_t *request = tcp_probe_request("reach", token, "tcp:a:5");
    uint8_t again[TCP_PROBE_TOKEN];

    CU_ASSERT_TRUE(tcp_probe_token(request, again));
    CU_ASSERT_EQUAL(memcmp(again, token, sizeof(token)), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_object_set_new(request, "token", json_string(bad[i]));
        CU_ASSERT_FALSE(tcp_probe_token(request, again));
    }
    json_object_del(request, "token");
    CU_ASSERT_FALSE(tcp_probe_token(request, again));
    json_decref(request);
}

/* --- what hosts differ in --- */

#define HOSTS 12

static struct host_check hosts[HOSTS];
static char names[HOSTS][8];

static void like_each_other(void)
{
    findings_free(&findings);
    for (int i = 0; i < HOSTS; i++) {
        hosts[i] = (struct host_check){
            .name = names[i],
            .there = true,
            .report = {.features_known = true, .features = {3}, .xcr0 = 7, .mpich = "4.0.2"}};
        snprintf(names[i], sizeof(names[i]), "h%d", i);
    }
}

static void compare(void)
{
    compare_hosts(hosts, HOSTS, &findings);
}

static void expect_finding(size_t i, const char *part)
{
    CU_ASSERT_FATAL(i < findings.count);
    CU_ASSERT_EQUAL(findings.item[i].level, DOCTOR_WARNING);
    CU_ASSERT_PTR_NOT_NULL(strstr(findings.item[i].text, part));
}

TEST(hosts_that_are_alike)
{
    like_each_other();
    hosts[0].there = false;
    compare();
    hosts[1].report.features_known = false;
    hosts[2].report.mpich[0] = '\0';
    compare();
    CU_ASSERT_EQUAL(findings.count, 0);
}

TEST(processors_that_lack_features)
{
    like_each_other();
    hosts[3].report.features[0] = hosts[5].report.features[0] = 0x83;
    compare();
    CU_ASSERT_EQUAL(findings.count, 1);
    expect_finding(0, "go on on h0, h1, h2, h4, h6, h7, h8, h9 and 2 more from an image of h3, h5");
    expect_finding(0, "word 0 of CPUID: 0x80");
    like_each_other();
    hosts[3].report.features[4] = 1;
    hosts[5].report.xcr0 = 3;
    compare();
    CU_ASSERT_EQUAL(findings.count, 3);
    expect_finding(0, "on h5 from an image of h0, h1");
    expect_finding(0, "XCR0: 0x4");
    expect_finding(1, "on h0, h1");
    expect_finding(2, "on h5 from an image of h3");
}

TEST(versions_of_mpich)
{
    like_each_other();
    strcpy(hosts[1].report.mpich, "4.1");
    strcpy(hosts[2].report.mpich, "4.1");
    compare();
    CU_ASSERT_EQUAL(findings.count, 1);
    expect_finding(0, "and 2 more; 4.1 on h1, h2; install");
}

TEST(as_many_findings_as_have_room)
{
    static char name[HOSTS][256];

    like_each_other();
    for (int i = 0; i < HOSTS; i++) {
        memset(name[i], 'a' + i, sizeof(name[i]) - 1);
        hosts[i].name = name[i];
        memset(hosts[i].report.mpich, 'A' + i, HOST_REPORT_TEXT_MAX);
        hosts[i].report.features[0] = 1u << i;
    }
    compare();
    CU_ASSERT_EQUAL(findings.count, FINDINGS_MAX);
    CU_ASSERT_TRUE(findings.more);
    for (int i = 0; i < HOSTS; i++)
        memset(hosts[i].report.mpich, 0, sizeof(hosts[i].report.mpich));
    findings_free(&findings);
}

/* --- what launchers say --- */

static void expect_advice(const char *said, const char *part)
{
    const char *advice = causes_advice(said);

    CU_ASSERT_PTR_NOT_NULL_FATAL(advice);
    CU_ASSERT_PTR_NOT_NULL(strstr(advice, part));
}

TEST(advice_for_causes)
{
    expect_advice("ssh: Could not resolve hostname x: Name or service not known", "/etc/hosts");
    expect_advice("Warning: Identity file k: No such file or directory.; "
                  "a@b: Permission denied (publickey,password).",
                  "ssh-copy-id");
    expect_advice("Host key verification failed.", "by hand");
    expect_advice("ssh: connect to host x port 22: Connection refused", "start it");
    expect_advice("ssh: connect to host x port 22: Connection timed out", "firewall");
    expect_advice("bash: line 1: /x/causeway: No such file or directory", "--agent");
    expect_advice("bash: line 1: exec: causeway: not found", "--agent");
    expect_advice("bash: line 1: /x/causeway: Permission denied", "mode");
    CU_ASSERT_PTR_NULL(causes_advice("it ended with code 3"));
}

/* --- TCP --- */

TEST(who_listens_is_reached)
{
    char address[CW_ADDRESS_MAX];
    struct tcp_probe_server server;

    CU_ASSERT_EQUAL_FATAL(tcp_probe_serve(&server, token, &err), CW_OK);
    tcp_probe_address("localhost", server.port, address);
    CU_ASSERT_EQUAL(tcp_probe_ask(address, TCP_PROBE_CONNECT_MS, token, &err), CW_OK);
    tcp_probe_address("127.0.0.1", server.port, address);
    CU_ASSERT_EQUAL(tcp_probe_ask(address, TCP_PROBE_CONNECT_MS, token, &err), CW_OK);
    tcp_probe_end(&server);
    CU_ASSERT_EQUAL(tcp_probe_ask(address, TCP_PROBE_CONNECT_MS, token, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "refused"));
    tcp_probe_end(&server);
}

TEST(somebody_else_listens)
{
    static const uint8_t other[TCP_PROBE_TOKEN] = {6};
    char address[CW_ADDRESS_MAX];
    struct tcp_probe_server server;

    CU_ASSERT_EQUAL_FATAL(tcp_probe_serve(&server, token, &err), CW_OK);
    tcp_probe_address("127.0.0.1", server.port, address);
    CU_ASSERT_EQUAL(tcp_probe_ask(address, TCP_PROBE_CONNECT_MS, other, &err), CW_ECLOSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "somebody else"));
    tcp_probe_end(&server);
    CU_ASSERT_EQUAL(tcp_probe_ask("tcp:no such host:5", TCP_PROBE_CONNECT_MS, token, &err),
                    CW_EINVAL);
}
