/* Nodes on hosts that are all this one: in place of ssh a script that is told the host and runs
 * the command behind two pipes, so that it can be killed without the node. Ranks are scripts. */
#include "common/clock.h"
#include "common/transport.h"
#include "dispatcher/launch/far_units.h"
#include "dispatcher/launch/nodes.h"
#include "dispatcher/launch/remote.h"
#include "dispatcher/status/rundir.h"
#include "dispatcher/wire/channel.h"
#include "dispatcher/wire/ssh_session.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("nodes");

#define WAIT_NS 30000000000ull /* for anything that must come */
#define TIMEOUT_NS 4000000000ull
#define PERIOD_NS 100000000ull
#define OUTPUT_MAX (4u << 20)
#define RANKS 3
#define FEED_BYTES 7000u

static struct cw_err err;
static char launcher_path[128];
static char causeway[512];
static struct host hosts[2] = {{.name = "one"}, {.name = "two"}};
static struct host_list list = {hosts, 1};
static const uint8_t job_id[CW_ID_SIZE] = {1};
static struct loop *loop;
static struct nodes *nodes;
static struct far_units *units;
static struct remote *remote;

/* What was told. */
static bool ready;
static struct cw_err failure;
static int failures, host_losses, suspensions, resumptions;
static struct cw_err host_why;
static char line[256];
static struct remote_process made[RANKS];
static struct channels channels;
static bool started[RANKS], ended[RANKS], failed[RANKS], lost[RANKS];
static int status[RANKS];
static struct cw_err start_why;
static unsigned alives;

static void on_ready(void *ctx)
{
    (void)ctx;
    ready = true;
}

static void on_host_failed(void *ctx, uint32_t host, const struct cw_err *e)
{
    (void)ctx;
    (void)host;
    failure = *e;
    failures++;
}

static void on_host_lost(void *ctx, uint32_t host, const struct cw_err *e)
{
    (void)ctx;
    (void)host;
    host_why = *e;
    host_losses++;
}

static int host_returns;

static void on_back(void *ctx, uint32_t host)
{
    (void)ctx;
    (void)host;
    host_returns++;
}

static void on_suspended(void *ctx, uint32_t host, const struct cw_err *e)
{
    (void)ctx;
    (void)host;
    (void)e;
    suspensions++;
}

static void on_resumed(void *ctx, uint32_t host)
{
    (void)ctx;
    (void)host;
    resumptions++;
}

static void on_said(void *ctx, uint32_t host, const char *text)
{
    (void)ctx;
    (void)host;
    snprintf(line, sizeof(line), "%s", text);
}

static pid_t relay_pid;
static int relay_ends, relay_listenings;
static int unit_how, unit_fails;
static struct cw_err unit_why;
static char relay_local[CW_ADDRESS_MAX], relay_tcp[CW_ADDRESS_MAX];

static void on_unit_started(void *ctx, uint32_t number, pid_t pid, const char *place)
{
    (void)ctx;
    (void)number;
    (void)place;
    relay_pid = pid;
}

static void on_unit_listens(void *ctx, uint32_t number, const char *local, const char *tcp,
                            bool in_memory)
{
    (void)ctx;
    (void)number;
    CU_ASSERT_FALSE(in_memory);
    snprintf(relay_local, sizeof(relay_local), "%s", local);
    snprintf(relay_tcp, sizeof(relay_tcp), "%s", tcp);
    relay_listenings++;
}

static void on_unit_ended(void *ctx, uint32_t number, int how, const char *why)
{
    (void)ctx;
    (void)number;
    CU_ASSERT_STRING_EQUAL(why, "");
    CU_ASSERT_TRUE(WIFSIGNALED(how));
    relay_ends++;
}

static void on_unit_failed(void *ctx, uint32_t number, int how, const struct cw_err *e)
{
    (void)ctx;
    (void)number;
    unit_how = how;
    unit_why = *e;
    unit_fails++;
}

static void on_unit_lost(void *ctx, uint32_t number, const struct cw_err *e)
{
    (void)ctx;
    (void)number;
    (void)e;
}

static void on_silent(void *ctx, uint32_t host, bool silent)
{
    (void)ctx;
    (void)host;
    alives += silent;
}

static const struct nodes_events nodes_events = {.ready = on_ready,
                                                 .failed = on_host_failed,
                                                 .lost = on_host_lost,
                                                 .back = on_back,
                                                 .suspended = on_suspended,
                                                 .resumed = on_resumed,
                                                 .silent = on_silent,
                                                 .said = on_said};

static const struct units_events units_events = {on_unit_started, on_unit_listens, on_unit_ended,
                                                 on_unit_failed, on_unit_lost};

static void on_started(void *ctx, const struct remote_process *process)
{
    (void)ctx;
    made[process->id.rank] = *process;
    started[process->id.rank] = true;
}

static void on_failed(void *ctx, struct cw_process process, const struct cw_err *e)
{
    (void)ctx;
    start_why = *e;
    failed[process.rank] = true;
}

static void on_ended(void *ctx, struct cw_process process, int how)
{
    (void)ctx;
    status[process.rank] = how;
    ended[process.rank] = true;
}

static void on_life(void *ctx, struct cw_process process, enum life_what what)
{
    (void)ctx;
    if (what == LIFE_DEAD)
        lost[process.rank] = true;
    else
        alives++;
}

static void on_superseded_ended(void *ctx, struct cw_process process)
{
    (void)ctx;
    (void)process;
    alives++;
}

static const struct remote_events remote_events = {on_started, on_failed, on_life, on_ended,
                                                   on_superseded_ended};

/* --- the site --- */

static void write_script(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    fchmod(fd, 0755);
    close(fd);
}

/* It says which process it is: what it has started is in its session. */
static void write_launcher(const char *before)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "#!/bin/sh\n"
             "echo $$ >%s/launcher.new; mv %s/launcher.new %s/launcher\n"
             "%s\n"
             "shift\n"
             "cat | \"$@\" | cat\n",
             scratch_dir, scratch_dir, scratch_dir, before);
    write_script(launcher_path, text);
}

static void reap(void)
{
    int how;
    pid_t pid;

    while ((pid = waitpid(-1, &how, WNOHANG)) > 0)
        if (nodes)
            nodes_child_ended(nodes, pid, how);
}

static bool await(const bool *what)
{
    uint64_t until_ns = cw_clock_ns() + WAIT_NS;

    while (!*what && loop_look(loop) < until_ns) {
        loop_turn(loop, loop_now_ns(loop) + 20000000);
        reap();
    }
    return *what;
}

static bool await_count(const int *what, int count)
{
    uint64_t until_ns = cw_clock_ns() + WAIT_NS;

    while (*what < count && loop_look(loop) < until_ns) {
        loop_turn(loop, loop_now_ns(loop) + 20000000);
        reap();
    }
    return *what >= count;
}

static void open_site(const char *before)
{
    ssize_t n = readlink("/proc/self/exe", causeway, sizeof(causeway) - 16);

    causeway[n > 0 ? n : 0] = '\0';
    strcpy(strrchr(causeway, '/'), "/causeway");
    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    snprintf(launcher_path, sizeof(launcher_path), "%s", scratch_path("launch"));
    write_launcher(before);
    signal(SIGPIPE, SIG_IGN);
    ready = false;
    failures = host_losses = host_returns = suspensions = resumptions = 0;
    alives = 0;
    memset(started, 0, sizeof(started));
    memset(ended, 0, sizeof(ended));
    memset(failed, 0, sizeof(failed));
    memset(lost, 0, sizeof(lost));
    line[0] = '\0';
}

/* No host: the node of this machine alone. */
static void open_nodes(uint32_t count, uint64_t timeout_ns)
{
    struct nodes_config config = {.hosts = &list,
                                  .job_id = job_id,
                                  .ranks = RANKS,
                                  .launcher = launcher_path,
                                  .causeway = causeway,
                                  .own = count ? NULL : causeway,
                                  .kept_fds = {-1, -1, -1},
                                  .timeout_ns = timeout_ns,
                                  .alive_period_ns = PERIOD_NS,
                                  .events = &nodes_events};
    struct remote_config of_remote = {
        .ranks = RANKS, .channels = &channels, .events = &remote_events};

    list.count = count;
    loop = loop_new(&err);
    config.loop = of_remote.loop = loop;
    channels_init(&channels, loop);
    nodes = of_remote.nodes = nodes_new(&config, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(nodes);
    units = far_units_new(nodes, &units_events, NULL, &err);
    remote = remote_new(&of_remote, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(remote);
    nodes_open(nodes);
}

static void open_ready(uint32_t count, uint64_t timeout_ns)
{
    open_site("");
    open_nodes(count, timeout_ns);
    if (!await(&ready))
        fprintf(stderr, "# no node: %s\n", failure.text);
    CU_ASSERT_TRUE_FATAL(ready);
}

/* Nodes have removed theirs. */
static void remove_site(void)
{
    static const char *const names[] = {"launch", "launch.tried", "launcher", "causeway", "gone"};
    int left = -1;

    for (int i = 0; i < 2000 && left < 0; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++)
            unlink(scratch_path(names[n]));
        left = scratch_end();
        if (left < 0)
            usleep(5000);
    }
    CU_ASSERT_EQUAL(left, 0);
}

static void close_all(void)
{
    remote_close(remote);
    nodes_end(nodes);
    nodes_free(nodes);
    far_units_free(units);
    nodes = NULL;
    channels_end(&channels);
    loop_free(loop);
    remove_site();
}

/* --- ranks --- */

static void start_on(uint32_t host, uint32_t rank, const char *script, int stdin_fd, int image_fd)
{
    static const char *const env[] = {"LD_PRELOAD="};
    static char *argv[] = {"sh", "-c", NULL, NULL};
    static struct launch_program programs[RANKS];
    static char *argvs[RANKS][4];
    static char restorer[RANKS][160];
    struct cw_setup setup = {.process = {.rank = rank, .incarnation = 1},
                             .ranks = RANKS,
                             .local_rank = rank,
                             .local_ranks = RANKS,
                             .address = "here"};

    memcpy(argvs[rank], argv, sizeof(argv));
    argvs[rank][2] = (char *)script;
    snprintf(restorer[rank], sizeof(restorer[rank]), "%s", image_fd >= 0 ? script : "/none");
    programs[rank] = (struct launch_program){.path = "/bin/sh",
                                             .argv = argvs[rank],
                                             .env = env,
                                             .env_count = 1,
                                             .device_path = "",
                                             .restore_path = restorer[rank]};
    CU_ASSERT_EQUAL_FATAL(
        remote_start(remote, &programs[rank], &setup, host, stdin_fd, image_fd, &err), CW_OK);
}

static void start(uint32_t rank, const char *script)
{
    start_on(0, rank, script, -1, -1);
    CU_ASSERT_TRUE_FATAL(await(&started[rank]));
}

static void close_rank(uint32_t rank)
{
    for (int i = 0; i < LAUNCH_STREAMS; i++)
        channel_close(made[rank].channel[i]);
}

static char output[OUTPUT_MAX];

/* What is there now. Returns false at its end. */
static bool read_some(struct channel *from, size_t *used)
{
    ssize_t n;

    while ((n = channel_read(from, output + *used, OUTPUT_MAX - 1 - *used)) > 0)
        *used += (size_t)n;
    output[*used] = '\0';
    return n < 0;
}

/* Reads it to its end; every so many bytes the launcher of the host is killed. Returns its size. */
static size_t read_all(struct channel *from, size_t cut_every, void (*cut)(void))
{
    uint64_t until_ns = cw_clock_ns() + 2 * WAIT_NS;
    size_t next = cut_every, used = 0;

    while (read_some(from, &used) && loop_look(loop) < until_ns) {
        if (cut_every && used >= next) {
            next += cut_every;
            cut();
        }
        loop_turn(loop, loop_now_ns(loop) + 20000000);
        reap();
    }
    return used;
}

static pid_t pid_in(const char *name)
{
    char path[160];
    int pid = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", scratch_dir, name);
    f = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(fscanf(f, "%d", &pid), 1);
    fclose(f);
    return pid;
}

/* As when an ssh connection is reset. */
static void cut_connection(void)
{
    kill(-pid_in("launcher"), SIGKILL);
}

static bool is_gone(pid_t pid)
{
    for (int ms = 0; ms < 20000; ms += 20) {
        reap();
        if (kill(pid, 0) < 0)
            return true;
        usleep(20000);
    }
    return false;
}

static pid_t node_pid(uint32_t host)
{
    return (pid_t)nodes_facts(nodes, host)->pid;
}

/* --- tests --- */

TEST(rank_is_started_and_ends)
{
    size_t used = 0;

    open_ready(2, TIMEOUT_NS);
    CU_ASSERT_STRING_NOT_EQUAL(nodes_facts(nodes, 0)->host, "");
    CU_ASSERT_TRUE(nodes_facts(nodes, 1)->cores > 0);
    start_on(1, 0, "echo out; echo err >&2; pwd; exit 7", -1, -1);
    CU_ASSERT_TRUE(await(&ended[0]));
    CU_ASSERT_TRUE_FATAL(started[0]);
    CU_ASSERT_TRUE(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 7);
    used = read_all(made[0].channel[LAUNCH_STDOUT], 0, NULL);
    CU_ASSERT_TRUE(used > 4 && memcmp(output, "out\n/", 5) == 0);
    used = read_all(made[0].channel[LAUNCH_STDERR], 0, NULL);
    CU_ASSERT_STRING_EQUAL(output, "err\n");
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
    CU_ASSERT_EQUAL(remote_start(remote, &program, &setup, 0, -1, -1, &err), CW_OK);
    CU_ASSERT_TRUE(await(&failed[1]));
    CU_ASSERT_EQUAL(start_why.code, CW_ENOTFOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(start_why.text, "host one: starting rank 1 (/none/none)"));
    close_all();
}

/* A process ends by a signal; PMI and reports come before that. */
TEST(what_a_rank_says)
{
    uint8_t bytes[64];

    open_ready(1, TIMEOUT_NS);
    start(0, "exec bash -c 'echo cmd=init >&$PMI_FD; "
             "printf \"\\004\\0\\0\\0\\0\\0\\0\\0\" >&$CAUSEWAY_FD; kill -9 $$'");
    CU_ASSERT_TRUE(await(&ended[0]));
    CU_ASSERT_TRUE(WIFSIGNALED(status[0]) && WTERMSIG(status[0]) == SIGKILL);
    CU_ASSERT_EQUAL(channel_read(made[0].channel[LAUNCH_PMI], bytes, sizeof(bytes)), 9);
    CU_ASSERT_EQUAL(channel_read(made[0].channel[LAUNCH_CONTROL], bytes, sizeof(bytes)), 8);
    close_rank(0);
    close_all();
}

static int reports, requests, requests_too_soon;

/* Each but the first request follows a report. */
static void on_report(void *ctx, uint8_t *record, size_t size)
{
    uint8_t bytes[64];
    ssize_t n = channel_read(made[0].channel[LAUNCH_PMI], bytes, sizeof(bytes));

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
    start(0, script);
    channel_on_record(made[0].channel[LAUNCH_CONTROL], on_report, NULL);
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
    start(0, "seq 200000 300000");
    used = read_all(made[0].channel[LAUNCH_STDOUT], 150000, cut_connection);
    CU_ASSERT_EQUAL(used, 100001 * 7);
    for (int i = 200000; i <= 300000 && good; i++, at += 7)
        good = atoi(output + at) == i && output[at + 6] == '\n';
    CU_ASSERT_TRUE(good);
    CU_ASSERT_TRUE(await(&ended[0]));
    CU_ASSERT_TRUE(suspensions >= 3);
    CU_ASSERT_EQUAL(host_losses, 0);
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
    start_on(0, 0, "cat", fds[0], -1);
    close(fds[0]);
    CU_ASSERT_TRUE_FATAL(await(&started[0]));
    until_ns = cw_clock_ns() + 2 * WAIT_NS;
    while (read_some(made[0].channel[LAUNCH_STDOUT], &used) && loop_look(loop) < until_ns) {
        if (feed_fd >= 0)
            feed();
        loop_turn(loop, loop_now_ns(loop) + 20000000);
        reap();
    }
    CU_ASSERT_EQUAL(used, 700000);
    for (size_t i = 0; i < used / 7 && good; i++)
        good = (size_t)atoi(output + 7 * i) == i;
    CU_ASSERT_TRUE(good);
    CU_ASSERT_TRUE(suspensions >= 3);
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
    start_on(0, 0, "exec <&-; sleep 1000", fds[0], -1);
    close(fds[0]);
    CU_ASSERT_TRUE(await(&started[0]));
    until_ns = cw_clock_ns() + WAIT_NS;
    while (!broken && loop_look(loop) < until_ns) {
        loop_turn(loop, loop_now_ns(loop) + 20000000);
        broken = write(fds[1], "", 1) < 0 && errno == EPIPE;
    }
    CU_ASSERT_TRUE(broken);
    close(fds[1]);
    remote_signal(remote, (struct cw_process){0}, SIGTERM);
    CU_ASSERT_TRUE(await(&ended[0]));
    CU_ASSERT_TRUE(WIFSIGNALED(status[0]) && WTERMSIG(status[0]) == SIGTERM);
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
    start_on(0, 1, script, -1, fds[0]);
    close(fds[0]);
    CU_ASSERT_TRUE(await(&started[1]));
    used = read_all(made[1].channel[LAUNCH_STDOUT], 300000, cut_connection);
    CU_ASSERT_EQUAL(used, 100001 * 7);
    CU_ASSERT_EQUAL(atoi(output + 100000 * 7), 300000);
    CU_ASSERT_TRUE(await(&ended[1]));
    close_rank(1);
    close_all();
}

/* --- its relay --- */

static bool connects(const char *address)
{
    struct cw_address parsed;
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&parsed, address, &err), CW_OK);
    fd = cw_connect(&parsed, &err);
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

    relay_ends = relay_listenings = 0;
    CU_ASSERT_TRUE(node_unit_option(&relay, "--log-safety", "file"));
    open_ready(1, TIMEOUT_NS);
    CU_ASSERT_EQUAL(far_units_start(units, 0, &relay, &err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&relay_listenings, 1));
    CU_ASSERT_TRUE(connects(relay_local) && connects(relay_tcp));
    strcpy(tcp, relay_tcp);
    first = relay_pid;
    far_units_kill(units, 0);
    CU_ASSERT_TRUE(await_count(&relay_listenings, 2));
    CU_ASSERT_EQUAL(relay_ends, 1);
    CU_ASSERT_NOT_EQUAL(relay_pid, first);
    CU_ASSERT_STRING_EQUAL(relay_tcp, tcp);
    CU_ASSERT_TRUE(connects(relay_tcp));
    close_all();
    CU_ASSERT_TRUE(is_gone(relay_pid));
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

    relay_listenings = unit_fails = 0;
    open_ready(1, TIMEOUT_NS);
    CU_ASSERT_EQUAL(far_units_start(units, 0, &server, &err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&unit_fails, 1));
    CU_ASSERT_EQUAL(unit_how, UNIT_NO_STATUS);
    CU_ASSERT_PTR_NOT_NULL(strstr(unit_why.text, "host one: --ckpt-dir /nowhere/at/all"));
    server.number = 3;
    server.flags = NODE_UNIT_RETURNS;
    strcpy(server.dir, "/proc/none");
    CU_ASSERT_EQUAL(far_units_start(units, 0, &server, &err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&unit_fails, 2));
    CU_ASSERT_EQUAL(unit_how, UNIT_NO_STATUS);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(unit_why.text, "checkpoint server cannot be started: --dir /pro"));
    bad.number = 4;
    CU_ASSERT_TRUE(node_unit_option(&bad, "--no-such-option", "x"));
    CU_ASSERT_EQUAL(far_units_start(units, 0, &bad, &err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&unit_fails, 3));
    CU_ASSERT_PTR_NOT_NULL(strstr(unit_why.text, "relay did not start"));
    CU_ASSERT_EQUAL(far_units_start(units, 0, &relay, &err), CW_OK);
    CU_ASSERT_TRUE_FATAL(await_count(&relay_listenings, 1));
    far_units_kill(units, 0);
    CU_ASSERT_TRUE_FATAL(await_count(&unit_fails, 4));
    CU_ASSERT_TRUE(WIFSIGNALED(unit_how) && WTERMSIG(unit_how) == SIGKILL);
    close_all();
}

/* --- losses --- */

TEST(node_is_killed)
{
    uint64_t from_ns;
    pid_t rank;

    open_ready(2, TIMEOUT_NS);
    start(0, "exec sleep 1000");
    rank = made[0].pid;
    CU_ASSERT_EQUAL(kill(rank, 0), 0);
    from_ns = cw_clock_ns();
    kill(node_pid(0), SIGKILL);
    CU_ASSERT_TRUE(await_count(&host_losses, 1));
    /* at once: whoever asks for the node is told that there is none */
    CU_ASSERT_TRUE(cw_clock_ns() - from_ns < TIMEOUT_NS);
    CU_ASSERT_TRUE(lost[0]);
    CU_ASSERT_PTR_NOT_NULL(strstr(host_why.text, "host one"));
    CU_ASSERT_TRUE(is_gone(rank));
    remote_detach(remote, (struct cw_process){0}, true);
    close_rank(0);
    started[0] = false;
    start_on(1, 0, "exit 0", -1, -1);
    CU_ASSERT_TRUE(await(&ended[0]));
    close_rank(0);
    close_all();
}

/* The new node knows neither the program nor the environment. */
TEST(lost_host_returns)
{
    open_ready(1, 1000000000ull);
    start(0, "exec sleep 1000");
    kill(node_pid(0), SIGKILL);
    CU_ASSERT_TRUE(await_count(&host_losses, 1));
    CU_ASSERT_FALSE(nodes_is_there(nodes, 0));
    remote_detach(remote, (struct cw_process){0}, true);
    close_rank(0);
    CU_ASSERT_TRUE(await_count(&host_returns, 1));
    CU_ASSERT_TRUE(nodes_is_there(nodes, 0));
    started[0] = false;
    start(0, "exit 3");
    CU_ASSERT_TRUE(await(&ended[0]));
    CU_ASSERT_EQUAL(WEXITSTATUS(status[0]), 3);
    CU_ASSERT_EQUAL(failures, 0);
    close_rank(0);
    /* again, with a try in vain between */
    kill(node_pid(0), SIGKILL);
    CU_ASSERT_TRUE(await_count(&host_losses, 2));
    write_launcher("[ -e $0.tried ] || { >$0.tried; exit 255; }");
    CU_ASSERT_TRUE(await_count(&host_returns, 2));
    CU_ASSERT_EQUAL(failures, 0);
    close_all();
}

TEST(node_stands_still_for_too_long)
{
    pid_t node, rank;

    open_ready(1, 1000000000ull);
    start(0, "exec sleep 1000");
    node = node_pid(0);
    rank = made[0].pid;
    kill(node, SIGSTOP);
    CU_ASSERT_TRUE(await_count(&host_losses, 1));
    CU_ASSERT_TRUE(lost[0]);
    CU_ASSERT_EQUAL(kill(rank, 0), 0);
    /* it comes back, and is fenced */
    kill(node, SIGCONT);
    CU_ASSERT_TRUE(is_gone(rank));
    CU_ASSERT_TRUE(is_gone(node));
    remote_detach(remote, (struct cw_process){0}, true);
    close_rank(0);
    close_all();
}

TEST(node_stands_still_for_a_while)
{
    uint64_t until_ns;
    pid_t node;

    open_ready(1, TIMEOUT_NS);
    start(0, "echo before; sleep 4; echo after");
    node = node_pid(0);
    kill(node, SIGSTOP);
    alives = 0;
    until_ns = loop_look(loop) + TIMEOUT_NS * 3 / 4;
    while (loop_now_ns(loop) < until_ns)
        loop_turn(loop, until_ns);
    CU_ASSERT_TRUE(alives > 0);
    kill(node, SIGCONT);
    CU_ASSERT_TRUE(await(&ended[0]));
    read_all(made[0].channel[LAUNCH_STDOUT], 0, NULL);
    CU_ASSERT_STRING_EQUAL(output, "before\nafter\n");
    CU_ASSERT_EQUAL(host_losses, 0);
    close_rank(0);
    close_all();
}

/* It and what it started are here to be ended. */
TEST(own_node_stands_still)
{
    open_ready(0, 1000000000ull);
    start(0, "exec sleep 1000");
    kill(node_pid(0), SIGSTOP);
    CU_ASSERT_TRUE(await_count(&host_losses, 1));
    CU_ASSERT_TRUE(lost[0]);
    CU_ASSERT_PTR_NOT_NULL(strstr(host_why.text, "the node of this machine (causeway node, pid "));
    CU_ASSERT_PTR_NOT_NULL(strstr(host_why.text, " s (is it stopped?)"));
    CU_ASSERT_TRUE(is_gone(made[0].pid));
    rundir_remove_left(nodes_facts(nodes, 0)->dir);
    remote_detach(remote, (struct cw_process){0}, true);
    close_rank(0);
    close_all();
}

/* What its own node said in the meantime was not heard; that of another host has ended. */
TEST(dispatcher_stands_still)
{
    open_ready(0, 1000000000ull);
    start(0, "read x; exit 3");
    kill(node_pid(0), SIGSTOP);
    usleep(2000000);
    kill(node_pid(0), SIGCONT);
    CU_ASSERT_TRUE(await(&ended[0]));
    CU_ASSERT_EQUAL(host_losses, 0);
    close_rank(0);
    close_all();
}

TEST(node_is_told_to_end)
{
    pid_t rank;

    open_ready(1, TIMEOUT_NS);
    start(0, "exec sleep 1000");
    rank = made[0].pid;
    kill(node_pid(0), SIGTERM);
    CU_ASSERT_TRUE(await_count(&host_losses, 1));
    CU_ASSERT_TRUE(is_gone(rank));
    remote_detach(remote, (struct cw_process){0}, true);
    close_rank(0);
    close_all();
}

/* All that the node has started ends with it, without a word of the dispatcher. */
TEST(dispatcher_is_gone)
{
    pid_t node, rank;

    open_ready(1, 1000000000ull);
    start(0, "sleep 1000 & exec sleep 1000");
    node = node_pid(0);
    rank = made[0].pid;
    close_rank(0);
    nodes_free(nodes);
    far_units_free(units);
    nodes = NULL;
    channels_end(&channels);
    loop_free(loop);
    CU_ASSERT_TRUE(is_gone(node));
    CU_ASSERT_TRUE(is_gone(rank));
    CU_ASSERT_TRUE(is_gone(-rank));
    remove_site();
}

/* --- starts that fail --- */

static void expect_failure(const char *text)
{
    CU_ASSERT_TRUE(await_count(&failures, 1));
    CU_ASSERT_FALSE(ready);
    if (!strstr(failure.text, text))
        fprintf(stderr, "# '%s' is not in: %s\n", text, failure.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, text));
    CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, "host one"));
    close_all();
}

TEST(launcher_fails)
{
    open_site("echo 'Permission denied (publickey).' >&2; exit 255");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("Permission denied (publickey).");
    CU_ASSERT_STRING_EQUAL(line, "Permission denied (publickey).");
    open_site("exit 3");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("ended with code 3");
    open_site("");
    unlink(launcher_path);
    open_nodes(1, TIMEOUT_NS);
    expect_failure("No such file");
}

/* As MaxStartups of sshd has it: the third connection is taken. */
TEST(connections_are_dropped)
{
    open_site("n=$(cat $0.n 2>/dev/null || echo 0); echo $((n + 1)) >$0.n\n"
              "[ $n -lt 2 ] || rm $0.n\n[ $n -ge 2 ] || { echo 'kex_exchange_identification: "
              "Connection closed by remote "
              "host' >&2; exit 255; }");
    open_nodes(1, TIMEOUT_NS);
    CU_ASSERT_TRUE(await(&ready));
    close_all();
}

TEST(shell_that_prints)
{
    open_site("echo Welcome");
    open_nodes(1, TIMEOUT_NS);
    CU_ASSERT_TRUE(await(&ready));
    close_all();
    open_site("echo 'This account is closed.'; exit 1");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("This account is closed.");
    open_site("yes no");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("none of them of Causeway");
}

TEST(another_version)
{
    open_site("printf "
              "'\\nCAUSEWAY-NODE:2f1c\\n\\011\\0\\0\\0\\003\\0\\0\\0\\143\\0\\0\\0\\003\\0009.9'; "
              "sleep 5; exit 0");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("it has Causeway 9.9 (nodes' protocol 99)");
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

/* --- hosts without a job --- */

static int ask(struct ssh_session *session, const char *text)
{
    return ssh_session_ask(session, json_loads(text, 0, NULL), WAIT_NS, &err);
}

TEST(hosts_are_asked)
{
    static struct ssh_session session;
    const struct launch_command_config how = {
        .launcher = launcher_path, .host = "h", .causeway = causeway};

    open_site("echo welcome");
    CU_ASSERT_EQUAL_FATAL(ssh_session_begin(&session, &how, WAIT_NS, &err), CW_OK);
    CU_ASSERT_TRUE(ssh_session_is_ours(&session));
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"time\"}"), CW_OK);
    CU_ASSERT(json_integer_value(json_object_get(session.answer, "ns")) > 0);
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"dance\"}"), CW_ESYS);
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"listen\",\"token\":\"1\"}"), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "token"));
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"stop\",\"grid\":\"..\"}"), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "\"grid\""));
    CU_ASSERT_EQUAL(ask(&session, "{\"op\":\"check\",\"directory\":\"/\"}"), CW_OK);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(session.answer, "path")), causeway);
    ssh_session_free(&session);
    ssh_session_free(&session);
    write_launcher("echo debug1: noise >&2; echo no way >&2; exit 3");
    CU_ASSERT_EQUAL(ssh_session_begin(&session, &how, WAIT_NS, &err), CW_ECLOSED);
    CU_ASSERT_STRING_EQUAL(ssh_session_why(&session, err.text, sizeof(err.text)), "no way");
    ssh_session_free(&session);
    write_launcher("exec sleep 100");
    CU_ASSERT_EQUAL(ssh_session_begin(&session, &how, 50000000, &err), CW_ETIME);
    ssh_session_free(&session);
    remove_site();
}
