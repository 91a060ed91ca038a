/* The PMI server as a rank sees it: lines in, the story of replies and happenings out. */
#include "dispatcher/ranks/pmi_line.h"

#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

SUITE("pmi");

#define RANKS 3
#define LONG_MAX_BYTES 4000

/* Everything that came out, in order: "1< cmd=...\n" or "1 initialized\n". */
static char story[1 << 16];
static size_t story_size;
static struct cw_err err;

static void tell(const char *text, size_t size)
{
    if (story_size + size >= sizeof(story))
        return;
    memcpy(story + story_size, text, size);
    story_size += size;
    story[story_size] = '\0';
}

static struct pmi_lines lines_of[RANKS];
static struct places places[RANKS];

static void on_answer(void *ctx, struct cw_process process, const struct pmi_answer *answer)
{
    char line[PMI_LINE_MAX];
    char who[16];

    CU_ASSERT_EQUAL(*(int *)ctx, 7);
    tell(who, (size_t)snprintf(who, sizeof(who), "%u< ", process.rank));
    tell(line, pmi_line_put(line, answer));
}

static void tell_of(uint32_t rank, const char *what, int number)
{
    char text[64];

    tell(text, (size_t)snprintf(text, sizeof(text), "%u %s %d\n", rank, what, number));
}

static bool fences_are_told;

static void on_asked(void *ctx, struct cw_process process, const struct pmi_request *request)
{
    uint32_t rank = process.rank;

    (void)ctx;
    if (request->what == PMI_INIT)
        tell_of(rank, "initialized", request->code);
    else if (request->what == PMI_FINALIZE)
        tell_of(rank, "finalized", request->code);
    else if (request->what == PMI_ABORT)
        tell_of(rank, "aborted", request->code);
    else if (request->what == PMI_FENCE && fences_are_told)
        tell_of(rank, "enters", 0);
}

static void on_forgotten(void *ctx, uint32_t rank)
{
    (void)ctx;
    tell_of(rank, "forgotten", 0);
}

static const struct pmi_ops ops = {on_asked, on_answer, on_forgotten};
static int context = 7;

static struct pmi *make(uint32_t ranks)
{
    static const uint32_t appnums[RANKS] = {0, 0, 4};
    struct pmi_config config = {
        .ranks = ranks, .kvsname = "kvs_1", .appnums = appnums, .places = places};

    story_size = 0;
    story[0] = '\0';
    memset(&err, 0, sizeof(err));
    memset(lines_of, 0, sizeof(lines_of));
    memset(places, 0, sizeof(places));
    return pmi_new(&config, &ops, &context);
}

/* Says `lines` as rank and returns what came out since the last call. */
static const char *say(struct pmi *pmi, uint32_t rank, const char *lines)
{
    story_size = 0;
    story[0] = '\0';
    CU_ASSERT_EQUAL(pmi_lines_take(&lines_of[rank], pmi, (struct cw_process){.rank = rank}, lines,
                                   strlen(lines), &err),
                    CW_OK);
    return story;
}

static void refused(struct pmi *pmi, uint32_t rank, const char *line, const char *why)
{
    story_size = 0;
    story[0] = '\0';
    CU_ASSERT_EQUAL(pmi_lines_take(&lines_of[rank], pmi, (struct cw_process){.rank = rank}, line,
                                   strlen(line), &err),
                    CW_EPROTO);
    CU_ASSERT_EQUAL(err.code, CW_EPROTO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
    CU_ASSERT_STRING_EQUAL(story, "");
}

static void restart(struct pmi *pmi, uint32_t rank, uint32_t number)
{
    memset(&lines_of[rank], 0, sizeof(lines_of[rank]));
    pmi_restarted(pmi, (struct cw_process){.rank = rank}, number);
}

static void init(struct pmi *pmi, uint32_t rank)
{
    say(pmi, rank, "cmd=init pmi_version=1 pmi_subversion=1\n");
}

TEST(opening_of_a_job)
{
    struct pmi *pmi = make(RANKS);

    CU_ASSERT_STRING_EQUAL(say(pmi, 2, "cmd=init pmi_version=1 pmi_subversion=1\n"),
                           "2 initialized 0\n"
                           "2< cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 2, "cmd=get_maxes\n"),
                           "2< cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=482\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 2, "cmd=get_appnum\n"), "2< cmd=appnum appnum=4\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 2, "cmd=get_my_kvsname\n"),
                           "2< cmd=my_kvsname kvsname=kvs_1\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 2, "cmd=get_universe_size\n"), "2< cmd=universe_size size=3\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 2, "cmd=get kvsname=kvs_1 key=PMI_process_mapping\n"),
                           "2< cmd=get_result rc=0 msg=success value=(vector,(0,3,1))\n");
    pmi_free(pmi);
}

TEST(another_version_is_told_so)
{
    struct pmi *pmi = make(1);

    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=init pmi_version=2 pmi_subversion=0\n"),
                           "0< cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=abort exitcode=-1\n"), "0 aborted -1\n");
    refused(pmi, 0, "cmd=init pmi_version=one pmi_subversion=1\n", "pmi_version");
    refused(pmi, 0, "cmd=init\n", "pmi_version");
    pmi_free(pmi);
}

/* A byte at a time, and two lines at once, make no difference. */
TEST(lines_split_anywhere)
{
    const char *lines = "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_my_kvsname\n"
                        "cmd=put kvsname=kvs_1 key=a value=b\n";
    struct pmi *pmi = make(1);
    char whole[1024];

    strcpy(whole, say(pmi, 0, lines));
    pmi_free(pmi);
    for (size_t part = 1; part < strlen(lines); part++) {
        pmi = make(1);
        for (size_t at = 0; at < strlen(lines); at += part) {
            size_t left = strlen(lines) - at;

            CU_ASSERT_EQUAL(pmi_lines_take(&lines_of[0], pmi, (struct cw_process){.rank = 0},
                                           lines + at, left < part ? left : part, &err),
                            CW_OK);
        }
        CU_ASSERT_STRING_EQUAL(story, whole);
        pmi_free(pmi);
    }
}

TEST(partial_lines_belong_to_their_rank)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=get_my_"), "");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=get_universe_"), "");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "kvsname\n"), "0< cmd=my_kvsname kvsname=kvs_1\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "size\n"), "1< cmd=universe_size size=2\n");
    say(pmi, 0, "left over when the job ends");
    pmi_free(pmi);
}

TEST(put_and_get)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=put kvsname=kvs_1 key=card-0 value=00=ff\n"),
                           "0< cmd=put_result rc=0 msg=success\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=get kvsname=kvs_1 key=card-0\n"),
                           "1< cmd=get_result rc=0 msg=success value=00=ff\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=get kvsname=kvs_1 key=card-1\n"),
                           "1< cmd=get_result rc=-1 msg=key_not_found\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=get kvsname=other key=card-0\n"),
                           "1< cmd=get_result rc=-1 msg=unknown_kvsname\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=put kvsname=other key=card-0 value=1\n"),
                           "1< cmd=put_result rc=-1 msg=unknown_kvsname\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=put kvsname=kvs_1 key=card-0 value=00=ff\n"),
                           "0< cmd=put_result rc=0 msg=success\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=put kvsname=kvs_1 key=card-0 value=other\n"),
                           "0< cmd=put_result rc=-1 msg=duplicate_key\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=put kvsname=kvs_1 key=empty value=\n"),
                           "0< cmd=put_result rc=0 msg=success\n");
    refused(pmi, 0, "cmd=put kvsname=kvs_1 key=card-0\n", "value=");
    refused(pmi, 0, "cmd=put kvsname=kvs_1 key= value=1\n", "key=");
    refused(pmi, 0, "cmd=get key=card-0\n", "kvsname=");
    pmi_free(pmi);
}

TEST(sizes_of_keys_and_values)
{
    struct pmi *pmi = make(1);
    char value[PMI_VALLEN_MAX + 1];
    char key[PMI_KEYLEN_MAX + 1];
    char line[PMI_LINE_MAX];
    char expected[PMI_LINE_MAX];

    memset(value, 'v', sizeof(value));
    memset(key, 'k', sizeof(key));
    value[PMI_VALLEN_MAX - 1] = '\0';
    key[PMI_KEYLEN_MAX - 1] = '\0';
    init(pmi, 0);
    snprintf(line, sizeof(line), "cmd=put kvsname=kvs_1 key=%s value=%s\n", key, value);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, line), "0< cmd=put_result rc=0 msg=success\n");
    snprintf(line, sizeof(line), "cmd=get kvsname=kvs_1 key=%s\n", key);
    snprintf(expected, sizeof(expected), "0< cmd=get_result rc=0 msg=success value=%s\n", value);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, line), expected);
    value[PMI_VALLEN_MAX - 1] = 'v';
    value[PMI_VALLEN_MAX] = '\0';
    snprintf(line, sizeof(line), "cmd=put kvsname=kvs_1 key=k value=%s\n", value);
    refused(pmi, 0, line, "vallen_max");
    key[PMI_KEYLEN_MAX - 1] = 'k';
    key[PMI_KEYLEN_MAX] = '\0';
    snprintf(line, sizeof(line), "cmd=put kvsname=kvs_1 key=%s value=1\n", key);
    refused(pmi, 0, line, "255 bytes");
    pmi_free(pmi);
}

TEST(a_rank_cannot_fill_the_memory)
{
    struct pmi *pmi = make(2);
    char line[128];
    unsigned stored = 0;

    init(pmi, 0);
    init(pmi, 1);
    for (unsigned i = 0; i < PMI_ENTRIES_MAX + 10; i++) {
        snprintf(line, sizeof(line), "cmd=put kvsname=kvs_1 key=k%u value=%u\n", i, i);
        if (strstr(say(pmi, 0, line), "rc=0"))
            stored++;
        else
            CU_ASSERT_STRING_EQUAL(story, "0< cmd=put_result rc=-1 msg=too_many_entries\n");
    }
    CU_ASSERT_EQUAL(stored, PMI_ENTRIES_MAX);
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=put kvsname=kvs_1 key=mine value=1\n"),
                           "1< cmd=put_result rc=0 msg=success\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=get kvsname=kvs_1 key=k4095\n"),
                           "1< cmd=get_result rc=0 msg=success value=4095\n");
    pmi_free(pmi);
}

TEST(barrier_waits_for_the_last)
{
    struct pmi *pmi = make(RANKS);

    for (uint32_t r = 0; r < RANKS; r++)
        init(pmi, r);
    for (int round = 0; round < 2; round++) {
        CU_ASSERT_STRING_EQUAL(say(pmi, 2, "cmd=barrier_in\n"), "");
        CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=barrier_in\n"), "");
        CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=barrier_in\n"),
                               "0< cmd=barrier_out\n1< cmd=barrier_out\n2< cmd=barrier_out\n");
    }
    pmi_free(pmi);
}

TEST(who_enters_a_barrier_is_told_first)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    fences_are_told = true;
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=barrier_in\n"), "1 enters 0\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=barrier_in\n"),
                           "0 enters 0\n0< cmd=barrier_out\n1< cmd=barrier_out\n");
    fences_are_told = false;
    pmi_free(pmi);
}

TEST(only_abort_is_heard_in_a_barrier)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    say(pmi, 0, "cmd=barrier_in\n");
    refused(pmi, 0, "cmd=barrier_in\n", "rank 0: PMI line 'cmd=barrier_in': not allowed while");
    refused(pmi, 0, "cmd=get_maxes\n", "waits in a barrier");
    refused(pmi, 0, "mcmd=spawn\nendcmd\n", "waits in a barrier");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=abort exitcode=3\n"), "0 aborted 3\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=abort\n"), "0 aborted 1\n");
    refused(pmi, 0, "cmd=abort exitcode=99999999999999999999\n", "no number");
    pmi_free(pmi);
}

TEST(order_of_a_life)
{
    struct pmi *pmi = make(2);

    refused(pmi, 1, "cmd=get_maxes\n", "not allowed before init");
    refused(pmi, 1, "cmd=barrier_in\n", "not allowed before init");
    refused(pmi, 1, "mcmd=spawn\nendcmd\n", "not allowed before init");
    init(pmi, 1);
    refused(pmi, 1, "cmd=init pmi_version=1 pmi_subversion=1\n", "not allowed after init");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=finalize\n"), "1 finalized 0\n1< cmd=finalize_ack\n");
    refused(pmi, 1, "cmd=finalize\n", "not allowed after finalize");
    refused(pmi, 1, "cmd=abort exitcode=1\n", "not allowed after finalize");
    pmi_free(pmi);
}

TEST(names_within_the_job)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=publish_name service=ocean port=tag#0$x=1$\n"),
                           "0< cmd=publish_result rc=0 msg=success\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=publish_name service=ocean port=other\n"),
                           "1< cmd=publish_result rc=-1 msg=already_published\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=lookup_name service=ocean\n"),
                           "1< cmd=lookup_result rc=0 msg=success port=tag#0$x=1$\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=unpublish_name service=ocean\n"),
                           "1< cmd=unpublish_result rc=0 msg=success\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=unpublish_name service=ocean\n"),
                           "1< cmd=unpublish_result rc=-1 msg=service_not_found\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=lookup_name service=ocean\n"),
                           "1< cmd=lookup_result rc=-1 msg=service_not_found\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=publish_name service=a b port=p\n"),
                           "0< cmd=publish_result rc=0 msg=success\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=lookup_name service=a b\n"),
                           "0< cmd=lookup_result rc=0 msg=success port=p\n");
    refused(pmi, 0, "cmd=publish_name service=x\n", "port=");
    refused(pmi, 0, "cmd=lookup_name\n", "service=");
    pmi_free(pmi);
}

/* A name that is taken back gives its place back. */
TEST(names_count_while_they_are_there)
{
    struct pmi *pmi = make(1);

    init(pmi, 0);
    for (int i = 0; i < PMI_ENTRIES_MAX + 10; i++) {
        say(pmi, 0, "cmd=publish_name service=a port=b\n");
        CU_ASSERT_EQUAL(strncmp(story, "0< cmd=publish_result rc=0 msg=success\n", 39), 0);
        say(pmi, 0, "cmd=unpublish_name service=a\n");
    }
    pmi_free(pmi);
}

TEST(spawn_is_read_and_declined)
{
    struct pmi *pmi = make(1);

    init(pmi, 0);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0,
                               "mcmd=spawn\nnprocs=2\nexecname=./a b\ntotspawns=2\n"
                               "spawnssofar=1\narg1=cmd=abort x\nargcnt=1\nendcmd\n"),
                           "");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0,
                               "mcmd=spawn\nnprocs=1\nexecname=c\ntotspawns=2\n"
                               "spawnssofar=2\nargcnt=0\ninfo_num=0\nendcmd\n"),
                           "0< cmd=spawn_result rc=-1 msg=spawn_is_not_supported\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=get_my_kvsname\n"),
                           "0< cmd=my_kvsname kvsname=kvs_1\n");
    refused(pmi, 0, "mcmd=other\n", "mcmd=spawn");
    refused(pmi, 0, "mcmd=spawn\nnonsense\n", "endcmd");
    pmi_free(pmi);
}

TEST(a_spawn_without_end_is_bounded)
{
    struct pmi *pmi = make(1);
    int code = CW_OK;
    unsigned lines = 0;

    init(pmi, 0);
    say(pmi, 0, "mcmd=spawn\n");
    while (code == CW_OK && lines <= PMI_SPAWN_LINES_MAX + 1) {
        code =
            pmi_lines_take(&lines_of[0], pmi, (struct cw_process){.rank = 0}, "arg=1\n", 6, &err);
        lines++;
    }
    CU_ASSERT_EQUAL(code, CW_EPROTO);
    CU_ASSERT_EQUAL(lines, PMI_SPAWN_LINES_MAX + 1);
    pmi_free(pmi);
}

TEST(bad_lines_are_quoted)
{
    struct pmi *pmi = make(2);
    char line[LONG_MAX_BYTES];

    init(pmi, 1);
    refused(pmi, 1, "\n", "rank 1: PMI line ''");
    refused(pmi, 1, "hello\n", "'hello': expected cmd=");
    refused(pmi, 1, "=x\n", "expected cmd=");
    refused(pmi, 1, "key=x cmd=get\n", "expected cmd=");
    refused(pmi, 1, "cmd=fly\n", "unknown command");
    refused(pmi, 1, "cmd=singinit pmi_version=1 pmi_subversion=1\n", "unknown command");
    refused(pmi, 1, "cmd=f\033[2Jly\r\n", "'cmd=f?[2Jly?'");
    refused(pmi, 1, "cmd=get a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8\n", "expected cmd=");
    memset(line, 'x', sizeof(line));
    line[200] = '\n';
    line[201] = '\0';
    refused(pmi, 1, line, "xxx...'");
    CU_ASSERT_TRUE(strlen(err.text) < 200);
    CU_ASSERT_EQUAL(pmi_lines_take(&lines_of[1], pmi, (struct cw_process){.rank = 1},
                                   "cmd=get_m\0xes\n", 14, &err),
                    CW_EPROTO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "zero byte"));
    pmi_free(pmi);
}

TEST(long_lines_are_refused_early)
{
    struct pmi *pmi = make(1);
    char line[LONG_MAX_BYTES];

    init(pmi, 0);
    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\0';
    refused(pmi, 0, line, "longer than 1024");
    line[PMI_LINE_MAX - 1] = '\0';
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, line), "");
    refused(pmi, 0, "x", "longer than 1024");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, line), "");
    refused(pmi, 0, "\n", "expected cmd=");
    pmi_free(pmi);
}

/* --- another process of the same rank --- */

TEST(restart_begins_anew)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    say(pmi, 1, "cmd=put kvsname=kvs_1 key=card-1 value=ff\n");
    say(pmi, 1, "cmd=get kvs"); /* killed in the middle of a line */
    restart(pmi, 1, 0);
    refused(pmi, 1, "cmd=get_maxes\n", "not allowed before init");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=init pmi_version=1 pmi_subversion=1\n"),
                           "1 initialized 0\n"
                           "1< cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=put kvsname=kvs_1 key=card-1 value=ff\n"),
                           "1< cmd=put_result rc=0 msg=success\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=get kvsname=kvs_1 key=card-1\n"),
                           "0< cmd=get_result rc=0 msg=success value=ff\n");
    pmi_free(pmi);
}

TEST(restart_after_finalize)
{
    struct pmi *pmi = make(1);

    init(pmi, 0);
    say(pmi, 0, "cmd=finalize\n");
    restart(pmi, 0, 0);
    init(pmi, 0);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=finalize\n"), "0 finalized 0\n0< cmd=finalize_ack\n");
    pmi_free(pmi);
}

/* Those that were passed are passed at once; the next one waits for all. */
TEST(restart_passes_barriers)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    for (int i = 0; i < 2; i++) {
        say(pmi, 0, "cmd=barrier_in\n");
        say(pmi, 1, "cmd=barrier_in\n");
    }
    restart(pmi, 0, 0);
    init(pmi, 0);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=barrier_in\n"), "0< cmd=barrier_out\n");
    }
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=barrier_in\n"), "");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=barrier_in\n"),
                           "0< cmd=barrier_out\n1< cmd=barrier_out\n");
    pmi_free(pmi);
}

/* The dead one does not count, wherever the others are meanwhile. */
TEST(restart_of_one_in_a_barrier)
{
    struct pmi *pmi = make(RANKS);

    for (uint32_t r = 0; r < RANKS; r++)
        init(pmi, r);
    say(pmi, 0, "cmd=barrier_in\n");
    say(pmi, 1, "cmd=barrier_in\n");
    restart(pmi, 0, 0);
    CU_ASSERT_STRING_EQUAL(say(pmi, 2, "cmd=barrier_in\n"), "");
    init(pmi, 0);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=barrier_in\n"),
                           "0< cmd=barrier_out\n1< cmd=barrier_out\n2< cmd=barrier_out\n");
    pmi_free(pmi);
}

/* Rank 1 asked twice, with different answers: its next process is told the same two. */
TEST(restart_hears_the_same_of_names)
{
    static const char ask[] = "cmd=lookup_name service=ocean\n";
    static const char none[] = "1< cmd=lookup_result rc=-1 msg=service_not_found\n";
    static const char found[] = "1< cmd=lookup_result rc=0 msg=success port=p\n";
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, ask), none);
    say(pmi, 0, "cmd=publish_name service=ocean port=p\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, ask), found);
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=publish_name service=sea port=q\n"),
                           "1< cmd=publish_result rc=0 msg=success\n");
    say(pmi, 0, "cmd=unpublish_name service=ocean\n");
    for (int i = 0; i < 2; i++) {
        restart(pmi, 1, 0);
        init(pmi, 1);
        CU_ASSERT_STRING_EQUAL(say(pmi, 1, ask), none);
        CU_ASSERT_STRING_EQUAL(say(pmi, 1, ask), found);
    }
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=publish_name service=sea port=q\n"),
                           "1< cmd=publish_result rc=0 msg=success\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, ask), none); /* what is new is as it is now */
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=publish_name service=sea port=q\n"),
                           "1< cmd=publish_result rc=-1 msg=already_published\n");
    pmi_free(pmi);
}

TEST(restart_asks_something_else)
{
    struct pmi *pmi = make(1);

    init(pmi, 0);
    say(pmi, 0, "cmd=publish_name service=a port=b\n");
    restart(pmi, 0, 0);
    init(pmi, 0);
    refused(pmi, 0, "cmd=lookup_name service=a\n", "another request than before the restart");
    pmi_free(pmi);
}

TEST(answers_are_bounded)
{
    struct pmi *pmi = make(1);

    init(pmi, 0);
    for (int i = 0; i < PMI_ANSWERS_MAX; i++) {
        say(pmi, 0, "cmd=lookup_name service=a\n");
        CU_ASSERT_PTR_NULL(strstr(story, "forgotten"));
    }
    say(pmi, 0, "cmd=lookup_name service=a\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(story, "0 forgotten"));
    say(pmi, 0, "cmd=lookup_name service=a\n");
    CU_ASSERT_PTR_NULL(strstr(story, "forgotten"));
    pmi_free(pmi);
}

/* --- going on from images --- */

static void barrier_of_two(struct pmi *pmi)
{
    say(pmi, 0, "cmd=barrier_in\n");
    say(pmi, 1, "cmd=barrier_in\n");
}

TEST(image_after_a_barrier)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    CU_ASSERT_PTR_NOT_NULL(places_at(&places[0], 0, PLACE_PMI));
    CU_ASSERT_PTR_NULL(places_at(&places[0], 1, PLACE_PMI));
    barrier_of_two(pmi);
    pmi_mark(pmi, (struct cw_process){0}, 1);
    CU_ASSERT_PTR_NOT_NULL(places_at(&places[0], 1, PLACE_PMI));
    CU_ASSERT_PTR_NULL(places_at(&places[1], 1, PLACE_PMI));
    barrier_of_two(pmi);
    pmi_mark(pmi, (struct cw_process){0}, 2);
    say(pmi, 0, "cmd=barrier_in\n");
    restart(pmi, 0, 1); /* it is past init, and has one barrier to pass that is over */
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=barrier_in\n"), "0< cmd=barrier_out\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=barrier_in\n"), "");
    restart(pmi, 0, 2);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=barrier_in\n"), "");
    CU_ASSERT_STRING_EQUAL(say(pmi, 1, "cmd=barrier_in\n"),
                           "0< cmd=barrier_out\n1< cmd=barrier_out\n");
    places_forget_before(&places[0], 2);
    CU_ASSERT_PTR_NULL(places_at(&places[0], 1, PLACE_PMI));
    CU_ASSERT_PTR_NOT_NULL(places_at(&places[0], 2, PLACE_PMI));
    restart(pmi, 0, 0);
    pmi_free(pmi);
}

TEST(image_between_answers)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    say(pmi, 0, "cmd=lookup_name service=a\n");
    pmi_mark(pmi, (struct cw_process){0}, 1);
    say(pmi, 1, "cmd=publish_name service=a port=p\n");
    say(pmi, 0, "cmd=lookup_name service=a\n");
    say(pmi, 1, "cmd=unpublish_name service=a\n");
    restart(pmi, 0, 1);
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=lookup_name service=a\n"),
                           "0< cmd=lookup_result rc=0 msg=success port=p\n");
    CU_ASSERT_STRING_EQUAL(say(pmi, 0, "cmd=lookup_name service=a\n"),
                           "0< cmd=lookup_result rc=-1 msg=service_not_found\n");
    pmi_free(pmi);
}

/* The image of a rank that is past MPI_Finalize. */
TEST(image_after_finalize)
{
    struct pmi *pmi = make(1);

    init(pmi, 0);
    say(pmi, 0, "cmd=finalize\n");
    pmi_mark(pmi, (struct cw_process){0}, 4);
    restart(pmi, 0, 4);
    pmi_free(pmi);
}

/* MPICH takes none there: whoever says so gets no place, and cannot upset the barrier. */
TEST(image_in_a_request)
{
    struct pmi *pmi = make(2);

    init(pmi, 0);
    init(pmi, 1);
    pmi_mark(pmi, (struct cw_process){0}, 0);
    say(pmi, 0, "cmd=get_");
    CU_ASSERT_TRUE(pmi_lines_are_open(&lines_of[0]));
    say(pmi, 0, "maxes\n");
    CU_ASSERT_FALSE(pmi_lines_are_open(&lines_of[0]));
    say(pmi, 0, "mcmd=spawn\n");
    CU_ASSERT_TRUE(pmi_lines_are_open(&lines_of[0]));
    say(pmi, 0, "totspawns=1\nendcmd\ncmd=barrier_in\n");
    pmi_mark(pmi, (struct cw_process){0}, 3);
    CU_ASSERT_FALSE(pmi_lines_are_open(&lines_of[0]));
    CU_ASSERT_PTR_NULL(places_at(&places[0], 3, PLACE_PMI));
    restart(pmi, 0, 3); /* of no place: from the beginning */
    pmi_free(pmi);
}
