/* Whole groups of detectors in simulated time: all small cases, and large random ones. No process
 * that lives is taken for failed, unless it stood still for longer than its bound; and none that
 * has failed is not. */
#include "dispatcher/detector/experiments.h"
#include "dispatcher/detector/routing.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("detector world");

#define MS 1000000ull
#define T (500 * MS)
#define S (1000 * MS)
#define LIVES UINT64_MAX

/* What a group found out. */
struct group {
    uint32_t n;
    uint64_t *crash_ns; /* of each; LIVES */
    uint64_t *found_ns; /* [by * n + about]; 0: not */
    uint64_t wrong;     /* verdicts about one that lives */
    uint64_t back;
};

static void on_verdict(void *ctx, uint64_t at_ns, uint32_t by, uint32_t about,
                       enum detector_verdict verdict)
{
    struct group *g = ctx;

    g->back += verdict == DETECTOR_BACK;
    if (verdict == DETECTOR_BACK)
        return;
    if (at_ns < g->crash_ns[about])
        g->wrong++;
    else if (!g->found_ns[(size_t)by * g->n + about])
        g->found_ns[(size_t)by * g->n + about] = at_ns;
}

static struct world_config config_of(enum detector_kind kind, uint32_t n, uint64_t seed)
{
    return (struct world_config){.detector = {.kind = kind,
                                              .n = n,
                                              .gossip_ns = T,
                                              .ping_ns = kind == DETECTOR_SWIM ? T / 2 : T},
                                 .seed = seed,
                                 .delay_ns = MS,
                                 .jitter_ns = 10 * MS,
                                 .start_ns = 4 * S};
}

static void begin(struct group *g, uint32_t n)
{
    *g = (struct group){.n = n};
    g->crash_ns = malloc(n * sizeof(*g->crash_ns));
    g->found_ns = calloc((size_t)n * n, sizeof(*g->found_ns));
    CU_ASSERT_TRUE_FATAL(g->crash_ns && g->found_ns);
    for (uint32_t i = 0; i < n; i++)
        g->crash_ns[i] = LIVES;
}

static void end(struct group *g)
{
    free(g->crash_ns);
    free(g->found_ns);
}

/* From the crash until all that live know it: T_cleanup and a ping; and the round in which the last
 * heartbeat went out, that in which its age is looked at, and one by which heartbeats differ, as
 * equation 4 rounds. */
static uint64_t bound_ns(enum detector_kind kind, uint32_t n)
{
    return (detector_cleanup_rounds(kind, n) + 3) * T + T;
}

/* Those that live, and only they, know all that have failed, in time. */
static bool is_known(const struct group *g, uint64_t within_ns)
{
    bool known = true;

    for (uint32_t by = 0; by < g->n; by++)
        for (uint32_t about = 0; about < g->n; about++) {
            uint64_t found = g->found_ns[(size_t)by * g->n + about];

            if (by == about || g->crash_ns[by] != LIVES || g->crash_ns[about] == LIVES)
                continue;
            known &= found != 0 && found <= g->crash_ns[about] + within_ns;
        }
    return known;
}

static void run(struct group *g, const struct world_config *config, uint64_t until_ns)
{
    struct world_watch watch = {.ctx = g, .verdict = on_verdict};
    struct world *w = world_new(config, &watch);

    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    for (uint32_t i = 0; i < g->n; i++)
        if (g->crash_ns[i] != LIVES)
            world_crash(w, i, g->crash_ns[i]);
    CU_ASSERT_TRUE(world_run(w, until_ns));
    world_free(w);
}

/* Whichever processes of a small group fail at once, also those that leave others without sources:
 * the ping procedure finds out who lives. */
TEST(every_set_of_failures_of_small_groups_is_known)
{
    for (enum detector_kind kind = DETECTOR_RANDOM; kind <= DETECTOR_DBRR; kind++)
        for (uint32_t n = 2; n <= 7; n++)
            for (uint32_t set = 0; set + 1 < 1u << n; set++) {
                struct world_config config = config_of(kind, n, set);
                struct group g;

                begin(&g, n);
                for (uint32_t i = 0; i < n; i++)
                    g.crash_ns[i] = set & 1u << i ? 12 * S + set % 10 * 50 * MS : LIVES;
                run(&g, &config, 32 * S);
                CU_ASSERT_EQUAL(g.wrong, 0);
                CU_ASSERT_TRUE(is_known(&g, bound_ns(kind, n)));
                end(&g);
            }
}

/* SWIM has no bound but chance: three minutes here. */
TEST(every_set_of_failures_of_small_groups_is_known_under_swim)
{
    for (uint32_t n = 2; n <= 5; n++)
        for (uint32_t set = 0; set + 1 < 1u << n; set++) {
            struct world_config config = config_of(DETECTOR_SWIM, n, set);
            struct group g;

            config.detector.health_max = set % 2 ? 8 : 0;
            begin(&g, n);
            for (uint32_t i = 0; i < n; i++)
                g.crash_ns[i] = set & 1u << i ? 12 * S : LIVES;
            run(&g, &config, 200 * S);
            CU_ASSERT_EQUAL(g.wrong, 0);
            CU_ASSERT_TRUE(is_known(&g, 180 * S));
            end(&g);
        }
}

static uint64_t below(uint64_t *random, uint64_t bound)
{
    return routing_draw(random) % bound;
}

/* Hundreds of processes, clocks that go wrong, and some that crash, one after the other. */
TEST(large_groups_know_exactly_who_failed)
{
    uint64_t random = 11;

    for (enum detector_kind kind = DETECTOR_RANDOM; kind <= DETECTOR_DBRR; kind++)
        for (uint32_t trial = 0; trial < 4; trial++) {
            uint32_t n = 100 + (uint32_t)below(&random, 200);
            struct world_config config = config_of(kind, n, routing_draw(&random));
            struct group g;

            config.drift_ppm = 200;
            begin(&g, n);
            for (uint32_t i = 0; i < n / 10; i++)
                g.crash_ns[below(&random, n)] = 20 * S + below(&random, 40 * S);
            run(&g, &config, 120 * S);
            CU_ASSERT_EQUAL(g.wrong, 0);
            CU_ASSERT_EQUAL(g.back, 0);
            CU_ASSERT_TRUE(is_known(&g, bound_ns(kind, n)));
            end(&g);
        }
}

/* Where messages are lost, differences cannot be read; tables come whole then. */
TEST(lost_messages_cost_bytes_and_no_verdicts)
{
    struct world_watch watch;
    uint64_t bytes[2];
    struct group g;

    for (uint32_t lossy = 0; lossy < 2; lossy++) {
        struct world_config config = config_of(DETECTOR_DBRR, 40, 5);
        struct world *w;

        begin(&g, 40);
        watch = (struct world_watch){.ctx = &g, .verdict = on_verdict};
        config.loss_millionths = lossy * 50000;
        w = world_new(&config, &watch);
        CU_ASSERT_PTR_NOT_NULL_FATAL(w);
        g.crash_ns[3] = 60 * S;
        world_crash(w, 3, 60 * S);
        CU_ASSERT_TRUE(world_run(w, 100 * S));
        CU_ASSERT_EQUAL(g.wrong, 0);
        CU_ASSERT_TRUE(is_known(&g, 2 * bound_ns(DETECTOR_DBRR, 40)));
        bytes[lossy] = world_counts(w).bytes;
        world_free(w);
        end(&g);
    }
    CU_ASSERT_TRUE(bytes[1] > bytes[0] + bytes[0] / 10);
}

/* By 1%, far more than real ones: after six minutes the slowest would be 14 rounds behind the
 * fastest, more than T_cleanup, if it did not catch up. */
TEST(clocks_that_go_wrong_stay_in_step)
{
    for (enum detector_kind kind = DETECTOR_RR; kind <= DETECTOR_DBRR; kind++) {
        struct world_config config = config_of(kind, 30, 3);
        struct group g;

        config.drift_ppm = 10000;
        begin(&g, 30);
        g.crash_ns[7] = g.crash_ns[29] = 350 * S;
        run(&g, &config, 400 * S);
        CU_ASSERT_EQUAL(g.wrong, 0);
        CU_ASSERT_TRUE(is_known(&g, bound_ns(kind, 30)));
        end(&g);
    }
}

/* Stops each process once for that long, one after the other, and returns the verdicts. */
static uint64_t verdicts_after_stops(enum detector_kind kind, uint32_t n, uint64_t stop_ns,
                                     uint64_t hangup_ns)
{
    struct world_config config = config_of(kind, n, n);
    struct world_watch watch;
    struct group g;
    struct world *w;
    uint64_t wrong;

    begin(&g, n);
    watch = (struct world_watch){.ctx = &g, .verdict = on_verdict};
    config.detector.hangup_ns = hangup_ns;
    w = world_new(&config, &watch);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    for (uint32_t i = 0; i < n; i++)
        world_stop(w, i, 30 * S + i * (stop_ns + 20 * S),
                   30 * S + i * (stop_ns + 20 * S) + stop_ns);
    CU_ASSERT_TRUE(world_run(w, 30 * S + n * (stop_ns + 20 * S)));
    world_free(w);
    wrong = g.wrong;
    end(&g);
    return wrong;
}

/* A process may stand still for T_cleanup and T_max_hangup, and is not suspected; nor does it
 * suspect others. Its last heartbeat was made up to a round before, and is taken for a round older
 * by those who count one ahead; they wait a round for its answer. One that stands still for longer
 * than that is suspected by all, and suspects nobody. */
TEST(a_process_that_stood_still_is_suspected_beyond_its_bound_alone)
{
    for (enum detector_kind kind = DETECTOR_RANDOM; kind <= DETECTOR_DBRR; kind++)
        for (uint32_t n = 3; n <= 40; n += 37) {
            uint64_t beyond = bound_ns(kind, n);

            uint64_t within = (detector_cleanup_rounds(kind, n) - 1) * T - T / 2;

            CU_ASSERT_EQUAL(verdicts_after_stops(kind, n, within, 0), 0);
            CU_ASSERT_EQUAL(verdicts_after_stops(kind, n, within + 9 * S, 9 * S), 0);
            CU_ASSERT_EQUAL(verdicts_after_stops(kind, n, beyond, 0), (uint64_t)n * (n - 1));
        }
}

/* [FM] 6: "the real detection times closely match the predictions", with a difference of "about the
 * same as the Tgossip value". */
TEST(detection_times_are_those_of_the_paper)
{
    for (uint32_t n = 4; n <= 64; n *= 2)
        for (uint32_t i = 0; i < 4; i++) {
            const struct experiment_protocol *p = &experiment_protocols[i];
            double cleanup_s = detector_cleanup_rounds(p->kind, n) * 0.5;
            struct experiment_times times;
            struct cw_err err = {0};

            CU_ASSERT_EQUAL(experiment_detection(&times, p, n, 3, 5, &err), CW_OK);
            CU_ASSERT_EQUAL(times.missed + times.wrong, 0);
            CU_ASSERT_TRUE(times.mean_s > cleanup_s && times.mean_s < cleanup_s + 1.25);
        }
}

/* Where nothing fails and no delay varies, differences are empty, whatever n is. */
TEST(bytes_of_binary_round_robin_do_not_grow)
{
    struct cw_err err = {0};
    double bytes = 0;

    for (uint32_t i = 2; i < 4; i++) {
        const struct experiment_protocol *p = &experiment_protocols[i];

        for (uint32_t n = 8; n <= 128; n *= 4) {
            CU_ASSERT_EQUAL(experiment_bytes(&bytes, p, n, 0, 1, &err), CW_OK);
            CU_ASSERT_DOUBLE_EQUAL(bytes, 16, 0.01); /* a message of 8 bytes in 0.5 s */
            CU_ASSERT_EQUAL(experiment_bytes_in_step(&bytes, p, n, &err), CW_OK);
            CU_ASSERT_DOUBLE_EQUAL(bytes, 16, 0.01);
        }
    }
    CU_ASSERT_EQUAL(experiment_bytes(&bytes, &experiment_protocols[1], 128, 0, 1, &err), CW_OK);
    CU_ASSERT_DOUBLE_EQUAL(bytes, 2 * (8 + 127), 0.5);
}
