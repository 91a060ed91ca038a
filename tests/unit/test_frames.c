/* Which handlers run, by addresses alone: a stack of the thread, an alternate one, and two of
 * contexts. */
#include "rdevice/frames.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE("frames");

enum { STACK = 0x7000000, ALTERNATE = 0x5000000, ALTERNATE_BYTES = 0x4000, FIRST = 0x6000000 };

static void set_up(void)
{
    frames_go(NULL, NULL, UINTPTR_MAX);
    CU_ASSERT_FALSE(frames_any());
}

TEST(a_handler_that_returns)
{
    struct frames_mark outer, inner;

    set_up();
    CU_ASSERT_FALSE(frames_inside(STACK));
    frames_push(&outer, STACK - 100, 0, STACK);
    CU_ASSERT_TRUE(frames_inside(STACK - 200));
    frames_push(&inner, ALTERNATE + 500, ALTERNATE, STACK - 200);
    CU_ASSERT_TRUE(frames_inside(ALTERNATE + 400));
    frames_drop(&inner);
    CU_ASSERT_TRUE(frames_inside(STACK - 200));
    frames_drop(&outer);
    CU_ASSERT_FALSE(frames_any());
}

/* Whoever asks above it, far below it, or where its frame was. */
TEST(a_handler_that_is_left)
{
    struct frames_mark mark;
    static const uintptr_t asks[] = {STACK - 100, STACK + 5000, STACK - 0x200000, FIRST};

    for (unsigned i = 0; i < sizeof(asks) / sizeof(*asks); i++) {
        set_up();
        frames_push(&mark, STACK - 100, 0, STACK);
        CU_ASSERT_FALSE(frames_inside(asks[i]));
        CU_ASSERT_FALSE(frames_any());
    }
    frames_push(&mark, STACK - 100, 0, STACK);
    mark.value = 0;
    CU_ASSERT_FALSE(frames_inside(STACK - 200));
    frames_push(&mark, ALTERNATE + 500, ALTERNATE, STACK);
    CU_ASSERT_FALSE(frames_inside(ALTERNATE - 1));
}

TEST(the_inner_one_is_left)
{
    struct frames_mark outer, inner;

    set_up();
    frames_push(&outer, STACK - 100, 0, STACK);
    frames_push(&inner, ALTERNATE + 500, ALTERNATE, STACK - 200);
    frames_go(NULL, NULL, STACK - 150); /* a jump within the outer one */
    CU_ASSERT_TRUE(frames_inside(STACK - 200));
    frames_push(&inner, STACK - 300, 0, STACK - 200);
    CU_ASSERT_TRUE(frames_inside(STACK - 200)); /* in the outer one still */
    frames_go(NULL, NULL, STACK);
    CU_ASSERT_FALSE(frames_any());
}

/* The one that is interrupted was left, although nobody has asked since. */
TEST(a_handler_after_one_that_was_left)
{
    struct frames_mark first, second;

    set_up();
    frames_push(&first, ALTERNATE + 500, ALTERNATE, STACK);
    frames_push(&second, STACK - 100, 0, STACK);
    frames_drop(&second);
    CU_ASSERT_FALSE(frames_any());
}

TEST(contexts_are_changed)
{
    struct frames_mark outer, inner, other;
    char context[2];

    set_up();
    frames_push(&outer, STACK - 100, 0, STACK);
    frames_push(&inner, STACK - 300, 0, STACK - 200);
    frames_go(&context[0], &context[1], FIRST);
    CU_ASSERT_FALSE(frames_any());
    CU_ASSERT_FALSE(frames_inside(FIRST));
    frames_push(&other, FIRST - 100, 0, FIRST);
    frames_go(&context[1], &context[0], STACK - 400);
    CU_ASSERT_TRUE(frames_inside(STACK - 400));
    frames_drop(&inner);
    CU_ASSERT_TRUE(frames_inside(STACK - 250));
    frames_drop(&outer);
    CU_ASSERT_FALSE(frames_any());
    frames_go(&context[0], &context[1], FIRST - 200);
    CU_ASSERT_TRUE(frames_inside(FIRST - 200));
    frames_go(NULL, &context[0], STACK); /* a context that keeps nothing */
    CU_ASSERT_FALSE(frames_any());
}

/* Contexts that nobody goes back to. */
TEST(many_are_forgotten)
{
    static struct frames_mark marks[200];
    static char contexts[200];

    set_up();
    for (unsigned i = 0; i < 200; i++) {
        frames_push(&marks[i], STACK - 100, 0, STACK);
        frames_go(&contexts[i], NULL, FIRST);
    }
    frames_go(&contexts[0], &contexts[199], STACK - 200);
    CU_ASSERT_TRUE(frames_inside(STACK - 200));
    frames_drop(&marks[199]);
    CU_ASSERT_FALSE(frames_any());
}
