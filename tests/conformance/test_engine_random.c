/* Ranks that send, post receives, stall, vanish and come back at random, with the log on. For every
 * seed and timing, each rank has each message that was sent to it, once and whole. A seed that
 * fails is printed; CAUSEWAY_TEST_SEED=SEED runs it alone. */
#include "tests/conformance/suite.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS 6u
#define MESSAGES 120u
#define STEPS 400
#define ACTS_MAX (3 * MESSAGES)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 2
#else
#define SEEDS 6
#endif

struct message {
    uint32_t src;
    uint32_t dst;
    uint64_t total;
    bool sent;
    bool asked;
};

/* A RECV or a SEND. The next incarnation of its rank repeats it. */
struct act {
    bool is_send;
    uint32_t message; /* its number; also the tag and the request */
};

/* The acts of a rank, over all its incarnations. */
struct history {
    uint32_t incarnation;
    uint32_t count;
    struct act acts[ACTS_MAX];
};

static struct message messages[MESSAGES];
static struct history histories[RANKS];
static struct peer *returning;
static uint64_t seed;

static uint32_t below(uint32_t bound)
{
    return (uint32_t)codec_random_below(&seed, bound);
}

/* Most are small. A few are larger than a block or the buffer of a socket. */
static uint64_t random_size(void)
{
    static const uint32_t most[] = {1, 100, 100, 3000, 20000, 20000, 300000, 2000000};

    return below(most[below(sizeof(most) / sizeof(*most))]);
}

static void plan(void)
{
    memset(histories, 0, sizeof(histories));
    for (uint32_t r = 0; r < RANKS; r++)
        histories[r].incarnation = 1;
    for (uint32_t m = 0; m < MESSAGES; m++)
        messages[m] =
            (struct message){.src = below(RANKS), .dst = below(RANKS), .total = random_size()};
}

/* --- what ranks do ---------------------------------------------------------------------------- */
static void perform(struct peer *p, const struct act *act)
{
    const struct message *m = &messages[act->message];

    if (act->is_send)
        peer_send(p, m->dst, act->message, m->total);
    else
        peer_recv(p, act->message, act->message);
}

static void act_of(uint32_t rank, bool is_send, uint32_t message)
{
    struct history *h = &histories[rank];

    CU_ASSERT_TRUE_FATAL(h->count < ACTS_MAX);
    h->acts[h->count] = (struct act){is_send, message};
    perform(rank_of(rank), &h->acts[h->count++]);
}

static void send_message(uint32_t m)
{
    if (!messages[m].sent)
        act_of(messages[m].src, true, m);
    messages[m].sent = true;
}

static void ask_for_message(uint32_t m)
{
    if (!messages[m].asked)
        act_of(messages[m].dst, false, m);
    messages[m].asked = true;
}

static void take(struct peer *p)
{
    uint64_t to = p->taken + below((uint32_t)(p->event - p->taken) + 1);

    if (to > p->taken)
        codec_taken(&p->codec, CW_FRAME_TAKEN, to);
    p->taken = to;
}

/* --- vanishing and coming back ---------------------------------------------------------------- */
static bool returning_repeated(void)
{
    return returning->heard[CW_FRAME_REPLAYED] == 1;
}

/* Has repeated those acts of earlier incarnations that the relay has. */
static void repeat(struct peer *p, const struct history *h)
{
    uint64_t acts = p->welcome.acts;

    CU_ASSERT_TRUE_FATAL(acts <= h->count);
    returning = p;
    CU_ASSERT_TRUE_FATAL(pump_until(returning_repeated));
    codec_taken(&p->codec, CW_FRAME_LIVE, p->taken);
    if (p->welcome.missing) {
        uint32_t last = h->acts[acts - 1].message;

        peer_send_rest(p, last, messages[last].total, messages[last].total - p->welcome.missing);
    }
}

/* The relay may see the next incarnation before it sees the end of the last one. */
static void vanish_and_return(uint32_t rank)
{
    struct history *h = &histories[rank];
    struct peer *p = rank_of(rank);

    peer_reconnect(p, (int)below(2));
    CU_ASSERT_EQUAL_FATAL(peer_hello_rank(p, rank, ++h->incarnation), CW_OK);
    if (p->welcome.flags & CW_WELCOME_REPLAY)
        repeat(p, h);
    for (uint64_t i = p->welcome.acts; i < h->count; i++)
        perform(p, &h->acts[i]);
}

/* --- a run ------------------------------------------------------------------------------------ */
static void step(void)
{
    struct peer *p = rank_of(below(RANKS));

    switch (below(16)) {
    case 0:
        vanish_and_return(below(RANKS));
        break;
    case 1:
    case 2:
        p->stalled = !p->stalled;
        break;
    case 3:
    case 4:
        take(p);
        break;
    case 5:
    case 6:
        pump_for(1);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        send_message(below(MESSAGES));
        break;
    default:
        ask_for_message(below(MESSAGES));
    }
}

static uint32_t messages_for(uint32_t rank)
{
    uint32_t count = 0;

    for (uint32_t m = 0; m < MESSAGES; m++)
        count += messages[m].dst == rank;
    return count;
}

static bool all_arrived(void)
{
    bool all = true;

    for (uint32_t r = 0; r < RANKS; r++)
        all &= rank_of(r)->inbox.complete == messages_for(r);
    return all;
}

static bool check_all(void)
{
    bool right = true;

    for (uint32_t m = 0; m < MESSAGES; m++)
        right &= peer_received(rank_of(messages[m].dst), m, m, messages[m].total);
    return right;
}

static void play(uint64_t play_seed)
{
    bool right;

    seed = play_seed;
    site_start_job(engine(), RANKS);
    plan();
    for (int i = 0; i < STEPS; i++)
        step();
    for (uint32_t m = 0; m < MESSAGES; m++) {
        send_message(m);
        ask_for_message(m);
    }
    for (uint32_t r = 0; r < RANKS; r++)
        rank_of(r)->stalled = false;
    right = pump_until(all_arrived) && check_all();
    if (!right)
        printf("# seed %llu\n", (unsigned long long)play_seed);
    CU_ASSERT_TRUE(right);
    site_stop();
}

static void random_exchange(void)
{
    const char *only = getenv("CAUSEWAY_TEST_SEED");

    if (only)
        play(strtoull(only, NULL, 10));
    for (uint64_t s = 1; !only && s <= SEEDS; s++)
        play(s);
}

void add_random_exchange_tests(CU_pSuite suite)
{
    CU_ADD_TEST(suite, random_exchange);
}
