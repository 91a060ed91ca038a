/* Copies of a job's state: the messages to who keeps one, and what is kept, whoever is killed when.
 */
#include "common/cred.h"
#include "dispatcher/node/state_keeper.h"
#include "dispatcher/state/state_copy.h"
#include "dispatcher/state/state_file.h"
#include "dispatcher/wire/greeting.h"
#include "tests/lib/scratch.h"
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

SUITE("copies of a job's state");

#define RANKS 2u
#define WAIT_NS 20000000000ull

/* --- messages --- */

TEST(messages)
{
    uint8_t bytes[STATE_COPY_HEADER + 8] = {0};
    struct state_copy_message got;
    struct cw_err err;

    state_copy_put(bytes, &(struct state_copy_message){STATE_COPY_COUNT, 8, 7, NULL});
    bytes[STATE_COPY_HEADER] = 5;
    for (size_t size = 0; size < sizeof(bytes); size++)
        CU_ASSERT_EQUAL(state_copy_get(bytes, size, &got, &err), 0);
    CU_ASSERT_EQUAL(state_copy_get(bytes, sizeof(bytes), &got, &err), (long)sizeof(bytes));
    CU_ASSERT_TRUE(got.type == STATE_COPY_COUNT && got.size == 8 && got.at == 7);
    CU_ASSERT_EQUAL(got.bytes[0], 5);
}

TEST(messages_without_sense)
{
    static const struct state_copy_message bad[] = {
        {0, 0, 0, NULL},
        {STATE_COPY_TYPES, 0, 0, NULL},
        {STATE_COPY_JOURNAL, 0, 0, NULL},
        {STATE_COPY_JOURNAL, STATE_COPY_BODY_MAX + 1, 0, NULL},
        {STATE_COPY_JOURNAL, 1, JOB_STATE_BYTES_MAX + 1ull, NULL},
        {STATE_COPY_COUNT, 4, 0, NULL},
        {STATE_COPY_COUNT, 8, 1ull << 32, NULL},
        {STATE_COPY_SYNC, 8, 0, NULL},
        {STATE_COPY_OVER, 1, 0, NULL},
    };
    uint8_t bytes[STATE_COPY_HEADER];
    struct state_copy_message got;
    struct cw_err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        state_copy_put(bytes, &bad[i]);
        CU_ASSERT_EQUAL(state_copy_get(bytes, sizeof(bytes), &got, &err), CW_EPROTO);
    }
}

/* --- what is kept --- */

static char own[128], copy[128];
static struct state_file *state;
static struct state_link state_link;
static pid_t keeper;
static uint32_t losses;

static void on_lost(void *ctx, struct state_link *lost, const struct cw_err *why)
{
    (void)ctx;
    (void)why;
    state_link_close(lost);
    losses++;
}

static void start_keeper(void)
{
    struct cw_err err = {0};
    int in[2], out[2];

    CU_ASSERT_EQUAL_FATAL(pipe2(in, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL_FATAL(pipe2(out, O_CLOEXEC), 0);
    keeper = fork();
    if (keeper == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        _exit(state_keeper_run(copy, &err) < 0);
    }
    close(in[0]);
    close(out[1]);
    state_link_open(&state_link, in[1], out[0], WAIT_NS);
}

static int end_keeper(bool killed)
{
    int status;

    if (killed)
        kill(keeper, SIGKILL);
    waitpid(keeper, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void put(uint32_t type, const char *text)
{
    state_file_put(state,
                   &(struct job_state_record){.type = type,
                                              .rank = RANKS,
                                              .bytes = (const uint8_t *)text,
                                              .size = text ? (uint32_t)strlen(text) + 1 : 0});
}

static void begin(void)
{
    struct cw_err err = {0};

    scratch_make();
    signal(SIGPIPE, SIG_IGN);
    snprintf(own, sizeof(own), "%s/own", scratch_dir);
    snprintf(copy, sizeof(copy), "%s/copy", scratch_dir);
    losses = 0;
    state = state_file_make(own, STATE_FILE_HELD, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(state);
    put(JOB_STATE_JOB, NULL);
    put(JOB_STATE_ARGUMENT, "run");
    CU_ASSERT_EQUAL(state_file_count_ranks(state, RANKS, true, &err), CW_OK);
}

static void begin_copy(void)
{
    struct cw_err err = {0};

    start_keeper();
    CU_ASSERT_EQUAL(state_file_copy_to(state, &state_link, on_lost, NULL, &err), CW_OK);
    put(JOB_STATE_BEGUN, NULL);
    state_file_sync(state);
    CU_ASSERT_EQUAL(losses, 0);
}

static void finish(void)
{
    state_file_close(state, false);
    state_link_close(&state_link);
    scratch_remove();
}

/* Takes the copy up; returns how many records it has. */
static uint32_t take(void)
{
    struct job_state_record record;
    struct cw_err err = {0};
    uint32_t count = 0;

    state_file_close(state, false);
    state = state_file_take(copy, STATE_FILE_HELD, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(state);
    while (state_file_read(state, &record))
        count++;
    CU_ASSERT_EQUAL(state_file_count_ranks(state, RANKS, true, &err), CW_OK);
    return count;
}

/* Its dispatcher is killed: all is there that it had put. */
TEST(copy_is_taken)
{
    struct stat st;

    begin();
    begin_copy();
    put(JOB_STATE_ARGUMENT, "more");
    state_file_sync(state);
    counts_set_printed(state_file_counts(state), 1, 0, 77);
    put(JOB_STATE_ARGUMENT, "without a question");
    state_link_close(&state_link);
    CU_ASSERT_EQUAL(end_keeper(false), 0);
    CU_ASSERT_EQUAL(stat(copy, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0777, 0700);
    CU_ASSERT_EQUAL(take(), 5);
    CU_ASSERT_EQUAL(counts_printed(state_file_counts(state), 1, 0), 77);
    finish();
}

/* The one that took it is the only one: what the other one puts comes to nobody, and it learns
 * that. */
TEST(dispatcher_before_is_fenced)
{
    struct state_file *before;

    begin();
    begin_copy();
    before = state;
    state = NULL;
    CU_ASSERT_EQUAL(take(), 3);
    state_file_put(before, &(struct job_state_record){.type = JOB_STATE_BEGUN});
    state_file_sync(before);
    CU_ASSERT_EQUAL(losses, 1);
    CU_ASSERT_EQUAL(end_keeper(false), 1);
    state_file_close(before, false);
    CU_ASSERT_EQUAL(take(), 3);
    finish();
}

/* A second copy takes the place of the first one once it is whole. */
TEST(copy_is_replaced_whole)
{
    struct cw_err err = {0};
    uint32_t before;

    begin();
    begin_copy();
    state_file_copy_no_more(state, &state_link);
    state_link_close(&state_link);
    CU_ASSERT_EQUAL(end_keeper(false), 0);
    put(JOB_STATE_ARGUMENT, "new");
    start_keeper();
    CU_ASSERT_EQUAL(state_file_copy_to(state, &state_link, on_lost, NULL, &err), CW_OK);
    state_link_close(&state_link);
    CU_ASSERT_EQUAL(end_keeper(false), 0);
    before = take();
    CU_ASSERT_EQUAL(before, 3);
    state_file_close(state, false);
    state = state_file_take(own, STATE_FILE_HELD, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(state);
    CU_ASSERT_EQUAL(state_file_count_ranks(state, RANKS, true, &err), CW_OK);
    begin_copy();
    state_link_close(&state_link);
    CU_ASSERT_EQUAL(end_keeper(false), 0);
    CU_ASSERT_EQUAL(take(), 5);
    finish();
}

TEST(keeper_is_killed)
{
    begin();
    begin_copy();
    end_keeper(true);
    put(JOB_STATE_ARGUMENT, "more");
    state_file_sync(state);
    CU_ASSERT_EQUAL(losses, 1);
    CU_ASSERT_TRUE(state_file_is_whole(state));
    losses = 0;
    begin_copy();
    state_link_close(&state_link);
    CU_ASSERT_EQUAL(end_keeper(false), 0);
    CU_ASSERT_EQUAL(take(), 5);
    finish();
}

/* Of a job that has ended there is none. */
TEST(job_that_ended)
{
    struct cw_err err = {0};

    begin();
    begin_copy();
    state_file_over(state);
    CU_ASSERT_EQUAL(losses, 0);
    state_link_close(&state_link);
    CU_ASSERT_EQUAL(end_keeper(false), 0);
    CU_ASSERT_PTR_NULL(state_file_take(copy, STATE_FILE_HELD, &err));
    CU_ASSERT_EQUAL(err.code, CW_ENOTFOUND);
    finish();
}

/* --- greetings of another dispatcher --- */

TEST(greetings)
{
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    struct greeting_open open = {.protocol = GREETING_PROTOCOL,
                                 .ranks = 1,
                                 .timeout_ns = 1,
                                 .orphan_ns = 7,
                                 .alive_period_ns = 1};
    struct greeting_open got;
    size_t size = greeting_put_take(bytes, &open) - GREETING_HEADER;

    CU_ASSERT_EQUAL(bytes[4], GREETING_TAKE);
    CU_ASSERT_TRUE(greeting_get_open(bytes + GREETING_HEADER, size, &got));
    CU_ASSERT_EQUAL(got.orphan_ns, 7);
    open.orphan_ns = GREETING_ORPHAN_MAX_NS + 1;
    greeting_put_take(bytes, &open);
    CU_ASSERT_FALSE(greeting_get_open(bytes + GREETING_HEADER, size, &got));
}

/* Each host has its own, and none is another key of the job. */
TEST(keys)
{
    uint8_t relay[CW_KEY_SIZE] = {1}, key[4][CW_KEY_SIZE];

    cw_cred_node_key(key[0], relay, 0);
    cw_cred_node_key(key[1], relay, 1);
    cw_cred_server_key(key[2], relay);
    cw_cred_link_key(key[3], relay, 0);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            CU_ASSERT_NOT_EQUAL(memcmp(key[i], key[j], CW_KEY_SIZE), 0);
}
