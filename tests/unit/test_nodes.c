/* Nodes: what they start on their hosts, ranks and a relay, what comes from there, and
 * hosts that are asked without a job. */
#include "common/clock.h"
#include "common/transport.h"
#include "dispatcher/wire/ssh_session.h"
#include "tests/lib/scratch.h"
#include "tests/unit/nodes_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("nodes");

#define FEED_BYTES 7000u

TEST(rank_is_started_and_ends)
{
    size_t used = 0;

    open_ready(2, TIMEOUT_NS);
    CU_ASSERT_STRING_NOT_EQUAL(nodes_facts(here.nodes, 0)->host, "");
    CU_ASSERT_TRUE(nodes_facts(here.nodes, 1)->cores > 0);
    start_rank_on(1, 0, "echo out; echo err >&2; pwd; exit 7", -1, -1);
    CU_ASSERT_TRUE(await_told(&told.ended[0]));
    CU_ASSERT_TRUE_FATAL(told.started[0]);
    CU_ASSERT_TRUE(WIFEXITED(told.status[0]) && WEXITSTATUS(told.status[0]) == 7);
    used = read_all(told.made[0].channel[LAUNCH_STDOUT], 0, NULL);
    CU_ASSERT_TRUE(used > 4 && memcmp(here.output, "out\n/", 5) == 0);
    used = read_all(told.made[0].channel[LAUNCH_STDERR], 0, NULL);
    CU_ASSERT_STRING_EQUAL(here.output, "err\n");
    close_rank(0);
    close_all();
}

TEST(program_that_is_not_there)
{
    static char *const argv[] = {"none", NULL};
    static const struct launch_program program = {
        .path = "/none/none", .argv = argv, .device_path = ""};
    struct cw_setup setup = {
        .process = {.rank = 1, .incarnation = 1}, .ranks = RANKS, .local_ranks = 1};

    open_ready(1, TIMEOUT_NS);
    CU_ASSERT_EQUAL(remote_start(here.remote, &program, &setup, 0, -1, -1, &here.err), CW_OK);
    CU_ASSERT_TRUE(await_told(&told.failed[1]));
    CU_ASSERT_EQUAL(told.start_why.code, CW_ENOTFOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(told.start_why.text, "host one: starting rank 1 (/none/none)"));
    close_all();
}

/* A process ends by a signal; PMI and reports come before that. */
TEST(what_a_rank_says)
{
    uint8_t bytes[64];

    open_ready(1, TIMEOUT_NS);
    start_rank(0, "exec bash -c 'echo cmd=init >&$PMI_FD; "
                  "printf \"\\004\\0\\0\\0\\0\\0\\0\\0\" >&$CAUSEWAY_FD; kill -9 $$'");
    CU_ASSERT_TRUE(await_told(&told.ended[0]));
    CU_ASSERT_TRUE(WIFSIGNALED(told.status[0]) && WTERMSIG(told.status[0]) == SIGKILL);
    CU_ASSERT_EQUAL(channel_read(told.made[0].channel[LAUNCH_PMI], bytes, sizeof(bytes)), 9);
    CU_ASSERT_EQUAL(channel_read(told.made[0].channel[LAUNCH_CONTROL], bytes, sizeof(bytes)), 8);
    close_rank(0);
    close_all();
}

static void on_wants(void *ctx)
{
    (void)ctx;
}

/* Its end is told behind what it has said, once that may pass. */
TEST(what_a_rank_says_waits_at_its_gate)
{
    struct gate gate;
    uint64_t token;
    size_t used = 0;

    gate_init(&gate, on_wants, NULL);
    hold_ranks(&gate);
    open_ready(1, TIMEOUT_NS);
    start_rank(0, "echo out; exit 7");
    CU_ASSERT_TRUE(await_told(&told.ends[0]));
    CU_ASSERT_FALSE(told.ended[0]);
    CU_ASSERT_TRUE(read_some(told.made[0].channel[LAUNCH_STDOUT], &used));
    CU_ASSERT_EQUAL(used, 0);
    CU_ASSERT_TRUE(gate_next(&gate, &token));
    remote_pass(here.remote);
    CU_ASSERT_FALSE(told.ended[0]);
    CU_ASSERT_TRUE(gate_covered(&gate, token));
    remote_pass(here.remote);
    CU_ASSERT_TRUE(told.ended[0]);
    CU_ASSERT_EQUAL(WEXITSTATUS(told.status[0]), 7);
    read_all(told.made[0].channel[LAUNCH_STDOUT], 0, NULL);
    CU_ASSERT_STRING_EQUAL(here.output, "out\n");
    close_rank(0);
    close_all();
    hold_ranks(NULL);
}

static int reports, requests, requests_too_soon;

/* Each but the first request follows a report. */
static void on_report(void *ctx, uint8_t *record, size_t size)
{
    uint8_t bytes[64];
    ssize_t n = channel_read(told.made[0].channel[LAUNCH_PMI], bytes, sizeof(bytes));

    (void)ctx;
    (void)record;
    (void)size;
    requests += n > 0 ? (int)n : 0;
    reports++;
    requests_too_soon += requests > reports;
}

/* The node stands still meanwhile: it finds all of it at once, and requests first. */
TEST(reports_come_before_the_requests_that_follow)
{
    static const char said[] = "exec bash -c 'until [ -e %s/go ]; do sleep 0.01; done; sleep 0.2; "
                               "for i in {1..20}; do echo >&$PMI_FD; "
                               "printf \"\\004\\0\\0\\0\\0\\0\\0\\0\" >&$CAUSEWAY_FD; done; "
                               "echo >&$PMI_FD; >%s/said; exec sleep 1000'";
    uint64_t until_ns = cw_clock_ns() + WAIT_NS;
    char script[512];

    reports = requests = requests_too_soon = 0;
    open_ready(1, TIMEOUT_NS);
    snprintf(script, sizeof(script), said, scratch_dir, scratch_dir);
    start_rank(0, script);
    channel_on_record(told.made[0].channel[LAUNCH_CONTROL], on_report, NULL);
    write_script(scratch_path("go"), "");
    kill(node_pid(0), SIGSTOP);
    while (access(scratch_path("said"), F_OK) < 0 && cw_clock_ns() < until_ns)
        usleep(5000);
    kill(node_pid(0), SIGCONT);
    CU_ASSERT_TRUE(await_count(&reports, 20));
    CU_ASSERT_EQUAL(requests_too_soon, 0);
    unlink(scratch_path("go"));
    unlink(scratch_path("said"));
    close_rank(0);
    close_all();
}

TEST(output_over_cuts)
{
    size_t used, at = 0;
    bool good = true;

    open_ready(1, TIMEOUT_NS);
    start_rank(0, "seq 200000 300000");
    used = read_all(told.made[0].channel[LAUNCH_STDOUT], 150000, cut_connection);
    CU_ASSERT_EQUAL(used, 100001 * 7);
    for (int i = 200000; i <= 300000 && good; i++, at += 7)
        good = atoi(here.output + at) == i && here.output[at + 6] == '\n';
    CU_ASSERT_TRUE(good);
    CU_ASSERT_TRUE(await_told(&told.ended[0]));
    CU_ASSERT_TRUE(told.suspensions >= 3);
    CU_ASSERT_EQUAL(told.host_losses, 0);
    close_rank(0);
    close_all();
}

static int feed_fd;
static size_t fed, fed_cuts;

/* Numbers, as the pipe takes them. */
static void feed(void)
{
    static char text[FEED_BYTES + 1];

    while (fed < FEED_BYTES * 100) {
        ssize_t n;

        for (int i = 0; i < 1000; i++)
            snprintf(text + 7 * i, 8, "%06d\n", (int)(fed / FEED_BYTES * 1000 % 100000) + i);
        n = write(feed_fd, text + fed % FEED_BYTES, FEED_BYTES - fed % FEED_BYTES);
        if (n <= 0)
            return;
        fed += (size_t)n;
        if (fed / 200000 > fed_cuts) {
            fed_cuts = fed / 200000;
            cut_connection();
        }
    }
    close(feed_fd);
    feed_fd = -1;
}

TEST(input_over_cuts)
{
    uint64_t until_ns;
    size_t used = 0;
    bool good = true;
    int fds[2];

    open_ready(1, TIMEOUT_NS);
    CU_ASSERT_EQUAL(pipe2(fds, O_CLOEXEC), 0);
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    feed_fd = fds[1];
    fed = fed_cuts = 0;
    start_rank_on(0, 0, "cat", fds[0], -1);
    close(fds[0]);
    CU_ASSERT_TRUE_FATAL(await_told(&told.started[0]));
    until_ns = cw_clock_ns() + 2 * WAIT_NS;
    while (read_some(told.made[0].channel[LAUNCH_STDOUT], &used) &&
           loop_look(here.loop) < until_ns) {
        if (feed_fd >= 0)
            feed();
        loop_turn(here.loop, loop_now_ns(here.loop) + 20000000);
        reap();
    }
    CU_ASSERT_EQUAL(used, 700000);
    for (size_t i = 0; i < used / 7 && good; i++)
        good = (size_t)atoi(here.output + 7 * i) == i;
    CU_ASSERT_TRUE(good);
    CU_ASSERT_TRUE(told.suspensions >= 3);
    close_rank(0);
    close_all();
}

/* Who closes its stdin is noticed at the other end. */
TEST(input_that_nobody_reads)
{
    uint64_t until_ns;
    int fds[2];
    bool broken = false;

    open_ready(1, TIMEOUT_NS);
    CU_ASSERT_EQUAL(pipe2(fds, O_CLOEXEC), 0);
    start_rank_on(0, 0, "exec <&-; sleep 1000", fds[0], -1);
    close(fds[0]);
    CU_ASSERT_TRUE(await_told(&told.started[0]));
    until_ns = cw_clock_ns() + WAIT_NS;
    while (!broken && loop_look(here.loop) < until_ns) {
        loop_turn(here.loop, loop_now_ns(here.loop) + 20000000);
        broken = write(fds[1], "", 1) < 0 && errno == EPIPE;
    }
    CU_ASSERT_TRUE(broken);
    close(fds[1]);
    remote_signal(here.remote, (struct cw_process){0}, SIGTERM);
    CU_ASSERT_TRUE(await_told(&told.ended[0]));
    CU_ASSERT_TRUE(WIFSIGNALED(told.status[0]) && WTERMSIG(told.status[0]) == SIGTERM);
    close_rank(0);
    close_all();
}

/* The restorer is a script that prints what it reads. */
TEST(image_is_a_stream)
{
    char script[160];
    int fds[2];
    pid_t writer;
    size_t used;

    open_ready(1, TIMEOUT_NS);
    snprintf(script, sizeof(script), "%s/causeway", scratch_dir);
    write_script(script, "#!/bin/bash\nexec cat <&$1\n");
    CU_ASSERT_EQUAL(pipe2(fds, O_CLOEXEC), 0);
    writer = fork();
    if (writer == 0) {
        dup2(fds[1], STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", "seq 200000 300000", NULL);
        _exit(1);
    }
    close(fds[1]);
    start_rank_on(0, 1, script, -1, fds[0]);
    close(fds[0]);
    CU_ASSERT_TRUE(await_told(&told.started[1]));
    used = read_all(told.made[1].channel[LAUNCH_STDOUT], 300000, cut_connection);
    CU_ASSERT_EQUAL(used, 100001 * 7);
    CU_ASSERT_EQUAL(atoi(here.output + 100000 * 7), 300000);
    CU_ASSERT_TRUE(await_told(&told.ended[1]));
    close_rank(1);
    close_all();
}

/* --- its relay --- */

static bool connects(const char *address)
{
    struct cw_address parsed;
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&parsed, address, &here.err), CW_OK);
    fd = cw_connect(&parsed, &here.err);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* It is started again at the same addresses. */
TEST(relay_of_the_host)
{
    static struct node_unit relay = {.flags = NODE_UNIT_RETURNS, .listen = "tcp:127.0.0.1:0"};
    char tcp[CW_ADDRESS_MAX];
    pid_t first;

    CU_ASSERT_TRUE(node_unit_option(&relay, "--log-safety", "file"));
    open_ready(1, TIMEOUT_NS);
    CU_ASSERT_EQUAL(far_units_start(here.units, 0, &relay, &here.err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&told.relay_listenings, 1));
    CU_ASSERT_TRUE(connects(told.relay_local) && connects(told.relay_tcp));
    strcpy(tcp, told.relay_tcp);
    first = told.relay_pid;
    far_units_kill(here.units, 0);
    CU_ASSERT_TRUE(await_count(&told.relay_listenings, 2));
    CU_ASSERT_EQUAL(told.relay_ends, 1);
    CU_ASSERT_NOT_EQUAL(told.relay_pid, first);
    CU_ASSERT_STRING_EQUAL(told.relay_tcp, tcp);
    CU_ASSERT_TRUE(connects(told.relay_tcp));
    close_all();
    CU_ASSERT_TRUE(is_gone(told.relay_pid));
}

/* Each says why: one that cannot be placed, one that ends at once, and one that may not return. */
TEST(unit_that_fails)
{
    static struct node_unit server = {.number = NODE_UNIT_SERVER,
                                      .kind = NODE_UNIT_IS_SERVER,
                                      .flags = NODE_UNIT_RETURNS | NODE_UNIT_KEPT,
                                      .dir = "/nowhere/at/all"};
    static struct node_unit bad = {.number = 3, .flags = NODE_UNIT_RETURNS};
    static struct node_unit relay;

    open_ready(1, TIMEOUT_NS);
    CU_ASSERT_EQUAL(far_units_start(here.units, 0, &server, &here.err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&told.unit_fails, 1));
    CU_ASSERT_EQUAL(told.unit_how, UNIT_NO_STATUS);
    CU_ASSERT_PTR_NOT_NULL(strstr(told.unit_why.text, "host one: --ckpt-dir /nowhere/at/all"));
    server.number = 3;
    server.flags = NODE_UNIT_RETURNS;
    strcpy(server.dir, "/proc/none");
    CU_ASSERT_EQUAL(far_units_start(here.units, 0, &server, &here.err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&told.unit_fails, 2));
    CU_ASSERT_EQUAL(told.unit_how, UNIT_NO_STATUS);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(told.unit_why.text, "checkpoint server cannot be started: --dir /pro"));
    bad.number = 4;
    CU_ASSERT_TRUE(node_unit_option(&bad, "--no-such-option", "x"));
    CU_ASSERT_EQUAL(far_units_start(here.units, 0, &bad, &here.err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&told.unit_fails, 3));
    CU_ASSERT_PTR_NOT_NULL(strstr(told.unit_why.text, "relay did not start"));
    CU_ASSERT_EQUAL(far_units_start(here.units, 0, &relay, &here.err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&told.relay_listenings, 1));
    far_units_kill(here.units, 0);
    CU_ASSERT_TRUE_FATAL(await_count(&told.unit_fails, 4));
    CU_ASSERT_TRUE(WIFSIGNALED(told.unit_how) && WTERMSIG(told.unit_how) == SIGKILL);
    close_all();
}

/* --- hosts without a job --- */

static int ask(struct ssh_session *session, const char *text)
{
    return ssh_session_ask(session, json_loads(text, 0, NULL), WAIT_NS, &here.err);
}

TEST(hosts_are_asked)
{
    static struct ssh_session session;
    const struct launch_command_config how = {
        .launcher = here.launcher, .host = "h", .causeway = here.causeway};

    open_site("echo welcome");
    CU_ASSERT_EQUAL_FATAL(ssh_session_begin(&session, &how, WAIT_NS, &here.err), CW_OK);
    CU_ASSERT_TRUE(greeting_is_ours(&session.facts));
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"time\"}"), CW_OK);
    CU_ASSERT(json_integer_value(json_object_get(session.answer, "ns")) > 0);
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"dance\"}"), CW_ESYS);
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"listen\",\"token\":\"1\"}"), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(here.err.text, "token"));
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"stop\",\"grid\":\"..\"}"), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(here.err.text, "\"grid\""));
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"check\",\"directory\":\"/\"}"), CW_OK);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(session.answer, "path")),
                           here.causeway);
    ssh_session_free(&session);
    ssh_session_free(&session);
    write_launcher("echo debug1: noise >&2; echo no way >&2; exit 3");
    CU_ASSERT_EQUAL(ssh_session_begin(&session, &how, WAIT_NS, &here.err), CW_ECLOSED);
    CU_ASSERT_STRING_EQUAL(ssh_session_why(&session, here.err.text, sizeof(here.err.text)),
                           "no way");
    ssh_session_free(&session);
    write_launcher("exec sleep 100");
    CU_ASSERT_EQUAL(ssh_session_begin(&session, &how, 50000000, &here.err), CW_ETIME);
    ssh_session_free(&session);
    remove_site();
}

/* Of two machines, one was booted long before ours and one long after; messages take 5 to 9 ns. */
TEST(clock_of_another_machine)
{
    static const uint64_t ahead[] = {1ull << 60, (uint64_t) - (1ll << 60)};

    for (int i = 0; i < 2; i++) {
        struct far_clock clock = {0};
        uint64_t now = 1000;

        CU_ASSERT_EQUAL(far_clock_here(&clock, now, now - 9 + ahead[i]), now);
        CU_ASSERT_EQUAL(far_clock_here(&clock, now + 100, now + 100 - 5 + ahead[i]), now + 100);
        CU_ASSERT_EQUAL(far_clock_here(&clock, now + 200, now + 200 - 9 + ahead[i]), now + 196);
    }
}
