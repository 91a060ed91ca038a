/* How a job stands: the document, the tables, the socket, and who asks there. */
#include "common/clock.h"
#include "dispatcher/status/status.h"
#include "dispatcher/status/status_client.h"
#include "dispatcher/status/status_table.h"
#include "dispatcher/status/table.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("status", scratch_make, scratch_end);

#define NOW 5000000000ull
#define BIG_RANKS 20000 /* their document does not fit into a socket */

static struct cw_err err;
static struct status_server server;

static const uint8_t id[CW_ID_SIZE] = {0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x78,
                                       0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0};
static const struct status_rank two[2] = {
    {.rank = 0,
     .pid = 4712,
     .host = "localhost",
     .slot = 1,
     .incarnation = 1,
     .state = "live",
     .events = 1234567,
     .taken = 1234560,
     .acts = 99,
     .log_bytes = 1288490,
     .image = 17,
     .image_age_s = 32.4,
     .image_bytes = 3000000,
     .program = "./a.out"},
    {.rank = 1,
     .pid = 0,
     .host = "localhost",
     .slot = 0,
     .incarnation = 3,
     .state = "replaying",
     .events = 4000,
     .replayed = 120,
     .to_replay = 4000,
     .log_bytes = 812,
     .restarts = 2,
     .program = "\xff"},
};

static const uint32_t relay_restarts[] = {0, 3};

static struct status_job job_of(const struct status_rank *rank, uint32_t ranks)
{
    return (struct status_job){.id = id,
                               .pid = 4711,
                               .started = {.tv_sec = 1769904000, .tv_nsec = 5000},
                               .command = "-n 2 ./a.out",
                               .relay = "unix:/tmp/r",
                               .relay_restarts = relay_restarts,
                               .relays = 2,
                               .rank = rank,
                               .ranks = ranks};
}

static json_t *document_of_two(void)
{
    struct status_job job = job_of(two, 2);
    json_t *document = status_document(&job);

    CU_ASSERT_PTR_NOT_NULL_FATAL(document);
    return document;
}

static const char *inside(const char *dir, const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

/* ---- the document ---- */

static json_int_t number(const json_t *object, const char *key)
{
    CU_ASSERT_TRUE(json_is_integer(json_object_get(object, key)));
    return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    CU_ASSERT_PTR_NOT_NULL_FATAL(value);
    return value;
}

TEST(members)
{
    json_t *document = document_of_two();
    const json_t *ranks = json_object_get(document, "ranks");
    const json_t *restarts = json_object_get(document, "relay_restarts");
    const json_t *first = json_array_get(ranks, 0);
    const json_t *second = json_array_get(ranks, 1);

    CU_ASSERT_STRING_EQUAL(text(document, "job"), "0f1e2d3c4b5a69788796a5b4c3d2e1f0");
    CU_ASSERT_EQUAL(number(document, "pid"), 4711);
    CU_ASSERT_STRING_EQUAL(text(document, "started"), "2026-02-01T00:00:00.000005Z");
    CU_ASSERT_STRING_EQUAL(text(document, "command"), "-n 2 ./a.out");
    CU_ASSERT_STRING_EQUAL(text(document, "relay"), "unix:/tmp/r");
    CU_ASSERT_EQUAL(json_array_size(restarts), 2);
    CU_ASSERT_EQUAL(json_integer_value(json_array_get(restarts, 0)), 0);
    CU_ASSERT_EQUAL(json_integer_value(json_array_get(restarts, 1)), 3);
    CU_ASSERT_EQUAL(json_array_size(ranks), 2);
    CU_ASSERT_EQUAL(number(first, "rank"), 0);
    CU_ASSERT_EQUAL(number(first, "pid"), 4712);
    CU_ASSERT_STRING_EQUAL(text(first, "host"), "localhost");
    CU_ASSERT_EQUAL(number(first, "slot"), 1);
    CU_ASSERT_STRING_EQUAL(text(first, "state"), "live");
    CU_ASSERT_EQUAL(number(first, "events"), 1234567);
    CU_ASSERT_EQUAL(number(first, "taken"), 1234560);
    CU_ASSERT_EQUAL(number(first, "acts"), 99);
    CU_ASSERT_EQUAL(number(first, "log_bytes"), 1288490);
    CU_ASSERT_STRING_EQUAL(text(first, "program"), "./a.out");
    CU_ASSERT_EQUAL(number(second, "incarnation"), 3);
    CU_ASSERT_EQUAL(number(second, "replayed"), 120);
    CU_ASSERT_EQUAL(number(second, "to_replay"), 4000);
    CU_ASSERT_EQUAL(number(second, "restarts"), 2);
    CU_ASSERT_STRING_EQUAL(text(second, "program"), "?");
    json_decref(document);
}

TEST(command_line)
{
    char *first[] = {"./a.out", "x y", NULL};
    char *second[] = {"./b", NULL};
    static struct run_options options;
    char command[STATUS_COMMAND_MAX];
    char longer[2 * STATUS_COMMAND_MAX];

    options.segment_count = 2;
    options.segments[0] = (struct run_segment){.ranks = 4, .argv = first};
    options.segments[1] = (struct run_segment){.ranks = 1, .argv = second};
    status_command(&options, command);
    CU_ASSERT_STRING_EQUAL(command, "-n 4 ./a.out x y : -n 1 ./b");
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    first[1] = longer;
    status_command(&options, command);
    CU_ASSERT_EQUAL(strlen(command), STATUS_COMMAND_MAX - 1);
}

/* ---- the tables ---- */

/* What a table looks like; the caller frees it. */
static char *printed(const json_t *document)
{
    char *table = NULL;
    size_t size;
    FILE *to = open_memstream(&table, &size);

    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    if (json_is_array(document))
        status_table_jobs(to, document);
    else
        status_table_job(to, document);
    fclose(to);
    return table;
}

static void prints(const json_t *document, const char *expected)
{
    char *table = printed(document);

    CU_ASSERT_STRING_EQUAL(table, expected);
    free(table);
}

#define HEAD                                                                                       \
    "job 0f1e2d3c4b5a69788796a5b4c3d2e1f0, causeway run with pid 4711, since "                     \
    "2026-02-01T00:00:00.000005Z\n"                                                                \
    "command: -n 2 ./a.out\n"                                                                      \
    "relay: unix:/tmp/r\n"                                                                         \
    "2 ranks: 1 live, 1 replaying\n"                                                               \
    "RANK  HOST        PID  INCARNATION  STATE                   EVENTS   LOG         IMAGE  "     \
    "RESTARTS\n"

TEST(table_of_a_job)
{
    json_t *document = document_of_two();

    prints(document,
           HEAD "   0  localhost  4712            1  live                   1234567  1.2M  17, 32 "
                "s ago         0\n"
                "   1  localhost     -            3  replaying 120 of 4000     4000   812          "
                "   -         2\n");
    json_decref(document);
}

static const struct status_copies copies[] = {
    {.relay = 0, .host = "node1", .backup = {"node3"}, .backups = 1, .state = "covered"},
    {.relay = 2,
     .host = "node3",
     .backup = {"node1", "node4"},
     .backups = 2,
     .state = "copying",
     .uncovered_s = 2.1},
    {.relay = 3, .host = "node4", .state = "alone", .uncovered_s = 75.0},
};

TEST(copies_of_logs)
{
    struct status_job job = job_of(two, 2);
    json_t *document, *array;
    char *table, *rows;

    job.copies = copies;
    job.copied = 3;
    document = status_document(&job);
    array = json_object_get(document, "copies");
    CU_ASSERT_EQUAL(json_array_size(array), 3);
    CU_ASSERT_TRUE(json_is_null(json_object_get(json_array_get(array, 0), "uncovered_s")));
    CU_ASSERT_EQUAL(number(json_array_get(array, 1), "relay"), 2);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(json_array_get(array, 1), "backups")), 2);
    CU_ASSERT_STRING_EQUAL(text(json_array_get(array, 2), "state"), "alone");
    table = printed(document);
    rows = strstr(table, "RELAY");
    CU_ASSERT_PTR_NOT_NULL_FATAL(rows);
    CU_ASSERT_STRING_EQUAL(rows, "RELAY  HOST   BACKUPS       LOG\n"
                                 "    0  node1  node3         covered\n"
                                 "    2  node3  node1, node4  copying, for 2 s\n"
                                 "    3  node4  -             alone, for 75 s\n");
    free(table);
    json_decref(document);
}

TEST(table_of_jobs)
{
    json_t *document = document_of_two();
    json_t *documents = json_pack("[o, {s:s}]", document, "job", "x");

    prints(documents, "JOB        PID  RANKS  STARTED               COMMAND\n"
                      "0f1e2d3c  4711      2  2026-02-01T00:00:00Z  -n 2 ./a.out\n"
                      "x            -      0  Z                     \n");
    json_decref(documents);
}

/* Nothing that a socket says reaches the terminal as a command; what is of another type is not
 * there. */
TEST(hostile_texts)
{
    json_t *document =
        json_pack("{s:s, s:i, s:s, s:[{s:s, s:s, s:i, s:f}, {}]}", "job", "\033[2Jx\n\x7f", "pid",
                  -1, "command", "\xc2\x9bK \xc3\xa4", "ranks", "state", "\033]0;\007", "rank",
                  "no", "log_bytes", -7, "events", 1.5);
    char *table = printed(document);

    CU_ASSERT_PTR_NULL(strchr(table, '\033'));
    CU_ASSERT_PTR_NULL(strchr(table, '\007'));
    CU_ASSERT_PTR_NULL(strstr(table, "\xc2\x9b"));
    CU_ASSERT_PTR_NOT_NULL(strstr(table, "job ?[2Jx??,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(table, "command: ?K \xc3\xa4\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(table, "?]0;?"));
    free(table);
    json_decref(document);
}

TEST(sizes)
{
    static const struct {
        uint64_t bytes;
        const char *expected;
    } cases[] = {
        {0, "0"},          {812, "812"},         {1023, "1023"},       {1024, "1.0K"},
        {1288490, "1.2M"}, {1ull << 30, "1.0G"}, {3ull << 40, "3.0T"}, {UINT64_MAX, "16.0E"}};
    char to[16];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        table_bytes(cases[i].bytes, to, sizeof(to));
        CU_ASSERT_STRING_EQUAL(to, cases[i].expected);
    }
}

/* ---- the socket ---- */

static void open_server(void)
{
    CU_ASSERT_EQUAL_FATAL(status_open(&server, scratch_dir, STATUS_NAME, STATUS_FRESH_NS, &err),
                          CW_OK);
}

static int connect_client(void)
{
    struct cw_address address;
    char at[CW_ADDRESS_MAX];
    int fd;

    snprintf(at, sizeof(at), "unix:%s/" STATUS_NAME, scratch_dir);
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, at, &err), CW_OK);
    fd = cw_connect(&address, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    return fd;
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* All up to the end, stepping the server at `now_ns`; the caller frees it. */
static char *read_all(int fd, uint64_t now_ns, size_t *size)
{
    char *bytes = malloc(16 << 20);
    ssize_t n;

    *size = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    do {
        status_step(&server, now_ns);
        n = read(fd, bytes + *size, (16 << 20) - *size);
        *size += n > 0 ? (size_t)n : 0;
    } while (n != 0);
    return bytes;
}

static void gets_document(int fd, const json_t *document)
{
    size_t size;
    char *bytes = read_all(fd, NOW, &size);
    json_t *got = json_loadb(bytes, size, 0, NULL);

    CU_ASSERT_TRUE(json_equal(got, document));
    json_decref(got);
    free(bytes);
    close(fd);
}

TEST(for_its_user_alone)
{
    struct stat st;

    open_server();
    CU_ASSERT_EQUAL(stat(inside(scratch_dir, STATUS_NAME), &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
    status_close(&server);
    CU_ASSERT_EQUAL(access(inside(scratch_dir, STATUS_NAME), F_OK), -1);
    status_close(&server);
}

TEST(not_opened)
{
    server = (struct status_server){.fd = -1};
    CU_ASSERT_FALSE(status_step(&server, NOW));
    CU_ASSERT_FALSE(status_waiting(&server));
    CU_ASSERT_EQUAL(status_deadline_ns(&server), UINT64_MAX);
    status_answer(&server, NULL, NOW);
    status_close(&server);
    err = (struct cw_err){0};
    CU_ASSERT_EQUAL(status_open(&server, "/nowhere", STATUS_NAME, STATUS_FRESH_NS, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nowhere/status"));
    CU_ASSERT_EQUAL(server.fd, -1);
}

TEST(one_client)
{
    json_t *document = document_of_two();
    int fd;

    open_server();
    CU_ASSERT_FALSE(status_step(&server, NOW));
    CU_ASSERT_FALSE(status_waiting(&server));
    CU_ASSERT_EQUAL(status_deadline_ns(&server), UINT64_MAX);
    fd = connect_client();
    CU_ASSERT_TRUE(readable(server.fd));
    CU_ASSERT_TRUE(status_step(&server, NOW));
    CU_ASSERT_FALSE(status_step(&server, NOW));
    CU_ASSERT_FALSE(readable(server.fd));
    CU_ASSERT_TRUE(status_waiting(&server));
    CU_ASSERT_FALSE(status_due(&server, NOW + STATUS_FRESH_NS - 1));
    CU_ASSERT_TRUE(status_due(&server, NOW + STATUS_FRESH_NS));
    CU_ASSERT_EQUAL(status_deadline_ns(&server), NOW + STATUS_FRESH_NS);
    CU_ASSERT_FALSE(readable(fd));
    status_answer(&server, document, NOW);
    CU_ASSERT_FALSE(status_waiting(&server));
    CU_ASSERT_EQUAL(status_deadline_ns(&server), UINT64_MAX);
    gets_document(fd, document);
    json_decref(document);
    status_close(&server);
}

TEST(no_memory_for_a_document)
{
    int fd;
    char byte;

    open_server();
    fd = connect_client();
    CU_ASSERT_TRUE(status_step(&server, NOW));
    status_answer(&server, NULL, NOW);
    CU_ASSERT_EQUAL(read(fd, &byte, 1), 0);
    CU_ASSERT_FALSE(status_waiting(&server));
    close(fd);
    status_close(&server);
}

/* Those beyond the bound are served when there is a place; nothing spins meanwhile. */
TEST(more_than_there_are_places)
{
    json_t *document = document_of_two();
    int fds[STATUS_CLIENTS_MAX + 2];

    open_server();
    for (int i = 0; i < STATUS_CLIENTS_MAX + 2; i++) {
        fds[i] = connect_client();
        status_step(&server, NOW);
    }
    CU_ASSERT_FALSE(readable(server.fd));
    status_answer(&server, document, NOW);
    CU_ASSERT_TRUE(status_step(&server, NOW));
    for (int i = 0; i < STATUS_CLIENTS_MAX; i++)
        gets_document(fds[i], document);
    status_answer(&server, document, NOW);
    gets_document(fds[STATUS_CLIENTS_MAX], document);
    gets_document(fds[STATUS_CLIENTS_MAX + 1], document);
    json_decref(document);
    status_close(&server);
}

TEST(a_client_that_goes)
{
    int fd;

    open_server();
    fd = connect_client();
    CU_ASSERT_TRUE(status_step(&server, NOW));
    close(fd);
    CU_ASSERT_TRUE(readable(server.fd));
    CU_ASSERT_FALSE(status_step(&server, NOW));
    CU_ASSERT_FALSE(status_waiting(&server));
    CU_ASSERT_FALSE(readable(server.fd));
    status_close(&server);
}

static json_t *big_document(void)
{
    struct status_rank *ranks = calloc(BIG_RANKS, sizeof(*ranks));
    struct status_job job = job_of(ranks, BIG_RANKS);
    json_t *document;

    CU_ASSERT_PTR_NOT_NULL_FATAL(ranks);
    document = status_document(&job);
    free(ranks);
    CU_ASSERT_PTR_NOT_NULL_FATAL(document);
    return document;
}

TEST(a_large_document)
{
    json_t *document = big_document();
    int fd;

    open_server();
    fd = connect_client();
    CU_ASSERT_TRUE(status_step(&server, NOW));
    status_answer(&server, document, NOW);
    CU_ASSERT_FALSE(status_waiting(&server));
    CU_ASSERT_EQUAL(status_deadline_ns(&server), NOW + STATUS_READ_NS);
    CU_ASSERT_FALSE(readable(server.fd));
    gets_document(fd, document);
    CU_ASSERT_EQUAL(status_deadline_ns(&server), UINT64_MAX);
    json_decref(document);
    status_close(&server);
}

TEST(a_client_that_does_not_read)
{
    json_t *document = big_document();
    size_t whole = json_dumpb(document, NULL, 0, JSON_COMPACT);
    size_t size;
    int fd;

    open_server();
    fd = connect_client();
    status_step(&server, NOW);
    status_answer(&server, document, NOW);
    status_step(&server, NOW + STATUS_READ_NS);
    CU_ASSERT_EQUAL(status_deadline_ns(&server), UINT64_MAX);
    free(read_all(fd, NOW, &size));
    CU_ASSERT_TRUE(size > 0 && size < whole);
    close(fd);
    json_decref(document);
    status_close(&server);
}

/* ---- who asks ---- */

enum behaviour { ANSWERS, SAYS_NOTHING, ENDS_AT_ONCE, TALKS_NONSENSE, NO_RANKS, TALKS_ON };

static void write_text(int fd, const char *bytes)
{
    if (write(fd, bytes, strlen(bytes)) < 0)
        _exit(2);
}

static void talk_on(int fd)
{
    static char spaces[1 << 20];

    memset(spaces, ' ', sizeof(spaces));
    while (send(fd, spaces, sizeof(spaces), MSG_NOSIGNAL) > 0)
        ;
}

/* One that stands in for a dispatcher, in a process of its own. */
static void serve(int listener, enum behaviour behaviour)
{
    json_t *document = document_of_two();
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        if (behaviour == ANSWERS)
            json_dumpfd(document, fd, 0);
        else if (behaviour == TALKS_NONSENSE)
            write_text(fd, "{\"job\": [[[");
        else if (behaviour == NO_RANKS)
            write_text(fd, "{\"job\": \"x\", \"ranks\": [3]}");
        else if (behaviour == TALKS_ON)
            talk_on(fd);
        if (behaviour != SAYS_NOTHING)
            close(fd);
    }
    _exit(0);
}

static pid_t start_fake(const char *dir, enum behaviour behaviour)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    pid_t pid;

    snprintf(un.sun_path, sizeof(un.sun_path), "%s/" STATUS_NAME, dir);
    CU_ASSERT_EQUAL_FATAL(bind(listener, (struct sockaddr *)&un, sizeof(un)), 0);
    CU_ASSERT_EQUAL_FATAL(listen(listener, 8), 0);
    pid = fork();
    if (pid == 0)
        serve(listener, behaviour);
    close(listener);
    return pid;
}

static void end_fake(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void asks(enum behaviour behaviour, int code, const char *words)
{
    pid_t fake = start_fake(scratch_dir, behaviour);
    pid_t pid;
    json_t *document = status_ask(scratch_dir, &pid, &err);

    CU_ASSERT_EQUAL(err.code, code);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, words));
    CU_ASSERT_EQUAL(document != NULL, code == CW_OK);
    CU_ASSERT_EQUAL(pid, getpid()); /* who called listen(2) */
    json_decref(document);
    end_fake(fake);
    unlink(inside(scratch_dir, STATUS_NAME));
}

TEST(answers)
{
    asks(ANSWERS, CW_OK, "");
    asks(ENDS_AT_ONCE, CW_ECLOSED, "the job has ended");
    asks(TALKS_NONSENSE, CW_EPROTO, "no status document");
    asks(NO_RANKS, CW_EPROTO, "no status document");
}

TEST(a_silent_dispatcher)
{
    asks(SAYS_NOTHING, CW_ELIMIT, "no answer for 2 s");
}

TEST(an_answer_without_end)
{
    asks(TALKS_ON, CW_ELIMIT, "");
}

TEST(killed_dispatcher)
{
    pid_t pid;

    CU_ASSERT_PTR_NULL(status_ask(scratch_dir, &pid, &err));
    CU_ASSERT_EQUAL(err.code, CW_ENOTFOUND);
    end_fake(start_fake(scratch_dir, ANSWERS));
    CU_ASSERT_PTR_NULL(status_ask(scratch_dir, &pid, &err));
    CU_ASSERT_EQUAL(err.code, CW_ECLOSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, scratch_dir));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "was killed"));
    unlink(inside(scratch_dir, STATUS_NAME));
}

/* ---- which job ---- */

static void make_dir(char *dir, size_t size, const char *name)
{
    snprintf(dir, size, "%.60s/causeway-%u.%s", scratch_dir, getuid(), name);
    CU_ASSERT_EQUAL_FATAL(mkdir(dir, 0700), 0);
}

static void remove_dir(const char *dir)
{
    unlink(inside(dir, STATUS_NAME));
    rmdir(dir);
}

static int find_of(const struct status_found *found, int count, const char *dir)
{
    for (int i = 0; i < count; i++)
        if (strcmp(found[i].dir, dir) == 0)
            return i;
    return -1;
}

TEST(found_where_they_are)
{
    static struct status_found found[STATUS_JOBS_MAX];
    char live[RUNDIR_MAX];
    char stale[RUNDIR_MAX];
    char young[RUNDIR_MAX];
    pid_t fake;
    int count;

    memset(found, 0, sizeof(found));
    make_dir(live, sizeof(live), "live");
    make_dir(stale, sizeof(stale), "stale");
    make_dir(young, sizeof(young), "young");
    fake = start_fake(live, ANSWERS);
    end_fake(start_fake(stale, ANSWERS));
    count = status_find(found);
    CU_ASSERT_TRUE(find_of(found, count, live) >= 0);
    CU_ASSERT_PTR_NOT_NULL(found[find_of(found, count, live)].document);
    CU_ASSERT_TRUE_FATAL(find_of(found, count, stale) >= 0);
    CU_ASSERT_EQUAL(found[find_of(found, count, stale)].err.code, CW_ECLOSED);
    CU_ASSERT_EQUAL(find_of(found, count, young), -1);
    for (int i = 0; i < count; i++)
        CU_ASSERT_EQUAL(find_of(found, count, found[i].dir), i);
    status_forget(found, count);
    end_fake(fake);
    remove_dir(live);
    remove_dir(stale);
    remove_dir(young);
}

static struct status_found job_with(pid_t pid, const char *job_id)
{
    struct status_found f = {.pid = pid};

    if (job_id)
        f.document = json_pack("{s:s, s:[]}", "job", job_id, "ranks");
    else
        cw_err_set(&f.err, CW_ELIMIT, "pid %d does not answer", (int)pid);
    return f;
}

static void chooses(const struct status_found *found, int count, const char *job, int expected,
                    const char *words)
{
    err = (struct cw_err){0};
    CU_ASSERT_EQUAL(status_choose(found, count, job, &err), expected);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, words));
}

TEST(which_is_meant)
{
    struct status_found found[4] = {job_with(30, "12ab"), job_with(12, NULL), job_with(40, "12cd"),
                                    job_with(50, "30ef")};

    chooses(found, 0, NULL, CW_ENOTFOUND, "no job of yours runs");
    chooses(found + 1, 1, NULL, CW_ENOTFOUND, "no job of yours runs");
    chooses(found, 2, NULL, 0, "");
    chooses(found, 4, NULL, CW_EINVAL, "3 jobs run;");
    chooses(found, 4, "12ab", 0, "");
    chooses(found, 4, "12c", 2, "");
    chooses(found, 4, "12", CW_ELIMIT, "pid 12 does not answer");
    chooses(found, 4, "1", CW_EINVAL, "2 jobs have an identifier that begins with 1");
    chooses(found, 4, "30", 0, ""); /* a pid before an identifier */
    chooses(found, 4, "30e", 3, "");
    chooses(found, 4, "7", CW_ENOTFOUND, "no job 7 runs");
    status_forget(found, 4);
}
