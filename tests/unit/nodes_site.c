#include "tests/unit/nodes_site.h"
#include "common/clock.h"
#include "tests/lib/scratch.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PERIOD_NS 100000000ull

struct nodes_site here;
struct nodes_told told;

static struct host hosts[2] = {{.name = "one"}, {.name = "two"}};
static struct host_list list = {hosts, 1};
static const uint8_t job_id[CW_ID_SIZE] = {1};
static struct channels channels;
static struct gate *gates[RANKS];

static void on_ready(void *ctx)
{
    (void)ctx;
    told.ready = true;
}

static void on_host_failed(void *ctx, uint32_t host, const struct cw_err *e)
{
    (void)ctx;
    (void)host;
    told.failure = *e;
    told.failures++;
}

static void on_host_lost(void *ctx, uint32_t host, const struct cw_err *e)
{
    (void)ctx;
    (void)host;
    told.host_why = *e;
    told.host_losses++;
}

static void on_back(void *ctx, uint32_t host)
{
    (void)ctx;
    (void)host;
    told.host_returns++;
}

static void on_suspended(void *ctx, uint32_t host, const struct cw_err *e)
{
    (void)ctx;
    (void)host;
    (void)e;
    told.suspensions++;
}

static void on_resumed(void *ctx, uint32_t host)
{
    (void)ctx;
    (void)host;
    told.resumptions++;
}

static void on_said(void *ctx, uint32_t host, const char *text)
{
    (void)ctx;
    (void)host;
    snprintf(told.line, sizeof(told.line), "%s", text);
}

static void on_unit_started(void *ctx, uint32_t number, pid_t pid, const char *place)
{
    (void)ctx;
    (void)number;
    (void)place;
    told.relay_pid = pid;
}

static void on_unit_listens(void *ctx, uint32_t number, const char *local, const char *tcp,
                            bool in_memory)
{
    (void)ctx;
    (void)number;
    CU_ASSERT_FALSE(in_memory);
    snprintf(told.relay_local, sizeof(told.relay_local), "%s", local);
    snprintf(told.relay_tcp, sizeof(told.relay_tcp), "%s", tcp);
    told.relay_listenings++;
}

static void on_unit_ended(void *ctx, uint32_t number, int how, const char *why)
{
    (void)ctx;
    (void)number;
    CU_ASSERT_STRING_EQUAL(why, "");
    CU_ASSERT_TRUE(WIFSIGNALED(how));
    told.relay_ends++;
}

static void on_unit_failed(void *ctx, uint32_t number, int how, const struct cw_err *e)
{
    (void)ctx;
    (void)number;
    told.unit_how = how;
    told.unit_why = *e;
    told.unit_fails++;
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
    told.alives += silent;
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
    told.made[process->id.rank] = *process;
    told.started[process->id.rank] = true;
}

static void on_failed(void *ctx, struct cw_process process, const struct cw_err *e)
{
    (void)ctx;
    told.start_why = *e;
    told.failed[process.rank] = true;
}

static void on_ended(void *ctx, struct cw_process process, int how)
{
    (void)ctx;
    told.status[process.rank] = how;
    told.ended[process.rank] = true;
}

static void on_life(void *ctx, struct cw_process process, enum life_what what)
{
    (void)ctx;
    if (what == LIFE_DEAD)
        told.lost[process.rank] = true;
    else if (what == LIFE_ENDED)
        told.ends[process.rank] = true;
    else
        told.alives++;
}

static void on_superseded_ended(void *ctx, struct cw_process process)
{
    (void)ctx;
    (void)process;
    told.alives++;
}

static const struct remote_events remote_events = {on_started, on_failed, on_life, on_ended,
                                                   on_superseded_ended};

/* --- the site --- */

void write_script(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    fchmod(fd, 0755);
    close(fd);
}

/* It says which process it is: what it has started is in its session. */
void write_launcher(const char *before)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "#!/bin/sh\n"
             "echo $$ >%s/launcher.new; mv %s/launcher.new %s/launcher\n"
             "%s\n"
             "shift\n"
             "cat | \"$@\" | cat\n",
             scratch_dir, scratch_dir, scratch_dir, before);
    write_script(here.launcher, text);
}

void reap(void)
{
    int how;
    pid_t pid;

    while ((pid = waitpid(-1, &how, WNOHANG)) > 0)
        if (here.nodes)
            nodes_child_ended(here.nodes, pid, how);
}

bool await_told(const bool *what)
{
    uint64_t until_ns = cw_clock_ns() + WAIT_NS;

    while (!*what && loop_look(here.loop) < until_ns) {
        loop_turn(here.loop, loop_now_ns(here.loop) + 20000000);
        reap();
    }
    return *what;
}

bool await_count(const int *what, int count)
{
    uint64_t until_ns = cw_clock_ns() + WAIT_NS;

    while (*what < count && loop_look(here.loop) < until_ns) {
        loop_turn(here.loop, loop_now_ns(here.loop) + 20000000);
        reap();
    }
    return *what >= count;
}

void open_site(const char *before)
{
    ssize_t n = readlink("/proc/self/exe", here.causeway, sizeof(here.causeway) - 16);

    here.causeway[n > 0 ? n : 0] = '\0';
    strcpy(strrchr(here.causeway, '/'), "/causeway");
    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    snprintf(here.launcher, sizeof(here.launcher), "%s", scratch_path("launch"));
    write_launcher(before);
    signal(SIGPIPE, SIG_IGN);
    memset(&told, 0, sizeof(told));
}

void hold_ranks(struct gate *gate)
{
    for (int i = 0; i < RANKS; i++)
        gates[i] = gate;
}

/* No host: the node of this machine alone. */
void open_nodes(uint32_t count, uint64_t timeout_ns)
{
    struct nodes_config config = {.hosts = &list,
                                  .job_id = job_id,
                                  .ranks = RANKS,
                                  .launcher = here.launcher,
                                  .causeway = here.causeway,
                                  .own = count ? NULL : here.causeway,
                                  .kept_fds = {-1, -1, -1},
                                  .timeout_ns = timeout_ns,
                                  .alive_period_ns = PERIOD_NS,
                                  .events = &nodes_events};
    struct remote_config of_remote = {.ranks = RANKS,
                                      .channels = &channels,
                                      .gates = gates[0] ? gates : NULL,
                                      .events = &remote_events};

    list.count = count;
    here.loop = loop_new(&here.err);
    config.loop = of_remote.loop = here.loop;
    channels_init(&channels, here.loop);
    here.nodes = of_remote.nodes = nodes_new(&config, &here.err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(here.nodes);
    here.units = far_units_new(here.nodes, &units_events, NULL, &here.err);
    here.remote = remote_new(&of_remote, &here.err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(here.remote);
    nodes_open(here.nodes);
}

void open_ready(uint32_t count, uint64_t timeout_ns)
{
    open_site("");
    open_nodes(count, timeout_ns);
    if (!await_told(&told.ready))
        fprintf(stderr, "# no node: %s\n", told.failure.text);
    CU_ASSERT_TRUE_FATAL(told.ready);
}

/* Nodes have removed theirs. */
void remove_site(void)
{
    static const char *const names[] = {"launch",       "launch.tried", "launcher",
                                        "launcher.new", "causeway",     "gone"};
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

void free_nodes(void)
{
    nodes_free(here.nodes);
    far_units_free(here.units);
    here.nodes = NULL;
    channels_end(&channels);
    loop_free(here.loop);
}

void close_all(void)
{
    remote_close(here.remote);
    nodes_end(here.nodes);
    free_nodes();
    remove_site();
}

/* --- ranks --- */

void start_rank_on(uint32_t host, uint32_t rank, const char *script, int stdin_fd, int image_fd)
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
        remote_start(here.remote, &programs[rank], &setup, host, stdin_fd, image_fd, &here.err),
        CW_OK);
}

void start_rank(uint32_t rank, const char *script)
{
    start_rank_on(0, rank, script, -1, -1);
    CU_ASSERT_TRUE_FATAL(await_told(&told.started[rank]));
}

void close_rank(uint32_t rank)
{
    for (int i = 0; i < LAUNCH_STREAMS; i++)
        channel_close(told.made[rank].channel[i]);
}

/* What is there now. Returns false at its end. */
bool read_some(struct channel *from, size_t *used)
{
    ssize_t n;

    while ((n = channel_read(from, here.output + *used, OUTPUT_MAX - 1 - *used)) > 0)
        *used += (size_t)n;
    here.output[*used] = '\0';
    return n < 0;
}

/* Reads it to its end; every so many bytes the launcher of the host is killed. Returns its size. */
size_t read_all(struct channel *from, size_t cut_every, void (*cut)(void))
{
    uint64_t until_ns = cw_clock_ns() + 2 * WAIT_NS;
    size_t next = cut_every, used = 0;

    while (read_some(from, &used) && loop_look(here.loop) < until_ns) {
        if (cut_every && used >= next) {
            next += cut_every;
            cut();
        }
        loop_turn(here.loop, loop_now_ns(here.loop) + 20000000);
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
void cut_connection(void)
{
    kill(-pid_in("launcher"), SIGKILL);
}

bool is_gone(pid_t pid)
{
    for (int ms = 0; ms < 20000; ms += 20) {
        reap();
        if (kill(pid, 0) < 0)
            return true;
        usleep(20000);
    }
    return false;
}

pid_t node_pid(uint32_t host)
{
    return (pid_t)nodes_facts(here.nodes, host)->pid;
}
