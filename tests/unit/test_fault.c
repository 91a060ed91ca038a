/* Faults for drills: what the options say, and when which rank is hit. */
#include "dispatcher/job/fault.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <string.h>

SUITE("fault");

#define MS 1000000ull
#define START 7000000000ull
#define RANKS 4
#define RELAYS 3
#define SHOTS 400

static struct cw_err err;
static struct fault_plan plan;
static struct fault_shot shot;
static bool down[RANKS];
static bool relay_down[RELAYS];

static bool can_hit(void *ctx, enum fault_kind kind, uint32_t rank)
{
    CU_ASSERT_PTR_EQUAL(ctx, &plan);
    if (rank == FAULT_RELAYS || rank == FAULT_DISPATCHER) {
        CU_ASSERT_EQUAL(kind, FAULT_CUT);
        return true;
    }
    if (fault_is_relay(rank)) {
        CU_ASSERT_EQUAL(kind, FAULT_KILL);
        CU_ASSERT_TRUE_FATAL(rank - FAULT_RELAY_0 < RELAYS);
        return !relay_down[rank - FAULT_RELAY_0];
    }
    CU_ASSERT_TRUE_FATAL(rank < RANKS);
    return !down[rank];
}

static bool next(uint64_t now_ns)
{
    return fault_plan_next(&plan, now_ns, RANKS, can_hit, &plan, &shot);
}

static void add(const char *text)
{
    CU_ASSERT_EQUAL_FATAL(fault_plan_add(&plan, text, &err), CW_OK);
}

static void make(const char *text)
{
    memset(down, 0, sizeof(down));
    memset(relay_down, 0, sizeof(relay_down));
    fault_plan_init(&plan);
    add(text);
}

static void is(const char *text, struct fault expected)
{
    struct fault fault;

    CU_ASSERT_EQUAL(fault_parse(&fault, 1, text, &err), 1);
    CU_ASSERT_EQUAL(fault.kind, expected.kind);
    CU_ASSERT_EQUAL(fault.when, expected.when);
    CU_ASSERT_EQUAL(fault.rank, expected.rank);
    CU_ASSERT_EQUAL(fault.time_ns, expected.time_ns);
    CU_ASSERT_EQUAL(fault.event, expected.event);
    CU_ASSERT_FALSE(fault.fired);
}

TEST(forms)
{
    is("kill:2@300ms", (struct fault){.when = FAULT_AT, .rank = 2, .time_ns = 300 * MS});
    is("kill:0@2s", (struct fault){.when = FAULT_AT, .time_ns = 2000 * MS});
    is("kill:0@0", (struct fault){.when = FAULT_AT});
    is("stop:1@1.5",
       (struct fault){.kind = FAULT_STOP, .when = FAULT_AT, .rank = 1, .time_ns = 1500 * MS});
    is("kill:random@200ms",
       (struct fault){.when = FAULT_EVERY, .rank = FAULT_RANDOM, .time_ns = 200 * MS});
    is("stop:random@1s",
       (struct fault){
           .kind = FAULT_STOP, .when = FAULT_EVERY, .rank = FAULT_RANDOM, .time_ns = 1000 * MS});
    is("cut:1@5ms",
       (struct fault){.kind = FAULT_CUT, .when = FAULT_AT, .rank = 1, .time_ns = 5 * MS});
    is("cut:random@5ms",
       (struct fault){
           .kind = FAULT_CUT, .when = FAULT_EVERY, .rank = FAULT_RANDOM, .time_ns = 5 * MS});
    is("cut:relays@1s",
       (struct fault){
           .kind = FAULT_CUT, .when = FAULT_AT, .rank = FAULT_RELAYS, .time_ns = 1000 * MS});
    is("cut:dispatcher@1s",
       (struct fault){
           .kind = FAULT_CUT, .when = FAULT_AT, .rank = FAULT_DISPATCHER, .time_ns = 1000 * MS});
    is("kill:relay@1s",
       (struct fault){.when = FAULT_AT, .rank = FAULT_RELAY, .time_ns = 1000 * MS});
    is("kill:relay0@1s",
       (struct fault){.when = FAULT_AT, .rank = FAULT_RELAY_0, .time_ns = 1000 * MS});
    is("kill:relay15@0", (struct fault){.when = FAULT_AT, .rank = FAULT_RELAY_0 + 15});
    is("kill:65535@event:1200", (struct fault){.when = FAULT_EVENT, .rank = 65535, .event = 1200});
}

/* Of the list 3,0,2. */
static void are(const char *text, enum fault_when first, enum fault_when others)
{
    static const uint32_t ranks[] = {3, 0, 2};
    struct fault faults[FAULTS_MAX];

    CU_ASSERT_EQUAL_FATAL(fault_parse(faults, FAULTS_MAX, text, &err), 3);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(faults[i].kind, strncmp(text, "stop", 4) == 0 ? FAULT_STOP : FAULT_KILL);
        CU_ASSERT_EQUAL(faults[i].when, i == 0 ? first : others);
        CU_ASSERT_EQUAL(faults[i].rank, ranks[i]);
        CU_ASSERT_EQUAL(faults[i].time_ns, first == FAULT_AT ? 300 * MS : 0);
        CU_ASSERT_EQUAL(faults[i].event, first == FAULT_EVENT ? 12 : 0);
        CU_ASSERT_PTR_EQUAL(faults[i].text, text);
        CU_ASSERT_FALSE(faults[i].fired);
    }
}

TEST(lists)
{
    are("kill:3,0,2@300ms", FAULT_AT, FAULT_AT);
    are("stop:3,0,2@300ms", FAULT_AT, FAULT_AT);
    are("kill:3,0,2@event:12", FAULT_EVENT, FAULT_WITH);
}

TEST(a_list_has_room)
{
    struct fault faults[3] = {{.rank = 9}, {.rank = 9}, {.rank = 9}};

    CU_ASSERT_EQUAL(fault_parse(faults, 2, "kill:1,2,3@1s", &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "more than 64 faults"));
    CU_ASSERT_EQUAL(faults[2].rank, 9);
}

TEST(no_forms)
{
    static const char *const bad[] = {"",
                                      "kill",
                                      "kill:",
                                      "kill:1",
                                      "kill:1@",
                                      "kill:@1s",
                                      "kill:x@1s",
                                      "kill:-1@1s",
                                      "kill:65536@1s",
                                      "kill:1@1x",
                                      "kill:1@-1s",
                                      "kill:1@event:",
                                      "kill:1@event:0",
                                      "kill:1@event:x",
                                      "kill:random@event:5",
                                      "kill:random@0",
                                      "kill:random@0.9ms",
                                      "kill:randomly@1s",
                                      "stop:1@event:5",
                                      "hurt:1@1s",
                                      "1@1s",
                                      "kill 1@1s",
                                      "kill:00000000000000000001@1s",
                                      "kill:,@1s",
                                      "kill:1,@1s",
                                      "kill:,1@1s",
                                      "kill:1,,2@1s",
                                      "kill:1;2@1s",
                                      "kill:1,x@1s",
                                      "kill:1,65536@1s",
                                      "kill:1,2,1@1s",
                                      "kill:1,2,2@event:5",
                                      "kill:1,random@1s",
                                      "stop:random,1@1s",
                                      "kill:relays@1s",
                                      "kill:relay16@1s",
                                      "kill:relay-1@1s",
                                      "kill:relayx@1s",
                                      "kill:relay@event:5",
                                      "kill:relay,1@1s",
                                      "kill:relay0,relay1@1s",
                                      "stop:relay@1s",
                                      "cut:relay@1s",
                                      "cut:relay0@1s",
                                      "stop:dispatcher@1s",
                                      "cut:relays,1@1s",
                                      "cut:1,dispatcher@1s",
                                      "cut:relays@event:5",
                                      "cut:1@event:5",
                                      "kill:random,random@1s",
                                      "stop:1,2@event:5",
                                      "kill:1,2@",
                                      "kill:1,2"};
    struct fault faults[FAULTS_MAX];

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        err = (struct cw_err){0};
        CU_ASSERT_EQUAL(fault_parse(faults, FAULTS_MAX, bad[i], &err), CW_EINVAL);
        CU_ASSERT_EQUAL(err.code, CW_EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i]));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, FAULT_FORMS));
    }
}

TEST(a_long_text_leaves_the_forms)
{
    char text[2000] = "kill:1@";
    struct fault fault;

    memset(text + strlen(text), '1', sizeof(text) - 1 - strlen(text));
    text[sizeof(text) - 1] = '\0';
    CU_ASSERT_EQUAL(fault_parse(&fault, 1, text, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, FAULT_FORMS));
}

TEST(ranks_of_the_job)
{
    make("kill:3@1s");
    add("kill:random@1s");
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 4, 1, &err), CW_OK);
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 3, 1, &err), CW_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.text, "--fault 'kill:3@1s': the job has no rank 3, the last is 2");
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 1, 1, &err), CW_EINVAL);
    make("kill:0,4@event:9");
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 5, 1, &err), CW_OK);
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 4, 1, &err), CW_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "--fault 'kill:0,4@event:9': the job has no rank 4, the last is 3");
}

TEST(relays_of_the_job)
{
    make("kill:relay@1s");
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 1, 1, &err), CW_OK);
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 1, 0, &err), CW_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "--fault 'kill:relay@1s' is for the job's own relays, not with --relay");
    make("kill:relay2@1s");
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 1, 3, &err), CW_OK);
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 1, 2, &err), CW_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "--fault 'kill:relay2@1s': the job has no relay 2, the last is 1");
    CU_ASSERT_EQUAL(fault_plan_check(&plan, 1, 0, &err), CW_EINVAL);
}

TEST(at_most)
{
    fault_plan_init(&plan);
    for (int i = 0; i < FAULTS_MAX; i++)
        add("kill:1@1s");
    CU_ASSERT_EQUAL(fault_plan_add(&plan, "kill:2@1s", &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "kill:2@1s"));
    CU_ASSERT_EQUAL(plan.count, FAULTS_MAX);
}

TEST(each_rank_of_a_list_counts)
{
    fault_plan_init(&plan);
    for (int i = 0; i < FAULTS_MAX - 3; i += 3)
        add("kill:0,1,2@1s");
    CU_ASSERT_EQUAL(plan.count, FAULTS_MAX - 1);
    CU_ASSERT_EQUAL(fault_plan_add(&plan, "kill:3,4@1s", &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "kill:3,4@1s"));
    CU_ASSERT_EQUAL(plan.count, FAULTS_MAX - 1);
    add("kill:3@1s");
}

TEST(one_that_is_no_fault_is_not_added)
{
    make("kill:1@1s");
    CU_ASSERT_EQUAL(fault_plan_add(&plan, "kill:1", &err), CW_EINVAL);
    CU_ASSERT_EQUAL(plan.count, 1);
}

TEST(names)
{
    CU_ASSERT_STRING_EQUAL(fault_kind_name(FAULT_KILL), "kill");
    CU_ASSERT_STRING_EQUAL(fault_kind_name(FAULT_STOP), "stop");
    CU_ASSERT_EQUAL(fault_kind_signal(FAULT_KILL), SIGKILL);
    CU_ASSERT_EQUAL(fault_kind_signal(FAULT_STOP), SIGSTOP);
}

TEST(nothing_is_due_before_the_start)
{
    make("kill:1@0");
    CU_ASSERT_FALSE(next(START));
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), UINT64_MAX);
    fault_plan_start(&plan, START);
    CU_ASSERT_TRUE(next(START));
}

TEST(each_at_its_time_and_once)
{
    make("kill:2@300ms");
    add("stop:1@100ms");
    fault_plan_start(&plan, START);
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), START + 100 * MS);
    CU_ASSERT_FALSE(next(START + 100 * MS - 1));
    CU_ASSERT_TRUE(next(START + 100 * MS));
    CU_ASSERT_EQUAL(shot.kind, FAULT_STOP);
    CU_ASSERT_EQUAL(shot.rank, 1);
    CU_ASSERT_STRING_EQUAL(shot.text, "stop:1@100ms");
    CU_ASSERT_FALSE(next(START + 100 * MS));
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), START + 300 * MS);
    CU_ASSERT_TRUE(next(START + 5000 * MS));
    CU_ASSERT_EQUAL(shot.kind, FAULT_KILL);
    CU_ASSERT_EQUAL(shot.rank, 2);
    CU_ASSERT_FALSE(next(START + 9000 * MS));
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), UINT64_MAX);
}

TEST(several_at_once)
{
    make("kill:0@1s");
    add("kill:1@1s");
    fault_plan_start(&plan, START);
    CU_ASSERT_TRUE(next(START + 1000 * MS));
    CU_ASSERT_EQUAL(shot.rank, 0);
    CU_ASSERT_TRUE(next(START + 1000 * MS));
    CU_ASSERT_EQUAL(shot.rank, 1);
    CU_ASSERT_FALSE(next(START + 1000 * MS));
}

/* And the caller is not woken by time for it: that the rank starts is what wakes. */
TEST(a_named_rank_is_waited_for)
{
    make("kill:1@100ms");
    fault_plan_start(&plan, START);
    down[1] = true;
    CU_ASSERT_FALSE(next(START + 100 * MS));
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), UINT64_MAX);
    CU_ASSERT_FALSE(next(START + 101 * MS));
    down[1] = false;
    CU_ASSERT_TRUE(next(START + 102 * MS));
    CU_ASSERT_EQUAL(shot.rank, 1);
    CU_ASSERT_FALSE(next(START + 103 * MS));
}

/* Fires as the plan says; returns how often. */
static int fire(uint64_t seed, uint32_t *victims, uint64_t *times)
{
    uint64_t now_ns = START;
    int count = 0;

    fault_plan_seed(&plan, seed);
    fault_plan_start(&plan, START);
    while (count < SHOTS) {
        uint64_t due_ns = fault_plan_deadline_ns(&plan);

        CU_ASSERT_TRUE(due_ns >= now_ns + 50 * MS && due_ns <= now_ns + 150 * MS);
        now_ns = due_ns;
        CU_ASSERT_FALSE(next(now_ns - 1));
        CU_ASSERT_TRUE_FATAL(next(now_ns));
        CU_ASSERT_EQUAL(shot.kind, FAULT_KILL);
        victims[count] = shot.rank;
        times[count++] = now_ns;
    }
    return count;
}

TEST(a_seed_decides)
{
    static uint32_t victims[3][SHOTS];
    static uint64_t times[3][SHOTS];
    int hits[RANKS] = {0};

    make("kill:random@100ms");
    fire(42, victims[0], times[0]);
    fire(42, victims[1], times[1]);
    fire(43, victims[2], times[2]);
    CU_ASSERT_EQUAL(memcmp(victims[0], victims[1], sizeof(victims[0])), 0);
    CU_ASSERT_EQUAL(memcmp(times[0], times[1], sizeof(times[0])), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(victims[0], victims[2], sizeof(victims[0])), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(times[0], times[2], sizeof(times[0])), 0);
    for (int i = 0; i < SHOTS; i++)
        hits[victims[0][i]]++;
    for (int i = 0; i < RANKS; i++)
        CU_ASSERT_TRUE(hits[i] > SHOTS / RANKS / 2);
}

/* splitmix64 with seed 1 draws 0x910a2dec89025cc1, 0xbeeb8da1658eec67: a drill repeats itself with
 * a later version too. */
TEST(the_generator)
{
    make("kill:random@100ms");
    fault_plan_start(&plan, 0);
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), 50 * MS + 56656158);
    CU_ASSERT_TRUE(next(200 * MS));
    CU_ASSERT_EQUAL(shot.rank, 2);
}

TEST(a_random_victim_that_is_down_is_let_off)
{
    make("kill:random@100ms");
    fault_plan_start(&plan, START);
    memset(down, true, sizeof(down));
    CU_ASSERT_FALSE(next(START + 150 * MS));
    CU_ASSERT_TRUE(fault_plan_deadline_ns(&plan) >= START + 200 * MS);
    memset(down, false, sizeof(down));
    CU_ASSERT_FALSE(next(START + 150 * MS));
    CU_ASSERT_TRUE(next(START + 300 * MS));
}

TEST(no_burst_after_a_pause)
{
    make("kill:random@100ms");
    fault_plan_start(&plan, START);
    CU_ASSERT_TRUE(next(START + 60000 * MS));
    CU_ASSERT_FALSE(next(START + 60000 * MS));
}

TEST(at_events)
{
    make("kill:2@event:9");
    add("kill:1@1s");
    add("kill:2@event:5");
    add("kill:3@event:7");
    fault_plan_start(&plan, START);
    CU_ASSERT_EQUAL(fault_plan_event_of(&plan, 2, 1), 9);
    CU_ASSERT_EQUAL(fault_plan_event_of(&plan, 2, 2), 5);
    CU_ASSERT_EQUAL(fault_plan_event_of(&plan, 2, 3), 0);
    CU_ASSERT_STRING_EQUAL(fault_plan_at_event(&plan, 2, 2)->text, "kill:2@event:5");
    CU_ASSERT_PTR_NULL(fault_plan_at_event(&plan, 2, 3));
    CU_ASSERT_EQUAL(fault_plan_event_of(&plan, 1, 1), 0);
    CU_ASSERT_EQUAL(fault_plan_event_of(&plan, 3, 1), 7);
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), START + 1000 * MS);
    CU_ASSERT_TRUE(next(START + 1000 * MS));
    CU_ASSERT_EQUAL(shot.rank, 1);
    CU_ASSERT_FALSE(next(START + 9000 * MS));
}

TEST(a_list_at_a_time)
{
    make("stop:2,0@1s");
    fault_plan_start(&plan, START);
    CU_ASSERT_FALSE(next(START + 999 * MS));
    CU_ASSERT_TRUE(next(START + 1000 * MS));
    CU_ASSERT_EQUAL(shot.rank, 2);
    CU_ASSERT_TRUE(next(START + 1000 * MS));
    CU_ASSERT_EQUAL(shot.rank, 0);
    CU_ASSERT_EQUAL(shot.kind, FAULT_STOP);
    CU_ASSERT_FALSE(next(START + 9000 * MS));
}

/* The rank that kills itself is followed by `a` and `b`, and by nobody else. */
static void followed_by(uint64_t now_ns, uint32_t a, uint32_t b)
{
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), now_ns);
    CU_ASSERT_TRUE(next(now_ns));
    CU_ASSERT_EQUAL(shot.rank, a);
    CU_ASSERT_EQUAL(shot.kind, FAULT_KILL);
    CU_ASSERT_TRUE(next(now_ns));
    CU_ASSERT_EQUAL(shot.rank, b);
    CU_ASSERT_FALSE(next(now_ns + 9000 * MS));
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), UINT64_MAX);
}

TEST(a_list_at_an_event)
{
    make("kill:2,0,3@event:9");
    add("kill:2,3,1@event:5");
    fault_plan_start(&plan, START);
    CU_ASSERT_EQUAL(fault_plan_event_of(&plan, 2, 1), 9);
    CU_ASSERT_EQUAL(fault_plan_event_of(&plan, 2, 2), 5);
    CU_ASSERT_EQUAL(fault_plan_event_of(&plan, 3, 1), 0);
    CU_ASSERT_EQUAL(fault_plan_deadline_ns(&plan), UINT64_MAX);
    CU_ASSERT_FALSE(next(START + 9000 * MS));
    CU_ASSERT_PTR_NULL(fault_plan_taken(&plan, 0, 1, START + 9000 * MS));
    CU_ASSERT_FALSE(next(START + 9000 * MS));
    CU_ASSERT_STRING_EQUAL(fault_plan_taken(&plan, 2, 1, START + 9500 * MS), "kill:2,0,3@event:9");
    followed_by(START + 9500 * MS, 0, 3);
    CU_ASSERT_STRING_EQUAL(fault_plan_taken(&plan, 2, 2, START + 9700 * MS), "kill:2,3,1@event:5");
    followed_by(START + 9700 * MS, 3, 1);
}

/* As one at a time, those of a list wait until they run. */
TEST(followers_are_waited_for)
{
    make("kill:2,0,3@event:9");
    fault_plan_start(&plan, START);
    down[0] = true;
    fault_plan_taken(&plan, 2, 1, START + 5 * MS);
    CU_ASSERT_TRUE(next(START + 5 * MS));
    CU_ASSERT_EQUAL(shot.rank, 3);
    CU_ASSERT_FALSE(next(START + 6 * MS));
    down[0] = false;
    CU_ASSERT_TRUE(next(START + 7 * MS));
    CU_ASSERT_EQUAL(shot.rank, 0);
    CU_ASSERT_STRING_EQUAL(shot.text, "kill:2,0,3@event:9");
    CU_ASSERT_FALSE(next(START + 8 * MS));
}

TEST(a_relay_is_waited_for)
{
    make("kill:relay1@5ms");
    CU_ASSERT_EQUAL_FATAL(fault_plan_check(&plan, RANKS, RELAYS, &err), CW_OK);
    fault_plan_start(&plan, START);
    relay_down[1] = true;
    CU_ASSERT_FALSE(next(START + 5 * MS));
    relay_down[1] = false;
    CU_ASSERT_TRUE(next(START + 6 * MS));
    CU_ASSERT_EQUAL(shot.rank, FAULT_RELAY_0 + 1);
    CU_ASSERT_EQUAL(shot.kind, FAULT_KILL);
    CU_ASSERT_FALSE(next(START + 7 * MS));
}

/* Each of them is hit sooner or later, and who is down waits for one that is not. */
TEST(any_relay)
{
    uint32_t seen[RELAYS] = {0};

    make("kill:relay@0");
    for (int i = 1; i < FAULTS_MAX; i++)
        add("kill:relay@0");
    CU_ASSERT_EQUAL_FATAL(fault_plan_check(&plan, RANKS, RELAYS, &err), CW_OK);
    fault_plan_start(&plan, START);
    relay_down[0] = true;
    for (int i = 0; i < SHOTS; i++)
        while (next(START))
            seen[shot.rank - FAULT_RELAY_0]++;
    CU_ASSERT_EQUAL(seen[0], 0);
    CU_ASSERT_TRUE(seen[1] > 0 && seen[2] > 0);
    CU_ASSERT_EQUAL(seen[1] + seen[2], FAULTS_MAX);
}

/* The only one needs no number. */
TEST(the_only_relay)
{
    make("kill:relay@0");
    CU_ASSERT_EQUAL_FATAL(fault_plan_check(&plan, RANKS, 1, &err), CW_OK);
    fault_plan_start(&plan, START);
    CU_ASSERT_TRUE(next(START));
    CU_ASSERT_EQUAL(shot.rank, FAULT_RELAY_0);
    CU_ASSERT_FALSE(next(START + MS));
}
