#include "dispatcher/detector/routing.h"

#include <math.h>

uint32_t routing_log2(uint32_t n)
{
    return n < 2 ? 0 : 32 - (uint32_t)__builtin_clz(n - 1);
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
uint64_t routing_draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* --- random --- */

static uint32_t random_cycle(uint32_t n)
{
    return n - 1;
}

/* [FM] 4: "each module randomly chooses at each step, the hosts it sends its table to." */
static uint32_t random_target(uint32_t s, uint32_t n, uint32_t round, uint64_t draw)
{
    uint32_t distance = 1 + (uint32_t)((unsigned __int128)draw * (n - 1) >> 64);

    (void)round;
    return (s + distance) % n;
}

/* [FM] has no bound for it. A rumour that each who knows it passes to one other a round reaches all
 * n in log2(n) + ln(n) rounds, up to a constant (Pittel, "On spreading a rumor", 1987). */
static uint32_t random_spread(uint32_t n)
{
    return (uint32_t)ceil(log2(n) + log(n));
}

/* [FM] 4: "the system implementor can increase Tcleanup at the cost of a longer detection time."
 * Here by the factor that BRR has. */
static uint32_t random_cleanup(uint32_t n)
{
    return 2 * random_spread(n);
}

/* --- round robin --- */

/* [FM] 4: "After r = n - 1 rounds, all nodes have communicated with each other, which ends a
 * cycle" */
static uint32_t rr_cycle(uint32_t n)
{
    return n - 1;
}

/* [FM] (1): d = (s + r) mod n, 0 <= s < n, 1 <= r < n */
static uint32_t rr_target(uint32_t s, uint32_t n, uint32_t round, uint64_t draw)
{
    (void)draw;
    return (s + round) % n;
}

/* [FM] 4: T_cleanup^min = r x T_gossip where r = ⌈ρ⌉, ρ(ρ + 1) / 2 = n. That is from the first
 * round of a cycle. */
static uint32_t rr_spread(uint32_t n)
{
    uint32_t r = 1;

    while (r * (r + 1) / 2 < n)
        r++;
    return r;
}

/* [FM] sets none for it. Across the end of a cycle the distances are n - 2, n - 1, 1, 2, ...: as
 * many steps back as forward, which takes up to √2 times T_cleanup^min. The smallest multiple, as
 * for BRR, has room for that. */
static uint32_t rr_cleanup(uint32_t n)
{
    return 2 * rr_spread(n);
}

/* --- binary round robin --- */

/* [FM] 4: "The cycle length is ⌈log2(n)⌉ rounds, and we have T_cleanup^min = ⌈log2(n)⌉ x T_gossip"
 */
static uint32_t brr_cycle(uint32_t n)
{
    return routing_log2(n);
}

/* [FM] (2): d = (s + 2^(r-1)) mod n, 1 <= r <= ⌈log2(n)⌉ */
static uint32_t brr_target(uint32_t s, uint32_t n, uint32_t round, uint64_t draw)
{
    (void)draw;
    return (s + (1u << (round - 1))) % n;
}

/* [FM] 4: "a good choice for T_cleanup is the smallest multiple of T_cleanup^min, i.e.
 * 2 x ⌈log2(n)⌉ x T_gossip." */
static uint32_t brr_cleanup(uint32_t n)
{
    return 2 * routing_log2(n);
}

/* --- double binary round robin --- */

/* [FM] 5.3: "The cycle length is 2⌈log2(n)⌉ and hence we have T_cleanup^min = 2⌈log2(n)⌉ x
 * T_gossip." */
static uint32_t dbrr_cycle(uint32_t n)
{
    return 2 * routing_log2(n);
}

static uint32_t dbrr_target(uint32_t s, uint32_t n, uint32_t round, uint64_t draw)
{
    uint32_t half = routing_log2(n);

    /* [FM] (3): d = (s + 2^(r-1)) mod n, if 1 <= r <= ⌈log2(n)⌉ */
    if (round <= half)
        return brr_target(s, n, round, draw);
    /* d = (s - 2^(r-⌈log2(n)⌉-1)) mod n, if ⌈log2(n)⌉ < r <= 2⌈log2(n)⌉ */
    return (s + n - (1u << (round - half - 1))) % n;
}

/* [FM] 5.3: "With the same assumptions as for BRR, we set T_cleanup = 3⌈log2(n)⌉ x T_gossip" */
static uint32_t dbrr_cleanup(uint32_t n)
{
    return 3 * routing_log2(n);
}

const struct routing routings[ROUTINGS] = {
    [ROUTING_RANDOM] = {"random", random_cycle, random_target, random_spread, random_cleanup,
                        false},
    [ROUTING_RR] = {"rr", rr_cycle, rr_target, rr_spread, rr_cleanup, false},
    [ROUTING_BRR] = {"brr", brr_cycle, brr_target, brr_cycle, brr_cleanup, true},
    [ROUTING_DBRR] = {"dbrr", dbrr_cycle, dbrr_target, dbrr_cycle, dbrr_cleanup, true},
};
