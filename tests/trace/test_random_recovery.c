/* Random programs on four ranks, which crash at random and are executed again by a client that
 * repeats as a device does. Whatever the seed: an event never changes, a re-execution never
 * diverges, each message arrives exactly once and whole, in MPI's order; and a program whose
 * receives leave no choice gets what it gets without crashes. A seed that fails is printed;
 * CAUSEWAY_TEST_SEED=SEED runs it alone. */
#include "tests/trace/random_program.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS_MAX 200000 /* a play that needs more hangs */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 10
#else
#define SEEDS 60
#endif

/* --- the play --------------------------------------------------------------------------------- */
static void crash(struct client *c)
{
    fixture_close(c, "crash");
    program_begin((uint32_t)(c - play.f.rank));
    fixture_again(c);
}

static void move(struct client *c)
{
    size_t left = codec_left(&c->codec.out);

    if (left)
        fixture_feed_some(c, play_below(3) ? 1 + play_below(left) : left);
    if (play_below(4) == 0)
        c->stalled = !c->stalled;
    if (!c->stalled)
        fixture_read(c);
}

static bool has_ended(uint32_t rank)
{
    const struct process *p = &play.processes[rank];

    return p->up && p->steps == STEPS && !p->repeats && !p->probing && !p->polls_left &&
           !program_is_sending(p) && p->item_first == p->item_end &&
           codec_left(&play.f.rank[rank].codec.out) == 0 && !play.f.rank[rank].stalled;
}

static bool all_have_ended(void)
{
    bool ended = true;

    for (uint32_t i = 0; i < RANKS; i++)
        ended = ended && has_ended(i);
    return ended;
}

/* Every `1 / crashes` of the turns somebody crashes, while the programs are young. */
static void run(uint64_t crashes)
{
    uint64_t turn = 0;

    while (!all_have_ended() && turn < TURNS_MAX && !play.failures) {
        struct client *c = &play.f.rank[play_below(RANKS)];

        program_advance(c);
        if (play_below(2))
            move(c);
        if (crashes && turn++ < 20 * crashes && play_below(crashes) == 0)
            crash(&play.f.rank[play_below(RANKS)]);
        turn += !crashes;
    }
    play_check(all_have_ended(), "the programs end");
}

/* --- what came of it -------------------------------------------------------------------------- */
static const struct sent *sent_of(uint64_t tag)
{
    uint64_t src = tag >> 56;
    uint64_t serial = tag & MASK_SERIAL;

    if (src >= RANKS || serial >= play.processes[src].sent_count ||
        play.processes[src].sent[serial].tag != tag)
        return NULL;
    return &play.processes[src].sent[serial];
}

static void count_received(uint32_t rank, uint64_t tag, uint32_t counts[RANKS][ITEMS_MAX])
{
    const struct sent *s = sent_of(tag);

    play_check(s && s->dst == rank, "what was received was sent to its receiver");
    if (s)
        play_check(counts[tag >> 56][tag & MASK_SERIAL]++ == 0, "a message comes once");
}

/* Active messages come in any case; what was matched, and only that, was received. */
static void check_messages(void)
{
    static uint32_t counts[RANKS][ITEMS_MAX];

    memset(counts, 0, sizeof(counts));
    for (uint32_t i = 0; i < RANKS; i++) {
        const struct process *p = &play.processes[i];

        for (uint32_t n = 0; n < p->active_count; n++)
            count_received(i, p->actives[n], counts);
        for (uint32_t n = 0; n < p->request_count; n++)
            if (p->requests[n].state == RECEIVED)
                count_received(i, p->requests[n].message, counts);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        for (uint32_t n = 0; n < play.processes[i].sent_count; n++) {
            const struct sent *s = &play.processes[i].sent[n];

            play_check(s->kind != CW_SEND_AM || counts[i][n] == 1, "every active message comes");
            play_check(s->acknowledged == (s->kind == CW_SEND_SYNC && counts[i][n] == 1),
                       "what was matched was acknowledged");
        }
}

/* Of two receives, the earlier one must not have got the later of two messages of one sender, when
 * it matched the earlier one too. */
static void check_order(const struct process *p)
{
    for (uint32_t i = 0; i < p->request_count; i++) {
        play_check(p->requests[i].state != CANCELING, "a cancel ends in CANCELED or a message");
        for (uint32_t j = i + 1; j < p->request_count; j++) {
            const struct request *a = &p->requests[i];
            const struct request *b = &p->requests[j];

            if (a->state != RECEIVED || b->state != RECEIVED ||
                ((a->message ^ b->message) & MASK_SOURCE) ||
                (a->message & MASK_SERIAL) < (b->message & MASK_SERIAL))
                continue;
            play_check(((a->tag ^ b->message) & a->mask) != 0, "messages do not overtake");
        }
    }
}

static void play_one(uint64_t which, uint64_t crashes)
{
    play.programs = play.seed = which * 0x9e3779b97f4a7c15ull + 1;
    memset(play.witness, 0, sizeof(play.witness));
    fixture_init_log(&play.f, FIXTURE_MEMORY, FIXTURE_MEMORY);
    play.f.mute = true;
    play.f.seed = play.seed;
    for (uint32_t i = 0; i < RANKS; i++)
        program_begin(i);
    play.f.on_frame = program_on_frame;
    fixture_start(&play.f, RANKS);
    play.f.feed = FEED_RANDOM;
    play.f.cuts = which % 2;
    run(crashes);
    check_messages();
    for (uint32_t i = 0; i < RANKS; i++)
        check_order(&play.processes[i]);
    fixture_fini(&play.f);
    if (play.failures)
        printf("# seed %llu: CAUSEWAY_TEST_SEED=%llu runs it alone\n", (unsigned long long)which,
               (unsigned long long)which);
}

static void every_seed(void (*of)(uint64_t which))
{
    const char *one = getenv("CAUSEWAY_TEST_SEED");

    play.failures = 0;
    if (one) {
        of(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t which = 1; which <= SEEDS && !play.failures; which++)
        of(which);
}

static void play_any(uint64_t which)
{
    play.exact = false;
    play_one(which, 40 + 200 * (which % 4));
}

static void any_program(void)
{
    every_seed(play_any);
}

static void play_twice(uint64_t which)
{
    static struct process before[RANKS];

    play.exact = true;
    play_one(which, 0);
    memcpy(before, play.processes, sizeof(before));
    play_one(which, 40 + 200 * (which % 4));
    for (uint32_t i = 0; i < RANKS && !play.failures; i++) {
        play_check(play.processes[i].request_count == before[i].request_count &&
                       play.processes[i].sent_count == before[i].sent_count,
                   "it did the same");
        for (uint32_t n = 0; n < before[i].request_count; n++)
            play_check(play.processes[i].requests[n].state == before[i].requests[n].state &&
                           play.processes[i].requests[n].message == before[i].requests[n].message,
                       "it received the same");
    }
}

static void same_as_without_crashes(void)
{
    every_seed(play_twice);
}

void add_random_recovery_tests(void)
{
    CU_pSuite suite = CU_add_suite("trace of random recovery", NULL, NULL);

    CU_ADD_TEST(suite, any_program);
    CU_ADD_TEST(suite, same_as_without_crashes);
}
