#include "dispatcher/detector/failures.h"

#include <math.h>
#include <string.h>

#define WORDS (FAILURES_PROCESSES_MAX / 64)
#define DISTANCES_MAX 32u

/* A set of processes, a bit each. */
struct set {
    uint64_t words[WORDS];
};

/* The group, and the distances at which the processes are to which each sends. */
struct graph {
    uint32_t n, words;
    uint32_t count;
    uint32_t distances[DISTANCES_MAX]; /* each once */
};

static struct graph graph_of(enum routing_kind kind, uint32_t n)
{
    const struct routing *routing = &routings[kind];
    struct graph g = {.n = n, .words = (n + 63) / 64};

    for (uint32_t r = 1; r <= routing->cycle(n); r++) {
        uint32_t distance = routing->target(0, n, r, 0);
        uint32_t i = 0;

        while (i < g.count && g.distances[i] != distance)
            i++;
        g.distances[i] = distance;
        g.count += i == g.count;
    }
    return g;
}

/* --- sets --- */

static void or_shifted(struct set *to, const struct set *from, uint32_t words, uint32_t by)
{
    uint32_t skip = by / 64, bits = by % 64;

    for (uint32_t i = skip; i < words; i++) {
        to->words[i] |= from->words[i - skip] << bits;
        if (bits && i > skip)
            to->words[i] |= from->words[i - skip - 1] >> (64 - bits);
    }
}

static void or_shifted_down(struct set *to, const struct set *from, uint32_t words, uint32_t by)
{
    uint32_t skip = by / 64, bits = by % 64;

    for (uint32_t i = 0; i + skip < words; i++) {
        to->words[i] |= from->words[i + skip] >> bits;
        if (bits && i + skip + 1 < words)
            to->words[i] |= from->words[i + skip + 1] << (64 - bits);
    }
}

/* Adds those that are `by` further round than those of the other set, and some that are not in the
 * group. */
static void or_turned(struct set *to, const struct set *from, const struct graph *g, uint32_t by)
{
    or_shifted(to, from, g->words, by);
    or_shifted_down(to, from, g->words, g->n - by);
}

static struct set all_of(const struct graph *g)
{
    struct set all = {{0}};

    for (uint32_t i = 0; i < g->n; i++)
        all.words[i / 64] |= 1ull << i % 64;
    return all;
}

/* --- the two ways to fail --- */

/* Whether one that lives has only sources that have failed. */
static bool is_deaf(const struct graph *g, const struct set *live)
{
    struct set hear = {{0}};
    bool some = false;

    for (uint32_t i = 0; i < g->count; i++)
        or_turned(&hear, live, g, g->distances[i]);
    for (uint32_t i = 0; i < g->words; i++) {
        if (live->words[i] & ~hear.words[i])
            return true;
        some |= live->words[i] != 0;
    }
    return !some;
}

/* Whether all that live can be reached from the first of them, along the lanes or against them. */
static bool reaches_all(const struct graph *g, const struct set *live, bool back)
{
    struct set reached = {{0}};
    bool more = true;
    uint32_t i = 0;

    while (i < g->words && !live->words[i])
        i++;
    if (i < g->words)
        reached.words[i] = live->words[i] & -live->words[i];
    while (more) {
        struct set next = reached;

        for (uint32_t d = 0; d < g->count; d++)
            or_turned(&next, &reached, g, back ? g->n - g->distances[d] : g->distances[d]);
        more = false;
        for (i = 0; i < g->words; i++) {
            next.words[i] &= live->words[i];
            more |= next.words[i] != reached.words[i];
        }
        reached = next;
    }
    return memcmp(reached.words, live->words, g->words * sizeof(*live->words)) == 0;
}

static bool is_parted(const struct graph *g, const struct set *live)
{
    return !reaches_all(g, live, false) || !reaches_all(g, live, true);
}

/* --- counting --- */

static struct failures count_all(const struct graph *g, double f)
{
    struct failures result = {.exact = true, .trials = 1ull << g->n};

    for (uint64_t mask = 0; mask < result.trials; mask++) {
        struct set live = {{mask}};
        int lives = __builtin_popcountll(mask);
        double p = pow(1 - f, lives) * pow(f, (double)g->n - lives);

        if (is_deaf(g, &live))
            result.deaf += p;
        if (is_parted(g, &live))
            result.parted += p;
    }
    return result;
}

/* Each fails with probability f: from one that fails to the next it is a geometric number. */
static struct set draw_live(const struct graph *g, double f, const struct set *all,
                            uint64_t *random)
{
    struct set live = *all;

    for (double at = -1;;) {
        double u = (double)(routing_draw(random) >> 11) * 0x1p-53;

        at += 1 + floor(log(1 - u) / log(1 - f));
        if (at >= g->n)
            return live;
        live.words[(uint32_t)at / 64] &= ~(1ull << (uint32_t)at % 64);
    }
}

static struct failures count_some(const struct graph *g, double f, uint64_t trials, uint64_t seed)
{
    struct failures result = {.trials = trials};
    struct set all = all_of(g);
    uint64_t random = seed, deaf = 0, parted = 0;

    for (uint64_t i = 0; i < trials; i++) {
        struct set live = draw_live(g, f, &all, &random);

        deaf += is_deaf(g, &live);
        parted += is_parted(g, &live);
    }
    result.deaf = (double)deaf / (double)trials;
    result.parted = (double)parted / (double)trials;
    return result;
}

struct failures failures_count(enum routing_kind kind, uint32_t n, double f, uint64_t trials,
                               uint64_t seed)
{
    struct graph g = graph_of(kind, n);

    return n <= FAILURES_EXACT_MAX ? count_all(&g, f) : count_some(&g, f, trials, seed);
}

/* How many processes send to process 0 or to that one. 0: one of the two sends to the other, so
 * that both cannot hear nobody while both live. */
static uint32_t sources_of_both(const struct graph *g, uint32_t other)
{
    uint32_t both = 0;

    for (uint32_t i = 0; i < g->count; i++) {
        uint32_t source = g->n - g->distances[i];

        if (source == other || g->distances[i] == other)
            return 0;
        for (uint32_t j = 0; j < g->count; j++)
            both += (other + g->n - g->distances[j]) % g->n == source;
    }
    return 2 * g->count - both;
}

/* The sum over all processes, less that over all pairs: the true value lies between. */
void failures_bounds(enum routing_kind kind, uint32_t n, double f, double bounds[2])
{
    struct graph g = graph_of(kind, n);
    double none = pow(f, n);
    double pairs = 0;

    bounds[1] = n * (1 - f) * pow(f, g.count) + none;
    for (uint32_t other = 1; other < n; other++) {
        uint32_t sources = sources_of_both(&g, other);

        if (sources)
            pairs += pow(1 - f, 2) * pow(f, sources) / 2;
    }
    bounds[0] = fmax(0, bounds[1] - n * pairs);
}

/* [FM] 3: P_app(p,r) = 1 - (1 - f^r)^p */
double failures_of_application(uint32_t p, uint32_t r, double f)
{
    return -expm1(p * log1p(-pow(f, r)));
}
