/* Reports of hosts, requests to them, what hosts differ in, and what launchers say. Connections
 * over TCP are with a process of this machine. */
#include "dispatcher/doctor/causes.h"
#include "dispatcher/doctor/compare.h"
#include "dispatcher/doctor/request.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

static struct report report;
static struct findings findings;
static struct cw_err err;

/* --- reports --- */

static int take(const char *text)
{
    return report_take(&report, text, strlen(text), &err);
}

static void begin(void)
{
    report_free(&report);
    report_init(&report);
    CU_ASSERT_EQUAL_FATAL(take(REPORT_MARKER), CW_OK);
}

static int end(void)
{
    report_free(&report);
    findings_free(&findings);
    return 0;
}

SUITE("doctor", NULL, end);

TEST(report_behind_noise)
{
    static const char text[] = "Welcome!\nversion 9" REPORT_MARKER
                               "version 0.1\npath /a b/causeway\nname node1\nmachine x86_64\n"
                               "mpich 4.0.2\npeer 10.0.0.1\nown ::1\ncores 16\nmemory 4096\n"
                               "features 1 2 3 4 5 6 7 ffffffff 8000000000000001\n"
                               "finding ok      all is well\nfinding warning it is late\n"
                               "finding missing much; get it\nready\ndone 7 8 9\nfailed  no way\n";
    char noise[MARKER_NOISE_KEPT];

    report_free(&report);
    report_init(&report);
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        CU_ASSERT_EQUAL_FATAL(report_take(&report, text + i, 1, &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(marker_noise(&report.marker, noise, sizeof(noise)),
                           "Welcome! version 9");
    CU_ASSERT_STRING_EQUAL(report.version, "0.1");
    CU_ASSERT_STRING_EQUAL(report.path, "/a b/causeway");
    CU_ASSERT_STRING_EQUAL(report.name, "node1");
    CU_ASSERT_STRING_EQUAL(report.machine, "x86_64");
    CU_ASSERT_STRING_EQUAL(report.mpich, "4.0.2");
    CU_ASSERT_STRING_EQUAL(report.peer, "10.0.0.1");
    CU_ASSERT_STRING_EQUAL(report.own, "::1");
    CU_ASSERT_EQUAL(report.cores, 16);
    CU_ASSERT_EQUAL(report.memory_mb, 4096);
    CU_ASSERT_TRUE(report.features.known);
    CU_ASSERT_EQUAL(report.features.word[7], UINT32_MAX);
    CU_ASSERT_EQUAL(report.features.xcr0, 0x8000000000000001ull);
    CU_ASSERT_EQUAL_FATAL(report.findings.count, 2);
    CU_ASSERT_EQUAL(report.findings.item[0].level, DOCTOR_WARNING);
    CU_ASSERT_STRING_EQUAL(report.findings.item[0].text, "it is late");
    CU_ASSERT_EQUAL(report.findings.item[1].level, DOCTOR_MISSING);
    CU_ASSERT_STRING_EQUAL(report.findings.item[1].text, "much; get it");
    CU_ASSERT_TRUE(report.ready);
    CU_ASSERT_EQUAL(report.answers, 2);
    CU_ASSERT_FALSE(report.answer.well);
    CU_ASSERT_STRING_EQUAL(report.answer.text, "no way");
}

TEST(answers_are_numbers)
{
    begin();
    take("done 18446744073709551615 2\n");
    CU_ASSERT_TRUE(report.answer.well);
    CU_ASSERT_EQUAL(report.answer.value, UINT64_MAX);
    take("done -1 5\ndone 99999999999999999999\ndone 0x5 1\ndone\n");
    CU_ASSERT_EQUAL(report.answers, 5);
    CU_ASSERT_EQUAL(report.answer.value, 0);
}

TEST(hostile_reports)
{
    static char much[REPORT_LINE_MAX + 100];

    begin();
    take("features 1 2 3\nfinding terrible x\nfinding\nfinding warning\nversion\n\n  \nwhatever x\n"
         "cores x\nreadyness\n");
    CU_ASSERT_FALSE(report.features.known);
    CU_ASSERT_FALSE(report.ready);
    CU_ASSERT_EQUAL(report.findings.count, 1);
    CU_ASSERT_EQUAL(report.cores, 0);
    take("features 1 2 3 4 5 6 7 100000000 1\n");
    CU_ASSERT_FALSE(report.features.known);
    take("version \033[31m\tred\n");
    CU_ASSERT_STRING_EQUAL(report.version, "?[31m?red");
    CU_ASSERT_EQUAL(report_take(&report, "name a\0b\n", 9, &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(report.name, "a?b");
    memset(much, 'x', sizeof(much) - 1);
    take("name ");
    take(much);
    take("\nready\n");
    CU_ASSERT_EQUAL(strlen(report.name), REPORT_TEXT_MAX);
    CU_ASSERT_TRUE(report.ready);
}

TEST(reports_are_bounded)
{
    int taken = 0;

    begin();
    for (int i = 0; i <= FINDINGS_MAX; i++)
        take("finding warning again\n");
    CU_ASSERT_EQUAL(report.findings.count, FINDINGS_MAX);
    CU_ASSERT_TRUE(report.findings.more);
    for (size_t bytes = 0; bytes <= REPORT_BYTES_MAX && taken == CW_OK; bytes += 7)
        taken = take("done 5\n");
    CU_ASSERT_EQUAL(taken, CW_EPROTO);
    report_free(&report);
    report_init(&report);
    for (size_t i = 0; i < MARKER_NOISE_MAX; i++)
        CU_ASSERT_EQUAL_FATAL(take("x"), CW_OK);
    CU_ASSERT_EQUAL(take("x"), CW_EPROTO);
}

/* --- requests --- */

TEST(requests_are_read_as_written)
{
    struct request request = {.token = {0, 1, 0xfe}, .address = "fe80::1%eth0", .port = 65535};
    struct request again;
    char line[REQUEST_LINE_MAX];

    for (request.type = REQUEST_TIME; request.type <= REQUEST_TUNNEL; request.type++) {
        request_print(&request, line);
        CU_ASSERT_TRUE(request_read(line, &again));
        CU_ASSERT_EQUAL(again.type, request.type);
        if (request.type >= REQUEST_LISTEN)
            CU_ASSERT_EQUAL(memcmp(again.token, request.token, sizeof(again.token)), 0);
        if (request.type < REQUEST_REACH)
            continue;
        CU_ASSERT_STRING_EQUAL(again.address, request.address);
        CU_ASSERT_EQUAL(again.port, request.type == REQUEST_TUNNEL ? 0 : request.port);
    }
}

#define TOKEN "000102030405060708090a0b0c0d0e0f"

TEST(bad_requests)
{
    static const char *const bad[] = {"",
                                      "times",
                                      "time 1",
                                      "listen",
                                      "listen 00",
                                      "listen " TOKEN "00",
                                      "listen " TOKEN " x",
                                      "reach " TOKEN " a",
                                      "reach " TOKEN " a 0",
                                      "reach " TOKEN " a 65536",
                                      "reach " TOKEN " a -1",
                                      "reach " TOKEN " a 99999999999",
                                      "reach " TOKEN "  5",
                                      "reach " TOKEN " a 5 x",
                                      "reach x a 5",
                                      "tunnel " TOKEN,
                                      "tunnel " TOKEN " ssh:a/b:1 5"};
    static char long_address[REQUEST_LINE_MAX + 10] = "reach " TOKEN " ";
    struct request request;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CU_ASSERT_FALSE(request_read(bad[i], &request));
    memset(long_address + strlen(long_address), 'a', REQUEST_ADDRESS_MAX + 1);
    strcat(long_address, " 5");
    CU_ASSERT_FALSE(request_read(long_address, &request));
    memset(long_address, 'a', sizeof(long_address) - 1);
    CU_ASSERT_FALSE(request_read(long_address, &request));
}

/* --- what hosts differ in --- */

#define HOSTS 12

static struct report reports[HOSTS];
static struct compared hosts[HOSTS];
static char names[HOSTS][8];

static void like_each_other(void)
{
    findings_free(&findings);
    for (int i = 0; i < HOSTS; i++) {
        reports[i].features = (struct report_features){.known = true, .word = {3}, .xcr0 = 7};
        strcpy(reports[i].mpich, "4.0.2");
        snprintf(names[i], sizeof(names[i]), "h%d", i);
        hosts[i] = (struct compared){names[i], &reports[i]};
    }
}

static void compare(void)
{
    compare_features(hosts, HOSTS, &findings);
    compare_mpich(hosts, HOSTS, &findings);
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
    hosts[0].report = NULL;
    compare();
    reports[1].features.known = false;
    reports[2].mpich[0] = '\0';
    compare();
    CU_ASSERT_EQUAL(findings.count, 0);
}

TEST(processors_that_lack_features)
{
    like_each_other();
    reports[3].features.word[0] = reports[5].features.word[0] = 0x83;
    compare();
    CU_ASSERT_EQUAL(findings.count, 1);
    expect_finding(0, "go on on h0, h1, h2, h4, h6, h7, h8, h9 and 2 more from an image of h3, h5");
    expect_finding(0, "word 0 of CPUID: 0x80");
    like_each_other();
    reports[3].features.word[4] = 1;
    reports[5].features.xcr0 = 3;
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
    strcpy(reports[1].mpich, "4.1");
    strcpy(reports[2].mpich, "4.1");
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
        memset(reports[i].mpich, 'A' + i, REPORT_TEXT_MAX);
        reports[i].features.word[0] = 1u << i;
    }
    compare();
    CU_ASSERT_EQUAL(findings.count, FINDINGS_MAX);
    CU_ASSERT_TRUE(findings.more);
    for (int i = 0; i < HOSTS; i++)
        memset(reports[i].mpich, 0, sizeof(reports[i].mpich));
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

static const uint8_t token[TCP_PROBE_TOKEN] = {5};

TEST(who_listens_is_reached)
{
    char address[64];
    struct tcp_probe_server server;

    CU_ASSERT_EQUAL_FATAL(tcp_probe_serve(&server, token, &err), CW_OK);
    CU_ASSERT_EQUAL(tcp_probe_ask("127.0.0.1", server.port, token, &err), CW_OK);
    CU_ASSERT_EQUAL(tcp_probe_ask("localhost", server.port, token, &err), CW_OK);
    snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", server.port);
    CU_ASSERT_EQUAL(tcp_probe_ask_at(address, 5000, token, &err), CW_OK);
    tcp_probe_end(&server);
    CU_ASSERT_EQUAL(tcp_probe_ask("127.0.0.1", server.port, token, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "refused"));
    tcp_probe_end(&server);
}

TEST(only_who_has_the_token)
{
    static const uint8_t other[TCP_PROBE_TOKEN] = {6};
    struct tcp_probe_server server;

    CU_ASSERT_EQUAL_FATAL(tcp_probe_serve(&server, token, &err), CW_OK);
    CU_ASSERT_EQUAL(tcp_probe_ask("127.0.0.1", server.port, other, &err), CW_ECLOSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "somebody else"));
    tcp_probe_end(&server);
    CU_ASSERT_EQUAL(tcp_probe_ask("no such host", 5, token, &err), CW_EINVAL);
}
