/* The index of receives and messages, against a model that searches lists from the front. */
#include "common/match.h"
#include "relay/memory/block.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

SUITE("match");

#define ITEMS 400 /* of each kind, at most */
#define STEPS 20000
#define MANY 100000u

struct model {
    struct match_index ix;
    struct relay_memory memory;
    struct relay_pool pool;
    struct cw_relay_stats stats;
    struct match_posted posted[ITEMS]; /* storage */
    struct match_waiting waiting[ITEMS];
    struct match_posted *posted_in_order[ITEMS];
    struct match_waiting *waiting_in_order[ITEMS];
    struct match_posted *posted_free[ITEMS];
    struct match_waiting *waiting_free[ITEMS];
    uint32_t posted_count;
    uint32_t waiting_count;
    uint32_t requests;
};

static struct model m;
static uint64_t seed;

static void start(void)
{
    memset(&m, 0, sizeof(m));
    m.memory = (struct relay_memory){.memory_max = 64u << 20, .stats = &m.stats};
    m.pool = (struct relay_pool){.memory = &m.memory};
    match_init(&m.ix, &relay_pool_memory, &m.pool);
    for (int i = 0; i < ITEMS; i++) {
        m.posted_free[i] = &m.posted[i];
        m.waiting_free[i] = &m.waiting[i];
    }
}

static void count_release(void *ctx, struct match_posted *posted)
{
    (void)posted;
    ++*(uint32_t *)ctx;
}

/* Takes every message out; match_fini must give back every receive that is left. */
static void finish(void)
{
    uint32_t released = 0;

    while (m.waiting_count > 0)
        match_unwait(&m.ix, m.waiting_in_order[--m.waiting_count]);
    match_fini(&m.ix, count_release, &released);
    CU_ASSERT_EQUAL(released, m.posted_count);
    relay_memory_fini(&m.memory);
    CU_ASSERT_EQUAL(m.stats.memory_now, 0);
}

/* --- the model -------------------------------------------------------------------------------- */
static struct match_posted *model_find_posted(uint64_t tag)
{
    for (uint32_t i = 0; i < m.posted_count; i++)
        if (((m.posted_in_order[i]->tag ^ tag) & m.posted_in_order[i]->mask) == 0)
            return m.posted_in_order[i];
    return NULL;
}

static struct match_waiting *model_find_waiting(uint64_t tag, uint64_t mask)
{
    for (uint32_t i = 0; i < m.waiting_count; i++)
        if (((m.waiting_in_order[i]->tag ^ tag) & mask) == 0)
            return m.waiting_in_order[i];
    return NULL;
}

static void post(uint64_t tag, uint64_t mask)
{
    struct match_posted *p;

    if (m.posted_count == ITEMS)
        return;
    p = m.posted_free[m.posted_count];
    p->tag = tag;
    p->mask = mask;
    p->req = m.requests++;
    CU_ASSERT_EQUAL_FATAL(match_post(&m.ix, p), CW_OK);
    m.posted_in_order[m.posted_count++] = p;
}

static void unpost(uint32_t at)
{
    struct match_posted *p = m.posted_in_order[at];

    match_unpost(&m.ix, p);
    m.posted_count--;
    memmove(&m.posted_in_order[at], &m.posted_in_order[at + 1],
            (m.posted_count - at) * sizeof(*m.posted_in_order));
    m.posted_free[m.posted_count] = p;
}

static void add_waiting(uint64_t tag)
{
    struct match_waiting *w;

    if (m.waiting_count == ITEMS)
        return;
    w = m.waiting_free[m.waiting_count];
    memset(w, 0, sizeof(*w));
    w->tag = tag;
    CU_ASSERT_EQUAL_FATAL(match_wait(&m.ix, w), CW_OK);
    m.waiting_in_order[m.waiting_count++] = w;
}

static void unwait(uint32_t at)
{
    struct match_waiting *w = m.waiting_in_order[at];

    match_unwait(&m.ix, w);
    m.waiting_count--;
    memmove(&m.waiting_in_order[at], &m.waiting_in_order[at + 1],
            (m.waiting_count - at) * sizeof(*m.waiting_in_order));
    m.waiting_free[m.waiting_count] = w;
}

/* --- random sequences ------------------------------------------------------------------------- */
static uint32_t below(uint32_t bound)
{
    return (uint32_t)codec_random_below(&seed, bound);
}

static uint64_t some_mask(uint32_t masks)
{
    static const uint64_t usual[] = {UINT64_MAX, 0, 0xffff, 0xffff0000};
    uint32_t which = below(masks);

    return which < 4 ? usual[which] : (uint64_t)(which * 0x10001);
}

static uint64_t some_tag(void)
{
    return (uint64_t)below(6) << 16 | below(6);
}

static void find_request(uint32_t masks)
{
    const struct match_posted *p = m.posted_count ? m.posted_in_order[below(m.posted_count)] : NULL;

    if (p)
        CU_ASSERT_PTR_EQUAL(match_find_request(&m.ix, p->req, p->tag, p->mask), p);
    CU_ASSERT_PTR_NULL(match_find_request(&m.ix, m.requests, some_tag(), some_mask(masks)));
}

static void random_step(uint32_t masks)
{
    uint64_t tag = some_tag();
    uint64_t mask = some_mask(masks);

    switch (below(7)) {
    case 0:
        post(tag, mask);
        break;
    case 1:
        add_waiting(tag);
        break;
    case 2:
        if (m.posted_count)
            unpost(below(m.posted_count));
        break;
    case 3:
        if (m.waiting_count)
            unwait(below(m.waiting_count));
        break;
    case 4:
        CU_ASSERT_PTR_EQUAL(match_find_posted(&m.ix, tag), model_find_posted(tag));
        break;
    case 5:
        CU_ASSERT_PTR_EQUAL(match_find_waiting(&m.ix, tag, mask), model_find_waiting(tag, mask));
        break;
    case 6:
        find_request(masks);
        break;
    }
    CU_ASSERT_EQUAL(m.ix.waiting, m.waiting_count);
}

static void against_the_model(uint32_t masks)
{
    unsigned failed;

    for (uint64_t s = 1; s <= 5; s++) {
        seed = s * 77 + masks;
        start();
        failed = CU_get_number_of_failures();
        for (int i = 0; i < STEPS && CU_get_number_of_failures() == failed; i++)
            random_step(masks);
        if (CU_get_number_of_failures() > failed)
            printf("# seed %llu, %u masks\n", (unsigned long long)s, masks);
        finish();
    }
}

TEST(few_masks_against_the_model)
{
    against_the_model(MATCH_CLASSES);
}

TEST(many_masks_against_the_model)
{
    against_the_model(MATCH_CLASSES + 1);
    against_the_model(4 * MATCH_CLASSES);
}

/* Every allocation fails once: what was asked for did not happen, and all else still works. */
TEST(without_memory)
{
    for (uint64_t s = 1; s <= 20; s++) {
        seed = s;
        start();
        for (int i = 0; i < 300; i++) {
            uint64_t tag = some_tag();
            struct match_posted *p = m.posted_free[m.posted_count];
            struct match_waiting *w = m.waiting_free[m.waiting_count];

            m.memory.memory_max = m.stats.memory_now + below(3) * 100;
            *p = (struct match_posted){.tag = tag, .mask = some_mask(9), .req = m.requests++};
            *w = (struct match_waiting){.tag = tag};
            if (below(2) && match_post(&m.ix, p) == CW_OK)
                m.posted_in_order[m.posted_count++] = p;
            if (below(2) && match_wait(&m.ix, w) == CW_OK)
                m.waiting_in_order[m.waiting_count++] = w;
            CU_ASSERT_PTR_EQUAL(match_find_posted(&m.ix, tag), model_find_posted(tag));
            CU_ASSERT_PTR_EQUAL(match_find_waiting(&m.ix, tag, p->mask),
                                model_find_waiting(tag, p->mask));
            if (m.posted_count > 100)
                unpost(below(m.posted_count));
            if (m.waiting_count > 100)
                unwait(below(m.waiting_count));
        }
        finish();
    }
}

/* The same request number may be posted under other tags and masks: CANCEL names them all. */
TEST(a_request_is_found_by_its_mask)
{
    start();
    post(1, UINT64_MAX);
    post(1, 0xff);
    m.posted[0].req = m.posted[1].req = 7;
    CU_ASSERT_PTR_EQUAL(match_find_request(&m.ix, 7, 1, UINT64_MAX), &m.posted[0]);
    CU_ASSERT_PTR_EQUAL(match_find_request(&m.ix, 7, 1, 0xff), &m.posted[1]);
    CU_ASSERT_PTR_NULL(match_find_request(&m.ix, 7, 2, 0xff));
    CU_ASSERT_PTR_NULL(match_find_request(&m.ix, 8, 1, 0xff));
    finish();
}

/* --- many tags -------------------------------------------------------------------------------- */
static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* `count` messages of distinct tags, received in reverse. Returns the CPU time. */
static uint64_t messages_in_reverse(uint32_t count)
{
    struct match_waiting *of = calloc(count, sizeof(*of));
    uint64_t from = cpu_ns();
    bool right = true;

    CU_ASSERT_PTR_NOT_NULL_FATAL(of);
    start();
    for (uint32_t i = 0; i < count; i++) {
        of[i].tag = (uint64_t)i << 20;
        right &= match_wait(&m.ix, &of[i]) == CW_OK;
    }
    for (uint32_t i = count; i-- > 0;) {
        right &= match_find_waiting(&m.ix, (uint64_t)i << 20, UINT64_MAX) == &of[i];
        match_unwait(&m.ix, &of[i]);
    }
    CU_ASSERT_TRUE(right);
    finish();
    free(of);
    return cpu_ns() - from;
}

static uint64_t receives_in_reverse(uint32_t count)
{
    struct match_posted *of = calloc(count, sizeof(*of));
    uint64_t from = cpu_ns();
    bool right = true;

    CU_ASSERT_PTR_NOT_NULL_FATAL(of);
    start();
    for (uint32_t i = 0; i < count; i++) {
        of[i].tag = (uint64_t)i << 20;
        of[i].mask = UINT64_MAX;
        right &= match_post(&m.ix, &of[i]) == CW_OK;
    }
    for (uint32_t i = count; i-- > 0;) {
        right &= match_find_posted(&m.ix, (uint64_t)i << 20) == &of[i];
        match_unpost(&m.ix, &of[i]);
    }
    CU_ASSERT_TRUE(right);
    finish();
    free(of);
    return cpu_ns() - from;
}

/* Ten times as many take ten times as long, not a hundred times; caches and a busy machine are
 * given a factor of four. */
static void stays_linear(uint64_t (*run)(uint32_t count))
{
    uint64_t few = UINT64_MAX;
    uint64_t many = UINT64_MAX;

    for (int i = 0; i < 3; i++) {
        uint64_t took = run(MANY / 10);

        few = took < few ? took : few;
        took = run(MANY);
        many = took < many ? took : many;
    }
    CU_ASSERT_TRUE(many < 40 * few);
}

TEST(many_messages_in_reverse)
{
    stays_linear(messages_in_reverse);
}

TEST(many_receives_in_reverse)
{
    stays_linear(receives_in_reverse);
}
