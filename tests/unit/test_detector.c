/* A heartbeat detector, message by message: what it sends and says, as a story. */
#include "dispatcher/detector/detector.h"
#include "dispatcher/detector/table_message.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

static void forget(void);

SUITE_AFTER_EACH("detector", forget);

#define T 1000u   /* T_gossip, in ns: times read as thousandths of rounds */
#define PING 700u /* for an answer */

static struct detector *detector;
static char story[4096];
static uint8_t last[DETECTOR_MESSAGE_MAX]; /* message that was sent */
static size_t last_size;
static uint32_t n;

static void say(const char *what, uint32_t process, uint32_t heartbeat)
{
    size_t used = strlen(story);

    snprintf(story + used, sizeof(story) - used, heartbeat ? "%s%s %u (%u)" : "%s%s %u",
             used ? "; " : "", what, process, heartbeat);
}

static void on_send(void *ctx, uint32_t to, const uint8_t *bytes, size_t size)
{
    static const char *const kinds[] = {[TABLE_WHOLE] = "table",
                                        [TABLE_DIFFERENCE] = "table",
                                        [TABLE_WANTED] = "wanted",
                                        [TABLE_PING] = "ping",
                                        [TABLE_PONG] = "pong"};
    struct table_message m;
    struct cw_err err;

    (void)ctx;
    CU_ASSERT_EQUAL_FATAL(table_message_read(&m, bytes, size, n, &err), CW_OK);
    memcpy(last, bytes, size);
    last_size = size;
    say(kinds[m.kind], to, m.heartbeat);
}

static void on_verdict(void *ctx, uint32_t process, enum detector_verdict verdict)
{
    (void)ctx;
    say(verdict == DETECTOR_FAILED ? "FAILED" : "BACK", process, 0);
}

static void forget(void)
{
    detector_free(detector);
    detector = NULL;
    story[0] = '\0';
}

static void begin(enum detector_kind kind, uint32_t self, uint32_t processes, uint64_t hangup_ns)
{
    struct detector_config config = {.kind = kind,
                                     .self = self,
                                     .n = processes,
                                     .gossip_ns = T,
                                     .hangup_ns = hangup_ns,
                                     .ping_ns = PING,
                                     .heartbeat = 1};
    struct detector_out out = {.send = on_send, .verdict = on_verdict};

    n = processes;
    detector = detector_new(&config, &out, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(detector);
}

/* Up to that time, as a caller does that is never late. */
static void pass(uint64_t until_ns)
{
    while (detector_due_ns(detector) <= until_ns)
        detector_advance(detector, detector_due_ns(detector));
}

#define expect(text)                                                                               \
    do {                                                                                           \
        if (strcmp(story, text) != 0)                                                              \
            printf("# got: %s\n", story);                                                          \
        CU_ASSERT_STRING_EQUAL(story, text);                                                       \
        story[0] = '\0';                                                                           \
    } while (0)

static int get(uint32_t from, const void *bytes, size_t size, uint64_t now_ns)
{
    struct cw_err err = {0};

    return detector_receive(detector, from, bytes, size, now_ns, &err);
}

/* A whole table. `behind`: for distances 1 to n - 1 from its sender; -1: never heard. */
static void get_table(uint32_t from, uint8_t lane, uint16_t number, uint32_t heartbeat,
                      const int *behind, uint64_t now_ns)
{
    struct table_message m = {.lane = lane, .number = number, .heartbeat = heartbeat};
    uint8_t codes[16], bytes[64];
    struct cw_writer w = cw_writer(bytes, sizeof(bytes));

    for (uint32_t d = 1; d < n; d++)
        codes[d] = behind[d - 1] < 0 ? TABLE_UNKNOWN : (uint8_t)(behind[d - 1] + 1);
    table_message_write(&w, &m, codes, NULL, n);
    CU_ASSERT_EQUAL(get(from, bytes, w.used, now_ns), CW_OK);
}

static void get_short(uint32_t from, enum table_message_kind kind, uint32_t heartbeat,
                      uint64_t now_ns)
{
    struct table_message m = {.kind = kind, .heartbeat = heartbeat};
    uint8_t bytes[16];
    struct cw_writer w = cw_writer(bytes, sizeof(bytes));

    table_message_write_short(&w, &m);
    CU_ASSERT_EQUAL(get(from, bytes, w.used, now_ns), CW_OK);
}

/* [FM] 4: "node 2 gets incoming messages from node 1 (in the 1st round) and from node 0 (2nd round)
 * only. Therefore, if node 0 and 1 fail, node 2 will not receive any more gossip messages. After
 * T_cleanup units of time, node 2 will suspect node 3 to have failed even if it is not true." The
 * ping procedure finds out. */
TEST(node_2_of_four_that_hears_nobody_asks_node_3)
{
    begin(DETECTOR_BRR, 2, 4, 0);
    get_table(1, 0, 1, 1, (int[]){0, 0, 0}, 500); /* the last that it hears */
    pass(4000);
    expect("table 0 (2); table 3 (3); table 0 (4); table 3 (5)");
    pass(5000); /* 4 rounds of T_cleanup after that */
    expect("table 0 (6); ping 0; ping 1; ping 3");
    get_short(3, TABLE_PONG, 6, 5300);
    pass(5000 + PING);
    expect("FAILED 0; FAILED 1");
    pass(9000);
    expect("table 3 (7); table 0 (8); table 3 (9); table 0 (10)");
    pass(10000); /* and again, for it still hears nobody */
    expect("table 3 (11); ping 3");
    get_short(3, TABLE_PONG, 11, 10300);
    pass(10000 + PING);
    expect("");
}

/* [FM] 4: "adopts for each host the maximum heartbeat found" */
TEST(tables_are_merged_by_maximum)
{
    struct table_message m;
    struct cw_err err;

    begin(DETECTOR_BRR, 0, 4, 0);
    pass(9000);                                     /* its heartbeat is 10 */
    get_table(3, 0, 1, 10, (int[]){5, 2, 4}, 9100); /* of 0: 5, of 1: 8, of 2: 6 */
    get_table(2, 1, 1, 10, (int[]){3, 1, 5}, 9200); /* of 3: 7, of 0: 9, of 1: 5 */
    story[0] = '\0';
    pass(10000);
    expect("table 1 (11)");
    get_short(1, TABLE_PING, 0, 10100);
    expect("pong 1 (11)");
    pass(11000);
    CU_ASSERT_EQUAL(table_message_read(&m, last, last_size, 4, &err), CW_OK);
    CU_ASSERT_EQUAL(m.kind, TABLE_WHOLE); /* a difference would be as long */
    CU_ASSERT_EQUAL(m.heartbeat, 12);
    /* of 1: 8, of 2: 10, of 3: 10; one more than what each is behind */
    CU_ASSERT_EQUAL(memcmp(m.entries.at, (uint8_t[]){5, 3, 3}, 3), 0);
}

/* [FM] (4) and figure 5 */
TEST(initial_heartbeat_is_that_of_equation_4)
{
    const uint64_t s = 1000000000ull;

    /* the submitter: ⌈(T_0 - t_s1) / T_gossip⌉ */
    CU_ASSERT_EQUAL(detector_initial_heartbeat(17 * s, 10 * s, 0, s / 2), 14);
    /* peer 3 heard of it 0.3 s after peer 1, and took 6.4 s for its files */
    CU_ASSERT_EQUAL(detector_initial_heartbeat(106400000000ull, 100 * s, 300000000, s / 2), 14);
    CU_ASSERT_EQUAL(detector_initial_heartbeat(106400000000ull, 100 * s, 100000001, s / 2), 14);
    CU_ASSERT_EQUAL(detector_initial_heartbeat(106400000000ull, 100 * s, 100000000, s / 2), 13);
    CU_ASSERT_EQUAL(detector_initial_heartbeat(s, s, 0, s), 1);
    CU_ASSERT_EQUAL(detector_initial_heartbeat(UINT64_MAX / 2, 0, 0, 1), DETECTOR_HEARTBEAT_MAX);
}

/* [FM] 5.3: "the FD should not declare nodes that have not yet started their FD as failed" */
TEST(one_that_was_never_heard_has_not_started)
{
    begin(DETECTOR_BRR, 2, 4, 0);
    get_table(1, 0, 1, 1, (int[]){0, -1, -1}, 500);
    pass(4000);
    story[0] = '\0';
    pass(6000 + PING);
    expect("table 0 (6); ping 1; FAILED 1; table 3 (7)");
}

TEST(hangups_of_the_network_are_added_to_both_times)
{
    begin(DETECTOR_DBRR, 0, 2, 5 * T); /* T_cleanup is 3 rounds */
    get_table(1, 0, 1, 1, (int[]){-1}, 500);
    pass(8000);
    story[0] = '\0';
    pass(9000);
    expect("table 1 (10); ping 1");
    pass(9000 + PING + 5 * T - 1);
    story[0] = '\0';
    pass(9000 + PING + 5 * T);
    expect("FAILED 1");
    forget();
    begin(DETECTOR_DBRR, 0, 2, 5 * T);
    get_table(1, 0, 1, 1, (int[]){-1}, 500);
    pass(9000);
    story[0] = '\0';
    get_short(1, TABLE_PONG, 1, 9100); /* long before it has to come */
    pass(17000);
    CU_ASSERT_PTR_NULL(strstr(story, "ping"));
    pass(18000);
    CU_ASSERT_PTR_NOT_NULL(strstr(story, "ping"));
}

TEST(a_failed_process_that_is_heard_again_is_back)
{
    begin(DETECTOR_BRR, 0, 2, 0);
    get_table(1, 0, 1, 1, (int[]){-1}, 500);
    pass(3000 + PING);
    expect("table 1 (2); table 1 (3); table 1 (4); ping 1; FAILED 1");
    get_table(1, 0, 2, 1, (int[]){-1}, 3800); /* nothing new */
    expect("");
    get_table(1, 0, 3, 5, (int[]){-1}, 3900);
    expect("BACK 1");
}

/* News that are older than T_cleanup are no sign of life. */
TEST(a_failed_process_is_not_back_by_old_news)
{
    begin(DETECTOR_BRR, 0, 4, 0);
    get_table(3, 0, 1, 1, (int[]){-1, 0, 0}, 500); /* of 1 and 2 */
    pass(5000 + PING);
    CU_ASSERT_PTR_NOT_NULL(strstr(story, "FAILED 1; FAILED 2; FAILED 3"));
    story[0] = '\0';
    get_table(3, 0, 2, 8, (int[]){-1, 6, 4}, 5900); /* of 1: 2, of 2: 4; its own heartbeat is 7 */
    expect("BACK 3; BACK 2");
}

/* Under SIGSTOP, on a suspended laptop, in a virtual machine that moved. */
TEST(one_that_was_stopped_suspects_nobody_before_it_has_heard_a_whole_cycle)
{
    begin(DETECTOR_BRR, 0, 4, 0);
    get_table(3, 0, 1, 1, (int[]){-1, 0, 0}, 500);
    pass(3000);
    story[0] = '\0';
    detector_advance(detector, 1000000);
    expect("table 1 (1001)");                          /* it is in step again */
    get_table(3, 0, 2, 4, (int[]){-1, 1, 1}, 1000100); /* which was on its way since 3500 */
    pass(1004000);
    expect("table 2 (1002); table 1 (1003); table 2 (1004); table 1 (1005)");
    pass(1005000); /* as after any T_cleanup without news */
    expect("table 2 (1006); ping 1; ping 2; ping 3");
}

/* The others' heartbeats count the same rounds. */
TEST(one_that_was_stopped_counts_what_it_missed_once)
{
    begin(DETECTOR_BRR, 0, 4, 0);
    get_table(3, 0, 1, 1, (int[]){-1, 0, 0}, 500);
    pass(3000);
    story[0] = '\0';
    get_table(3, 0, 2, 1000, (int[]){-1, -1, -1}, 1000000);
    detector_advance(detector, 1000000);
    expect("table 1 (1001)"); /* and no pings */
}

TEST(one_that_was_stopped_remembers_who_has_failed)
{
    begin(DETECTOR_BRR, 0, 2, 0);
    get_table(1, 0, 1, 1, (int[]){-1}, 500);
    pass(3000 + PING);
    CU_ASSERT_PTR_NOT_NULL(strstr(story, "FAILED 1"));
    story[0] = '\0';
    detector_advance(detector, 900000);
    pass(903000);
    expect("table 1 (901); table 1 (902); table 1 (903); table 1 (904)");
    get_table(1, 0, 2, 904, (int[]){-1}, 903100);
    expect("BACK 1");
}

/* Also when a message comes first, and where a ping was on its way. */
TEST(one_that_was_stopped_forgets_its_pings)
{
    begin(DETECTOR_BRR, 0, 2, 0);
    get_table(1, 0, 1, 1, (int[]){-1}, 500);
    pass(3000);
    expect("table 1 (2); table 1 (3); table 1 (4); ping 1");
    get_table(1, 0, 2, 1, (int[]){-1}, 900000);
    expect("");
    detector_advance(detector, 900000);
    pass(902000);
    expect("table 1 (901); table 1 (902); table 1 (903)");
    pass(903000);
    expect("table 1 (904); ping 1");
}

/* It answers before its next round, with the heartbeat that the other knows. */
TEST(an_answer_counts_though_the_heartbeat_has_not_risen)
{
    begin(DETECTOR_BRR, 0, 2, 0);
    get_table(1, 0, 1, 1, (int[]){-1}, 500);
    pass(3000);
    story[0] = '\0';
    get_short(1, TABLE_PONG, 1, 3500);
    pass(3000 + PING);
    expect("");
    pass(6000); /* T_cleanup later it is asked again */
    expect("table 1 (5); table 1 (6); table 1 (7); ping 1");
}

/* The kind of the table that was sent last. */
static enum table_message_kind last_kind(void)
{
    return (enum table_message_kind)last[0];
}

/* As a difference to what was sent one cycle before, of 4 rounds here. */
TEST(only_what_has_changed_is_sent)
{
    static const uint8_t changed[] = {4, 5}; /* after 4 that have not: of 5, which is 4 behind */
    int behind[15] = {0};

    begin(DETECTOR_BRR, 0, 16, 0);
    get_table(15, 0, 1, 1, behind, 900); /* in its next round, 2, each is one behind */
    pass(1000);
    CU_ASSERT_TRUE(last_kind() == TABLE_WHOLE && last_size == 8 + 15);
    pass(4000);
    get_table(15, 0, 2, 5, behind, 4900);
    pass(5000);
    CU_ASSERT_TRUE(last_kind() == TABLE_DIFFERENCE && last_size == 8);
    behind[5] = 3; /* distance 6 from 15: of 5 */
    pass(8000);
    get_table(15, 0, 3, 9, behind, 8900);
    pass(9000);
    CU_ASSERT_TRUE(last_kind() == TABLE_DIFFERENCE && last_size == 8 + 2);
    CU_ASSERT_EQUAL(memcmp(last + 8, changed, 2), 0);
}

/* A difference to a table that did not come is no use: the receiver asks for all, the sender sends
 * it at once. */
TEST(a_difference_that_cannot_be_read_is_asked_for_again)
{
    static const uint8_t difference[] = {TABLE_DIFFERENCE, 0, 3, 0, 4, 0, 0, 0, 1, 9};
    static const uint8_t wanted[] = {TABLE_WANTED, 0};
    int behind[15];

    begin(DETECTOR_BRR, 0, 16, 0);
    memset(behind, -1, sizeof(behind));
    get_table(15, 0, 1, 1, behind, 500);
    CU_ASSERT_EQUAL(get(15, difference, sizeof(difference), 600), CW_OK); /* 2 is missing */
    expect("wanted 15");
    CU_ASSERT_EQUAL(get(15, difference, sizeof(difference), 700), CW_OK);
    expect("wanted 15");
    get_table(15, 0, 2, 4, behind, 800);
    CU_ASSERT_EQUAL(get(15, difference, sizeof(difference), 900), CW_OK);
    expect("");
    pass(8000);
    CU_ASSERT_EQUAL(last_kind(), TABLE_DIFFERENCE);
    story[0] = '\0';
    CU_ASSERT_EQUAL(get(2, wanted, sizeof(wanted), 8100), CW_EPROTO); /* 1 hears it then */
    CU_ASSERT_EQUAL(get(1, wanted, sizeof(wanted), 8100), CW_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(story, "table 1"));
    CU_ASSERT_EQUAL(last_kind(), TABLE_WHOLE);
}

/* Tables say where the sender is; one that is behind, as its clock is slow, catches up. */
TEST(one_that_is_behind_catches_up)
{
    begin(DETECTOR_BRR, 0, 2, 0);
    get_table(1, 0, 1, 50, (int[]){10}, 500);
    pass(1000);
    expect("table 1 (50)");
}

/* One that was started again hears of itself, and goes on from there. */
TEST(one_that_was_started_again_goes_on_from_its_last_heartbeat)
{
    begin(DETECTOR_BRR, 0, 4, 0);
    get_table(3, 0, 1, 30, (int[]){-1, -1, -1}, 400);
    pass(1000);
    expect("table 2 (30)");
    get_table(3, 0, 2, 31, (int[]){-5 + 5, -1, -1}, 1100); /* of 0: 31 */
    pass(2000);
    expect("table 2 (32)");
}

/* Every message that is cut, or longer, or of another process, is refused. */
TEST(malformed_messages_are_refused)
{
    static const uint8_t sound[][12] = {{TABLE_WHOLE, 0, 1, 0, 9, 0, 0, 0, 1, 1, 1},
                                        {TABLE_DIFFERENCE, 0, 2, 0, 9, 0, 0, 0, 2, 7},
                                        {TABLE_WANTED, 0},
                                        {TABLE_PONG, 9, 0, 0, 0}};
    static const size_t sizes[] = {11, 10, 2, 5};
    static const uint32_t from[] = {3, 3, 1, 3};
    static const uint8_t bad[][10] = {
        {0},
        {6},
        {16},
        {TABLE_DIFFERENCE, 0, 2, 0, 9, 0, 0, 0, 3, 7},    /* beyond the last */
        {TABLE_DIFFERENCE, 0, 2, 0, 9, 0, 0, 0x80, 0, 7}, /* a heartbeat too high */
        {TABLE_DIFFERENCE, 2, 2, 0, 9, 0, 0, 0, 0, 7},    /* no such round */
        {TABLE_DIFFERENCE, 1, 2, 0, 9, 0, 0, 0, 0, 7},    /* in which 3 sends to 1 */
    };

    begin(DETECTOR_BRR, 0, 4, 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        for (size_t size = 0; size < sizes[i]; size++)
            if (i != 1 || size != 8) /* no changes is sound */
                CU_ASSERT_EQUAL(get(from[i], sound[i], size, 100), CW_EPROTO);
        CU_ASSERT_EQUAL(get(from[i], sound[i], sizes[i] + 1, 100), CW_EPROTO);
        CU_ASSERT_EQUAL(get(0, sound[i], sizes[i], 100), CW_EPROTO);
        CU_ASSERT_EQUAL(get(4, sound[i], sizes[i], 100), CW_EPROTO);
        CU_ASSERT_EQUAL(get(from[i], sound[i], sizes[i], 100), CW_OK);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CU_ASSERT_EQUAL(get(3, bad[i], 10, 100), CW_EPROTO);
    forget();
    begin(DETECTOR_BRR, 0, 3, 0); /* the cycle has two rounds; 4 further is 1 further */
    CU_ASSERT_EQUAL(get(2, (uint8_t[]){TABLE_WHOLE, 2, 1, 0, 9, 0, 0, 0, 1, 1}, 10, 100),
                    CW_EPROTO);
}
