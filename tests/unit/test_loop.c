/* The dispatcher's loop. */
#include "common/clock.h"
#include "common/loop.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

SUITE("the dispatcher's loop");

#define SOON_NS 1000000ull
#define PIPES 2

static struct loop *loop;
static int ends[PIPES][2];
static struct loop_watch watches[PIPES];
static struct loop_timer timer;
static int calls;
static int timer_calls;

static void count(void *ctx)
{
    char byte;

    calls++;
    CU_ASSERT_EQUAL(read(*(int *)ctx, &byte, 1), 1);
}

static void count_only(void *ctx)
{
    (void)ctx;
    calls++;
}

/* Whichever is called first ends the other. */
static void end_both(void *ctx)
{
    (void)ctx;
    calls++;
    for (int i = 0; i < PIPES; i++)
        loop_unwatch(loop, &watches[i]);
}

static void count_timer(void *ctx)
{
    CU_ASSERT_PTR_EQUAL(ctx, &timer);
    timer_calls++;
}

static void open_loop(void)
{
    struct cw_err err;

    loop = loop_new(&err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(loop);
    for (int i = 0; i < PIPES; i++)
        CU_ASSERT_EQUAL_FATAL(pipe2(ends[i], O_CLOEXEC | O_NONBLOCK), 0);
    calls = timer_calls = 0;
}

static void close_loop(void)
{
    loop_free(loop);
    for (int i = 0; i < PIPES; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
}

static void say(int which)
{
    CU_ASSERT_EQUAL(write(ends[which][1], "x", 1), 1);
}

static void turn(void)
{
    loop_turn(loop, loop_look(loop) + SOON_NS);
}

TEST(descriptors)
{
    open_loop();
    CU_ASSERT_EQUAL(loop_watch(loop, &watches[0], ends[0][0], EPOLLIN, count, &ends[0][0]), 0);
    turn();
    CU_ASSERT_EQUAL(calls, 0);
    say(0);
    say(0);
    turn();
    turn();
    turn();
    CU_ASSERT_EQUAL(calls, 2);
    loop_unwatch(loop, &watches[0]);
    CU_ASSERT_EQUAL(watches[0].fd, -1);
    loop_unwatch(loop, &watches[0]);
    say(0);
    turn();
    CU_ASSERT_EQUAL(calls, 2);
    close_loop();
}

TEST(ended_in_the_same_turn)
{
    open_loop();
    for (int i = 0; i < PIPES; i++) {
        CU_ASSERT_EQUAL(loop_watch(loop, &watches[i], ends[i][0], EPOLLIN, end_both, NULL), 0);
        say(i);
    }
    turn();
    CU_ASSERT_EQUAL(calls, 1);
    close_loop();
}

TEST(one_shot)
{
    open_loop();
    CU_ASSERT_EQUAL(loop_watch(loop, &watches[0], ends[0][0], EPOLLONESHOT, count_only, NULL), 0);
    say(0);
    turn();
    CU_ASSERT_EQUAL(calls, 0);
    for (int i = 1; i < 3; i++) {
        loop_rearm(loop, &watches[0], EPOLLIN);
        turn();
        turn();
        CU_ASSERT_EQUAL(calls, i);
    }
    close_loop();
}

TEST(what_cannot_be_watched)
{
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    open_loop();
    CU_ASSERT_EQUAL(loop_watch(loop, &watches[0], file, EPOLLIN, count_only, NULL), -1);
    CU_ASSERT_EQUAL(watches[0].fd, -1);
    loop_unwatch(loop, &watches[0]);
    close(file);
    close_loop();
}

TEST(timers)
{
    open_loop();
    loop_timer_add(loop, &timer, count_timer, &timer);
    turn();
    CU_ASSERT_EQUAL(timer_calls, 0);
    loop_timer_set(&timer, loop_now_ns(loop) + 10 * SOON_NS);
    loop_timer_hasten(&timer, loop_now_ns(loop) + SOON_NS);
    loop_timer_hasten(&timer, loop_now_ns(loop) + 20 * SOON_NS);
    CU_ASSERT_EQUAL(timer.at_ns, loop_now_ns(loop) + SOON_NS);
    loop_turn(loop, LOOP_NEVER);
    CU_ASSERT_EQUAL(timer_calls, 1);
    turn();
    CU_ASSERT_EQUAL(timer_calls, 1);
    loop_timer_set(&timer, 0);
    loop_turn(loop, LOOP_NEVER);
    CU_ASSERT_EQUAL(timer_calls, 2);
    CU_ASSERT_TRUE(loop_now_ns(loop) <= cw_clock_ns());
    loop_timer_remove(&timer);
    loop_timer_set(&timer, 0);
    turn();
    CU_ASSERT_EQUAL(timer_calls, 2);
    loop_timer_remove(&timer);
    close_loop();
}

/* Each lies in memory of its own, which is freed with it. */
static struct loop_timer *removed[3];
static int removes_all;

static void remove_timer(int i)
{
    loop_timer_remove(removed[i]);
    free(removed[i]);
    removed[i] = NULL;
}

/* Whichever is called first removes one, or all, amid the turn in which all are due. */
static void remove_some(void *ctx)
{
    int all = *(int *)ctx;

    calls++;
    for (int i = 0; i < 3; i++)
        if (removed[i] && (all || removed[i]->at_ns == LOOP_NEVER || i == 1))
            remove_timer(i);
}

TEST(timers_are_removed)
{
    for (int all = 0; all < 2; all++) {
        open_loop();
        removes_all = all;
        for (int i = 0; i < 3; i++) {
            removed[i] = malloc(sizeof(*removed[i]));
            CU_ASSERT_PTR_NOT_NULL_FATAL(removed[i]);
            loop_timer_add(loop, removed[i], remove_some, &removes_all);
            loop_timer_set(removed[i], 0);
        }
        turn();
        turn();
        /* the one in the middle is gone before its turn */
        CU_ASSERT_EQUAL(calls, all ? 1 : 2);
        for (int i = 0; i < 3; i++)
            CU_ASSERT_PTR_NULL(removed[i]);
        close_loop();
    }
}

/* poll() takes an int of milliseconds; more than 24.8 days are none. */
TEST(far_away)
{
    uint64_t days_ns = 86400ull * 1000000000ull;

    CU_ASSERT_EQUAL(cw_clock_wait_ms(days_ns, days_ns), 0);
    CU_ASSERT_EQUAL(cw_clock_wait_ms(days_ns, 0), 0);
    CU_ASSERT_EQUAL(cw_clock_wait_ms(5, 5 + 1), 1);
    CU_ASSERT_EQUAL(cw_clock_wait_ms(0, 24 * days_ns), 24 * 86400 * 1000 + 1);
    CU_ASSERT_EQUAL(cw_clock_wait_ms(0, 25 * days_ns), INT_MAX);
    CU_ASSERT_EQUAL(cw_clock_wait_ms(0, 50 * days_ns), INT_MAX);
}
