/* Nodes that say what they may not say now: this process is the node, at the other end of two
 * FIFOs. Each is given up, with an error that says why, and nothing is told of it but that. */
#include "common/clock.h"
#include "dispatcher/launch/far_units.h"
#include "dispatcher/launch/nodes.h"
#include "dispatcher/launch/remote.h"
#include "dispatcher/node/facts.h"
#include "dispatcher/wire/channel.h"
#include "dispatcher/wire/node_states.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("nodes that lie");

#define WAIT_NS 30000000000ull
#define RANKS 3

struct lie {
    uint32_t type, of, value;
    const char *text;
};

static struct cw_err err;
static char dir[64], path[160];
static int up_fd = -1, down_fd = -1; /* to the dispatcher; from it */
static struct mux *node;             /* our end */
static struct loop *loop;
static struct nodes *nodes;
static struct far_units *units;
static struct remote *remote;
static bool ready;
static int losses, alives, ends, fails, starts, unit_news;
static struct cw_err why;

static void on_ready(void *ctx)
{
    (void)ctx;
    ready = true;
}

static void on_host(void *ctx, uint32_t host, const struct cw_err *e)
{
    (void)ctx;
    (void)host;
    why = *e;
    losses++;
}

static void on_suspended(void *ctx, uint32_t host, const struct cw_err *e)
{
    (void)ctx;
    (void)host;
    fprintf(stderr, "# suspended: %s\n", e->text);
}

static void on_back(void *ctx, uint32_t host)
{
    (void)ctx;
    (void)host;
}

static void on_said(void *ctx, uint32_t host, const char *line)
{
    (void)ctx;
    (void)host;
    (void)line;
}

static void on_silent(void *ctx, uint32_t host, bool silent)
{
    (void)ctx;
    (void)host;
    (void)silent;
}

static const struct nodes_events nodes_events = {.ready = on_ready,
                                                 .failed = on_host,
                                                 .lost = on_host,
                                                 .back = on_back,
                                                 .suspended = on_suspended,
                                                 .resumed = on_back,
                                                 .silent = on_silent,
                                                 .said = on_said};

static struct channels channels;

static void on_started(void *ctx, const struct remote_process *p)
{
    (void)ctx;
    for (int i = 0; i < LAUNCH_STREAMS; i++)
        channel_close(p->channel[i]);
    starts++;
}

static void on_failed(void *ctx, struct cw_process process, const struct cw_err *e)
{
    (void)ctx;
    (void)e;
    fails += process.rank == 0; /* the other one is started nowhere when the host is lost */
}

static void on_life(void *ctx, struct cw_process process, enum life_what what)
{
    (void)ctx;
    CU_ASSERT_TRUE(process.rank < 2);
    CU_ASSERT_EQUAL(process.incarnation, 1);
    alives += what == LIFE_BACK;
}

static void on_superseded_ended(void *ctx, struct cw_process process)
{
    on_life(ctx, process, LIFE_BACK);
}

static void on_ended(void *ctx, struct cw_process process, int status)
{
    (void)ctx;
    (void)process;
    (void)status;
    ends++;
}

static const struct remote_events remote_events = {on_started, on_failed, on_life, on_ended,
                                                   on_superseded_ended};

static void on_unit_started(void *ctx, uint32_t number, pid_t pid, const char *place)
{
    (void)ctx;
    (void)pid;
    (void)place;
    CU_ASSERT_EQUAL(number, 2);
    unit_news++;
}

static void on_unit_listens(void *ctx, uint32_t number, const char *local, const char *tcp,
                            bool in_memory)
{
    CU_ASSERT_STRING_EQUAL(local, "unix:/a");
    CU_ASSERT_STRING_EQUAL(tcp, "tcp:b:1");
    CU_ASSERT_TRUE(in_memory);
    on_unit_started(ctx, number, 0, "");
}

static void on_unit_ended(void *ctx, uint32_t number, int status, const char *text)
{
    (void)status;
    on_unit_started(ctx, number, 0, text);
}

static void on_unit_failed(void *ctx, uint32_t number, int status, const struct cw_err *e)
{
    (void)status;
    on_unit_started(ctx, number, 0, e->text);
}

static void on_unit_lost(void *ctx, uint32_t number, const struct cw_err *e)
{
    (void)ctx;
    (void)number;
    CU_ASSERT_PTR_NOT_NULL(strstr(e->text, "host one"));
}

static const struct units_events units_events = {on_unit_started, on_unit_listens, on_unit_ended,
                                                 on_unit_failed, on_unit_lost};

/* --- the node --- */

static int on_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size, struct cw_err *e)
{
    (void)ctx;
    (void)type;
    (void)body;
    (void)size;
    (void)e;
    return CW_OK;
}

static void on_output(void *ctx)
{
    (void)ctx;
}

static const struct mux_ops mux_ops = {on_frame, on_output};

static void flush(void)
{
    const uint8_t *bytes;
    size_t size = mux_output(node, &bytes);

    CU_ASSERT_EQUAL(write(up_fd, bytes, size), (ssize_t)size);
    mux_sent(node, size);
}

static void say(const struct lie *lie)
{
    struct node_event event = {.of = lie->of, .value = lie->value};
    uint8_t body[NODE_EVENT_MAX];

    if (lie->text)
        strcpy(event.text, lie->text);
    CU_ASSERT_EQUAL(mux_send(node, lie->type, body, node_event_put(body, &event), &err), CW_OK);
    flush();
}

static void greet(void)
{
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_hello hello;
    size_t size;

    facts_get(&hello, dir);
    size = greeting_put_hello(bytes, &hello);
    CU_ASSERT_EQUAL(write(up_fd, GREETING_MAGIC, strlen(GREETING_MAGIC)), strlen(GREETING_MAGIC));
    CU_ASSERT_EQUAL(write(up_fd, bytes, size), (ssize_t)size);
    node = mux_new(&mux_ops, NULL, &err);
    CU_ASSERT_EQUAL(mux_connect(node, 0, &err), CW_OK);
}

/* --- the site --- */

static int make_fifo(const char *name)
{
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

static void make_site(void)
{
    char text[256];
    int fd;

    strcpy(dir, "/tmp/test-node-lies-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    up_fd = make_fifo("up");
    down_fd = make_fifo("down");
    snprintf(text, sizeof(text), "#!/bin/sh\ncat <%s/up &\nexec cat >%s/down\n", dir, dir);
    snprintf(path, sizeof(path), "%s/launch", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void remove_site(void)
{
    static const char *const names[] = {"up", "down", "launch"};

    close(up_fd);
    close(down_fd);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static void turn_until(const int *what, int count)
{
    uint64_t until_ns = cw_clock_ns() + WAIT_NS;
    uint8_t bytes[4096];
    int how;
    pid_t pid;

    while (*what < count && loop_look(loop) < until_ns) {
        loop_turn(loop, loop_now_ns(loop) + 20000000);
        while (read(down_fd, bytes, sizeof(bytes)) > 0)
            ;
        while ((pid = waitpid(-1, &how, WNOHANG)) > 0)
            nodes_child_ended(nodes, pid, how);
    }
    CU_ASSERT_TRUE(*what >= count);
}

static void open_all(void)
{
    static const uint8_t job_id[CW_ID_SIZE] = {1};
    static struct host hosts[1] = {{.name = "one"}};
    static struct host_list list = {hosts, 1};
    struct nodes_config config = {.hosts = &list,
                                  .job_id = job_id,
                                  .ranks = RANKS,
                                  .launcher = path,
                                  .causeway = "causeway",
                                  .timeout_ns = WAIT_NS,
                                  .alive_period_ns = WAIT_NS,
                                  .events = &nodes_events};
    struct remote_config of_remote = {
        .ranks = RANKS, .channels = &channels, .events = &remote_events};

    ready = false;
    losses = alives = ends = fails = starts = unit_news = 0;
    signal(SIGPIPE, SIG_IGN);
    make_site();
    loop = loop_new(&err);
    config.loop = of_remote.loop = loop;
    channels_init(&channels, loop);
    nodes = of_remote.nodes = nodes_new(&config, &err);
    units = far_units_new(nodes, &units_events, NULL, &err);
    remote = remote_new(&of_remote, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(remote);
    nodes_open(nodes);
    greet();
    for (uint64_t until_ns = cw_clock_ns() + WAIT_NS; !ready && loop_look(loop) < until_ns;)
        loop_turn(loop, loop_now_ns(loop) + 20000000);
    CU_ASSERT_TRUE_FATAL(ready);
}

static void close_all(void)
{
    mux_free(node);
    remote_close(remote);
    nodes_free(nodes);
    far_units_free(units);
    channels_end(&channels);
    loop_free(loop);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    remove_site();
}

static void order_rank(uint32_t rank)
{
    static char *argv[] = {"true", NULL};
    static const struct launch_program program = {
        .path = "/bin/true", .argv = argv, .device_path = ""};
    struct cw_setup setup = {.process = {.rank = rank, .incarnation = 1},
                             .ranks = RANKS,
                             .local_ranks = RANKS,
                             .address = "here"};

    CU_ASSERT_EQUAL(remote_start(remote, &program, &setup, 0, -1, -1, &err), CW_OK);
}

/* Ranks 0 and 1 were ordered, as starts 0 and 1, and rank 2 was not. */
static void expect_given_up(const struct lie *lies, int count, const char *text)
{
    open_all();
    order_rank(0);
    order_rank(1);
    for (int i = 0; i < count; i++)
        say(&lies[i]);
    turn_until(&losses, 1);
    if (!strstr(why.text, text))
        fprintf(stderr, "# '%s' is not in: %s\n", text, why.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(why.text, text));
    CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "host one"));
    close_all();
}

#define LIES(...)                                                                                  \
    (const struct lie[]){__VA_ARGS__},                                                             \
        (int)(sizeof((const struct lie[]){__VA_ARGS__}) / sizeof(struct lie))

TEST(about_processes)
{
    expect_given_up(LIES({NODE_ENDED, 0, 0, NULL}), "ENDED about something that was ordered");
    CU_ASSERT_EQUAL(ends, 0);
    expect_given_up(LIES({NODE_STARTED, 0, 7, NULL}, {NODE_FAILED, 0, 1, "no"}), "its relay");
    CU_ASSERT_EQUAL(fails, 0);
    expect_given_up(LIES({NODE_STARTED, 0, 7, NULL}, {NODE_STARTED, 0, 8, NULL}),
                    "STARTED about something that has started");
    CU_ASSERT_EQUAL(starts, 1);
    expect_given_up(
        LIES({NODE_STARTED, 1, 7, NULL}, {NODE_LOST, 1, 0, NULL}, {NODE_ENDED, 1, 0, NULL}),
        "nothing to be said");
    expect_given_up(
        LIES({NODE_STARTED, 1, 7, NULL}, {NODE_ENDED, 1, 0, NULL}, {NODE_ENDED, 1, 0, NULL}),
        "ENDED");
    CU_ASSERT_EQUAL(ends, 1);
    expect_given_up(LIES({NODE_STARTED, 2, 0, NULL}), "start 2, which it does not have");
}

TEST(about_signs_of_life)
{
    expect_given_up(LIES({NODE_ALIVE, 0, 0, NULL}), "ALIVE about something that was ordered");
    CU_ASSERT_EQUAL(alives, 0);
    expect_given_up(LIES({NODE_STARTED, 0, 7, NULL}, {NODE_ALIVE, 0, 0, NULL},
                         {NODE_ENDED, 0, 0, NULL}, {NODE_ALIVE, 0, 0, NULL}),
                    "");
    CU_ASSERT_EQUAL(alives, 1);
    expect_given_up(LIES({NODE_ALIVE, 2, 0, NULL}), "start 2, which it does not have");
}

TEST(about_other_things)
{
    expect_given_up(LIES({NODE_UNIT_LISTENS, 2, 1, "unix:/a tcp:b:1"}),
                    "UNIT_LISTENS about something of which there is nothing");
    CU_ASSERT_EQUAL(unit_news, 0);
    expect_given_up(LIES({NODE_UNIT_ENDED, 2, 0, NULL}), "UNIT_ENDED");
    expect_given_up(LIES({NODE_UNIT_STARTED, NODE_UNITS_MAX, 7, NULL}), "makes no sense");
    expect_given_up(LIES({NODE_STAGED, 0, 0, NULL}), "type 35");
    expect_given_up(LIES({NODE_BLOB, 0, 0, NULL}), "type 16");
    expect_given_up(LIES({99, 0, 0, NULL}), "type 99");
}

/* A unit that was ordered may start again and again, in this order: each time one of the frames is
 * left out, at last none, and the last one is too much. */
TEST(about_units)
{
    static const struct node_unit order = {.number = 2, .flags = NODE_UNIT_RETURNS};
    static const struct lie good[] = {
        {NODE_UNIT_STARTED, 2, 7, NULL}, {NODE_UNIT_LISTENS, 2, 1, "unix:/a tcp:b:1"},
        {NODE_UNIT_ENDED, 2, 0, NULL},   {NODE_UNIT_STARTED, 2, 8, NULL},
        {NODE_UNIT_FAILED, 2, 0, NULL},  {NODE_UNIT_FAILED, 2, 0, NULL}};
    static const int news[] = {0, 4, 2, 4, 5};

    for (int without = 0; without < 5; without++) {
        open_all();
        CU_ASSERT_EQUAL(far_units_start(units, 0, &order, &err), CW_OK);
        for (int i = 0; i < 6; i++)
            if (i != without || i == 4)
                say(&good[i]);
        turn_until(&losses, 1);
        CU_ASSERT_EQUAL(unit_news, news[without]);
        close_all();
    }
}
