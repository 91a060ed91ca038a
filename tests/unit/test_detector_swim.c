/* SWIM, message by message: what it sends and says, as a story. */
#include "dispatcher/detector/detector.h"
#include "dispatcher/detector/swim_message.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

static void forget(void);

SUITE_AFTER_EACH("detector swim", forget);

#define T 1000u /* a period, in ns */
#define ANSWER 400u

static struct detector *detector;
static char story[4096];
static struct swim_message last; /* that was sent */
static uint32_t last_to, n;

static void say(const char *what, uint32_t process)
{
    size_t used = strlen(story);

    snprintf(story + used, sizeof(story) - used, "%s%s %u", used ? "; " : "", what, process);
}

/* Whom it probes is a matter of chance: stories do not say. */
static void on_send(void *ctx, uint32_t to, const uint8_t *bytes, size_t size)
{
    static const char *const kinds[] = {"probe", "ack", "request", "nack"};
    struct cw_err err;
    size_t used = strlen(story);

    (void)ctx;
    CU_ASSERT_EQUAL_FATAL(swim_message_read(&last, bytes, size, n, &err), CW_OK);
    last_to = to;
    snprintf(story + used, sizeof(story) - used, "%s%s", used ? "; " : "",
             kinds[last.kind - SWIM_PROBE]);
}

static void on_verdict(void *ctx, uint32_t process, enum detector_verdict verdict)
{
    (void)ctx;
    say(verdict == DETECTOR_FAILED ? "FAILED" : "BACK", process);
}

static void forget(void)
{
    detector_free(detector);
    detector = NULL;
    story[0] = '\0';
}

static void begin_hanging(uint32_t processes, uint32_t health_max, uint64_t hangup_ns)
{
    struct detector_config config = {.kind = DETECTOR_SWIM,
                                     .n = processes,
                                     .gossip_ns = T,
                                     .ping_ns = ANSWER,
                                     .hangup_ns = hangup_ns,
                                     .heartbeat = 1,
                                     .health_max = health_max};
    struct detector_out out = {.send = on_send, .verdict = on_verdict};

    n = processes;
    detector = detector_new(&config, &out, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(detector);
}

static void begin(uint32_t processes, uint32_t health_max)
{
    begin_hanging(processes, health_max, 0);
}

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

static int try_get(uint32_t from, const struct swim_message *m, uint64_t now_ns)
{
    uint8_t bytes[SWIM_MESSAGE_MAX];
    struct cw_writer w = cw_writer(bytes, sizeof(bytes));
    struct cw_err err = {0};

    swim_message_write(&w, m);
    return detector_receive(detector, from, bytes, w.used, now_ns, &err);
}

static void get(uint32_t from, enum swim_message_kind kind, uint16_t seq, uint64_t now_ns)
{
    struct swim_message m = {.kind = kind, .seq = seq};

    CU_ASSERT_EQUAL(try_get(from, &m, now_ns), CW_OK);
}

/* With one update; seq 999 answers nothing. */
static void get_update(uint32_t from, uint16_t member, uint8_t state, uint16_t incarnation,
                       uint16_t accuser, uint64_t now_ns)
{
    struct swim_message m = {.kind = SWIM_ACK, .seq = 999, .count = 1};

    m.updates[0] = (struct swim_update){member, incarnation, accuser, state};
    CU_ASSERT_EQUAL(try_get(from, &m, now_ns), CW_OK);
}

/* All have started. */
static void hear_all(uint64_t now_ns)
{
    for (uint32_t i = 1; i < n; i++)
        get(i, SWIM_ACK, 999, now_ns);
}

/* The update about a member in the message that was sent last; NULL: none. */
static const struct swim_update *told(uint16_t member)
{
    for (uint32_t i = 0; i < last.count; i++)
        if (last.updates[i].member == member)
            return &last.updates[i];
    return NULL;
}

/* [SWIM] 3.1: one is probed a period; then k others are asked; then it is suspected, and in the end
 * it has failed. n = 2 has no others. */
TEST(the_only_other_one_is_suspected_and_fails)
{
    begin(2, 0);
    hear_all(10);
    pass(1999);
    expect("probe");
    pass(2000); /* suspected; 5 periods until that is a failure */
    expect("probe");
    CU_ASSERT_PTR_NOT_NULL(told(1));
    pass(6999);
    expect("probe; probe; probe; probe");
    pass(7000);
    expect("FAILED 1; probe");
}

TEST(helpers_are_asked_and_one_that_reaches_it_is_enough)
{
    begin(8, 8);
    hear_all(10);
    pass(1000 + ANSWER);
    expect("probe; request; request; request");
    get(last_to, SWIM_ACK, last.seq, 1500);
    pass(2000); /* the next period; nobody is suspected */
    expect("probe");
    CU_ASSERT_EQUAL(last.count, 0);
    pass(3000); /* now one is, with a new number */
    expect("request; request; request; probe");
    CU_ASSERT_EQUAL(last.count, 1);
}

TEST(those_that_answer_are_never_suspected)
{
    begin(5, 8);
    hear_all(10);
    for (uint64_t at = 1000; at <= 200000; at += 1000) {
        pass(at);
        CU_ASSERT_EQUAL(last.kind, SWIM_PROBE);
        CU_ASSERT_EQUAL(last.count, 0);
        get(last_to, SWIM_ACK, last.seq, at + 300);
    }
    CU_ASSERT_PTR_NULL(strstr(story, "FAILED"));
    CU_ASSERT_PTR_NULL(strstr(story, "request"));
}

/* [SWIM] 4.3: each in turn, in the longest case after 2n - 1 periods. */
TEST(each_is_probed_once_in_n_periods)
{
    uint32_t probes[9] = {0};

    begin(9, 0);
    for (uint64_t at = 1000; at <= 8 * 10 * 1000; at += 1000) {
        pass(at);
        probes[last_to]++;
        get(last_to, SWIM_ACK, last.seq, at + 100);
    }
    CU_ASSERT_EQUAL(probes[0], 0);
    for (uint32_t i = 1; i < 9; i++)
        CU_ASSERT_EQUAL(probes[i], 10);
}

/* [SWIM] 4.2 */
TEST(one_that_is_suspected_refutes_that)
{
    const struct swim_update *u;

    begin(4, 8);
    get_update(2, 0, SWIM_SUSPECT, 0, 3, 100);
    get(1, SWIM_PROBE, 7, 200);
    expect("ack");
    u = told(0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(u);
    CU_ASSERT_TRUE(u->state == SWIM_ALIVE && u->incarnation == 1);
    get_update(2, 0, SWIM_SUSPECT, 0, 1, 300); /* which is refuted already */
    get_update(2, 0, SWIM_DEAD, 4, 1, 400);
    get(1, SWIM_PROBE, 8, 500);
    u = told(0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(u);
    CU_ASSERT_TRUE(u->state == SWIM_ALIVE && u->incarnation == 5);
    forget();
    begin(4, 8);
    get_update(2, 0, SWIM_ALIVE, 5, 3, 100);            /* what it said itself */
    get_update(2, 0, SWIM_SUSPECT, UINT16_MAX, 3, 100); /* there is none higher */
    get(1, SWIM_PROBE, 8, 500);
    CU_ASSERT_PTR_NULL(told(0));
}

TEST(refuted_suspicion_is_no_failure)
{
    begin(20, 0);
    hear_all(10);
    get_update(2, 5, SWIM_SUSPECT, 0, 3, 100);
    get_update(4, 5, SWIM_ALIVE, 1, 0, 5000);
    for (uint64_t at = 1000; at <= 30000; at += 1000) {
        pass(at);
        get(last_to, SWIM_ACK, last.seq, at + 100);
    }
    CU_ASSERT_PTR_NULL(strstr(story, "FAILED"));
    get_update(2, 5, SWIM_SUSPECT, 0, 3, 31000); /* of an earlier incarnation */
    for (uint64_t at = 31000; at <= 60000; at += 1000) {
        pass(at);
        get(last_to, SWIM_ACK, last.seq, at + 100);
    }
    CU_ASSERT_PTR_NULL(strstr(story, "FAILED"));
}

/* [SWIM] 4.1: an update is sent on λ log(n) times, 4 here, once in a message; those that were sent
 * least often first. */
TEST(updates_are_sent_on_so_often)
{
    uint32_t told_of[10] = {0};

    begin(9, 0);
    for (uint16_t member = 3; member < 9; member++)
        get_update(2, member, SWIM_DEAD, 0, 3, 100);
    for (uint32_t i = 0; i < 10; i++) {
        get(1, SWIM_PROBE, 7, 200);
        for (uint32_t k = 0; k < last.count; k++)
            told_of[last.updates[k].member]++;
        CU_ASSERT_EQUAL(last.count, i < 4 ? 6 : 0);
    }
    for (uint32_t member = 3; member < 9; member++)
        CU_ASSERT_EQUAL(told_of[member], 4);
}

TEST(verdicts_follow_incarnations)
{
    begin(8, 8);
    get_update(2, 5, SWIM_DEAD, 3, 3, 100);
    expect("FAILED 5");
    get_update(2, 5, SWIM_SUSPECT, 3, 3, 110);
    get_update(2, 5, SWIM_ALIVE, 3, 3, 120);
    get_update(2, 5, SWIM_DEAD, 2, 3, 130);
    expect("");
    get_update(2, 5, SWIM_ALIVE, 4, 3, 140);
    expect("BACK 5");
    get_update(2, 5, SWIM_DEAD, 3, 3, 150);
    expect("");
}

/* When the member, that is suspected at 100, has failed: with all others answering. */
static uint64_t failure_ns(uint32_t confirmations)
{
    for (uint16_t i = 0; i <= confirmations; i++)
        get_update(2, 5, SWIM_SUSPECT, 0, (uint16_t)(3 + i), 100);
    for (uint64_t at = 1000;; at += 10) {
        pass(at);
        if (strstr(story, "FAILED 5"))
            return at;
        if (last.kind == SWIM_PROBE)
            get(last_to, SWIM_ACK, last.seq, at);
        last.kind = SWIM_ACK;
    }
}

/* [Lifeguard] 4.2: max(Min, Max - (Max - Min) log(C + 1) / log(K + 1)), here with Min = 5 periods
 * and Max = 30: 30, 17.5, 10.19 and 5 */
TEST(confirmations_shorten_suspicion)
{
    static const uint64_t ends[] = {30100, 17600, 10290, 5100, 5100};

    for (uint32_t c = 0; c < sizeof(ends) / sizeof(*ends); c++) {
        uint64_t end;

        begin(10, 8);
        end = failure_ns(c);
        CU_ASSERT_TRUE(end >= ends[c] && end < ends[c] + 30);
        forget();
    }
    begin(10, 0); /* without local health it is the shortest */
    CU_ASSERT_TRUE(failure_ns(0) < 5130);
}

/* One accuser that is heard often does not count twice. */
TEST(an_accuser_confirms_once)
{
    begin(10, 8);
    for (uint32_t i = 0; i < 10; i++)
        get_update(2, 5, SWIM_SUSPECT, 0, 3, 90);
    CU_ASSERT_TRUE(failure_ns(0) > 30000);
}

/* From a probe, which is due next, until others are asked. */
static uint64_t patience_ns(void)
{
    uint64_t start = detector_due_ns(detector);

    pass(start);
    CU_ASSERT_EQUAL(last.kind, SWIM_PROBE);
    start = detector_due_ns(detector) - start;
    pass(detector_due_ns(detector));
    CU_ASSERT_EQUAL(last.kind, SWIM_REQUEST);
    return start;
}

/* [Lifeguard] 4.1: who gets no answers, not even from helpers, waits longer and longer, up to 9
 * times as long. */
TEST(one_that_hears_nothing_takes_its_time)
{
    begin(8, 8);
    hear_all(10);
    CU_ASSERT_EQUAL(patience_ns(), ANSWER);
    CU_ASSERT_EQUAL(patience_ns(), 4 * ANSWER); /* three helpers were silent */
    CU_ASSERT_EQUAL(patience_ns(), 7 * ANSWER);
    CU_ASSERT_EQUAL(patience_ns(), 9 * ANSWER);
    CU_ASSERT_EQUAL(patience_ns(), 9 * ANSWER);
    forget();
    begin(8, 0);
    hear_all(10);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(patience_ns(), ANSWER);
}

TEST(one_that_is_suspected_or_unhealthy_recovers)
{
    begin(8, 8);
    hear_all(10);
    get_update(2, 0, SWIM_SUSPECT, 0, 3, 100);
    CU_ASSERT_EQUAL(patience_ns(), 2 * ANSWER); /* it had to refute that */
    get(1, SWIM_ACK, last.seq, detector_due_ns(detector) - 1);
    CU_ASSERT_EQUAL(patience_ns(), ANSWER);
}

TEST(the_dead_are_no_helpers)
{
    begin(5, 0);
    hear_all(10);
    get_update(2, 1, SWIM_DEAD, 0, 3, 100);
    get_update(2, 2, SWIM_DEAD, 0, 3, 100);
    for (uint32_t i = 0; i < 4; i++) {
        patience_ns();
        CU_ASSERT_TRUE(last_to > 2);
        CU_ASSERT_PTR_NULL(strstr(story, "request; request; request"));
    }
}

TEST(helpers_that_say_no_leave_it_healthy)
{
    begin(8, 8);
    hear_all(10);
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(patience_ns(), ANSWER);
        for (uint32_t k = 0; k < 3; k++)
            get(1, SWIM_NACK, last.seq, 1000 + i * T + ANSWER + 100);
    }
}

/* [Lifeguard] 4.3 */
TEST(one_that_is_suspected_hears_it_first)
{
    const struct swim_update *u;

    begin(8, 8);
    get_update(2, 5, SWIM_SUSPECT, 0, 3, 100);
    for (uint32_t i = 0; i < 60; i++) /* until it is told to nobody else any more */
        get(1, SWIM_PROBE, 7, 200);
    CU_ASSERT_PTR_NULL(told(5));
    get(5, SWIM_PROBE, 7, 300);
    u = told(5);
    CU_ASSERT_PTR_NOT_NULL_FATAL(u);
    CU_ASSERT_TRUE(u->state == SWIM_SUSPECT && u->accuser == 3);
}

TEST(one_that_was_declared_dead_hears_it)
{
    begin(8, 0);
    get_update(2, 5, SWIM_DEAD, 0, 3, 100);
    for (uint32_t i = 0; i < 60; i++)
        get(1, SWIM_PROBE, 7, 200);
    get(5, SWIM_PROBE, 7, 300);
    CU_ASSERT_PTR_NOT_NULL_FATAL(told(5));
    CU_ASSERT_EQUAL(told(5)->state, SWIM_DEAD);
}

TEST(a_helper_passes_the_answer_on_or_says_no)
{
    struct swim_message request = {.kind = SWIM_REQUEST, .seq = 70, .target = 3};

    begin(8, 8);
    CU_ASSERT_EQUAL(try_get(2, &request, 100), CW_OK);
    expect("probe");
    CU_ASSERT_EQUAL(last_to, 3);
    get(3, SWIM_ACK, last.seq, 200);
    expect("ack");
    CU_ASSERT_TRUE(last_to == 2 && last.seq == 70);
    get(3, SWIM_ACK, 1, 210); /* the same again */
    expect("");
    pass(999);
    expect("");
    request.seq = 71;
    CU_ASSERT_EQUAL(try_get(2, &request, 100), CW_OK);
    pass(100 + ANSWER * 8 / 10);
    expect("probe; nack");
    CU_ASSERT_TRUE(last_to == 2 && last.seq == 71);
    request.target = 0;
    CU_ASSERT_EQUAL(try_get(2, &request, 100), CW_EPROTO);
    request.target = 2;
    CU_ASSERT_EQUAL(try_get(2, &request, 100), CW_EPROTO);
    forget();
    begin(8, 0); /* without local health nobody wants a no */
    request.target = 3;
    CU_ASSERT_EQUAL(try_get(2, &request, 100), CW_OK);
    pass(999);
    expect("probe");
}

TEST(one_that_was_never_heard_has_not_started)
{
    begin(2, 0);
    pass(20000);
    CU_ASSERT_PTR_NULL(strstr(story, "FAILED"));
    hear_all(20100); /* too late for the probe at 20000 */
    pass(26999);
    CU_ASSERT_PTR_NULL(strstr(story, "FAILED"));
    pass(40000);
    CU_ASSERT_PTR_NOT_NULL(strstr(story, "FAILED 1"));
}

TEST(one_that_was_stopped_accuses_nobody)
{
    begin(2, 0);
    hear_all(10);
    pass(2500); /* it suspects the other */
    story[0] = '\0';
    detector_advance(detector, 900000);
    expect("probe");
    pass(904999);
    CU_ASSERT_PTR_NULL(strstr(story, "FAILED"));
    pass(905000);
    CU_ASSERT_PTR_NOT_NULL(strstr(story, "FAILED"));
    forget();
    begin(8, 0);
    hear_all(10);
    pass(1000); /* its probe is on the way */
    detector_advance(detector, 900000);
    CU_ASSERT_TRUE(last.kind == SWIM_PROBE && last.count == 0);
}

TEST(hangups_of_the_network_are_added_to_suspicion)
{
    begin_hanging(2, 0, 2500);
    hear_all(10);
    pass(9499);
    CU_ASSERT_PTR_NULL(strstr(story, "FAILED"));
    pass(9500);
    CU_ASSERT_PTR_NOT_NULL(strstr(story, "FAILED"));
}

TEST(malformed_messages_are_refused)
{
    static const uint8_t bad[][12] = {{15, 0, 0},
                                      {20, 0, 0},
                                      {SWIM_REQUEST, 0, 0, 8, 0},
                                      {SWIM_ACK, 0, 0, 8, 0, 0, 0, 0, 0, 0},
                                      {SWIM_ACK, 0, 0, 1, 0, 3, 0, 0, 0, 0},
                                      {SWIM_ACK, 0, 0, 1, 0, 0, 0, 0, 8, 0}};
    static const size_t sizes[] = {3, 3, 5, 10, 10, 10};
    uint8_t ack[3 + 7 * 9] = {SWIM_ACK};
    struct cw_err err;

    begin(8, 8);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        CU_ASSERT_EQUAL(detector_receive(detector, 1, bad[i], sizes[i], 10, &err), CW_EPROTO);
    for (size_t size = 0; size <= sizeof(ack); size++)
        CU_ASSERT_EQUAL(detector_receive(detector, 1, ack, size, 10, &err),
                        size >= 3 && size <= 3 + 7 * 8 && (size - 3) % 7 == 0 ? CW_OK : CW_EPROTO);
    CU_ASSERT_EQUAL(detector_receive(detector, 0, ack, 3, 10, &err), CW_EPROTO);
    CU_ASSERT_EQUAL(detector_receive(detector, 8, ack, 3, 10, &err), CW_EPROTO);
}
