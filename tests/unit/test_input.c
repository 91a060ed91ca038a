/* Standard input for rank 0, which a later incarnation gets from the beginning. */
#include "dispatcher/streams/input.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("input");

#define TURNS_MAX 100000

static struct input_pump pump;
static struct cw_err err;
static int ours; /* what is written here is the standard input */

static void open_pump(bool keep)
{
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL_FATAL(input_open(&pump, keep, &err), CW_OK);
    pump.from = fds[0];
    ours = fds[1];
}

static void close_pump(void)
{
    if (pump.from >= 0)
        close(pump.from);
    if (ours >= 0)
        close(ours);
    input_close(&pump);
}

/* As the job's loop moves it; `more` says that the standard input has something. */
static void move(bool more)
{
    input_move(&pump, more && input_wants_read(&pump));
    while (input_wants_write(&pump)) {
        size_t before = pump.given;

        input_move(&pump, false);
        if (pump.given == before)
            break;
    }
}

static void give(const char *text)
{
    CU_ASSERT_EQUAL(write(ours, text, strlen(text)), (ssize_t)strlen(text));
    move(true);
}

/* The rank reads this, and no more is there. */
static void rank_reads(const char *text)
{
    char got[256];
    ssize_t n;

    fcntl(pump.rank_end, F_SETFL, O_NONBLOCK);
    n = read(pump.rank_end, got, sizeof(got) - 1);
    got[n > 0 ? n : 0] = '\0';
    CU_ASSERT_STRING_EQUAL(got, text);
}

TEST(given_again)
{
    open_pump(true);
    give("one ");
    rank_reads("one ");
    give("two ");
    CU_ASSERT_EQUAL(input_restart(&pump, 0, &err), CW_OK);
    CU_ASSERT_FALSE(input_wants_read(&pump)); /* first what came before */
    move(false);
    rank_reads("one two ");
    give("three");
    rank_reads("three");
    CU_ASSERT_EQUAL(input_restart(&pump, 0, &err), CW_OK);
    move(false);
    rank_reads("one two three");
    close_pump();
}

/* The end of the input comes again too. */
TEST(end_again)
{
    char byte;

    open_pump(true);
    give("all");
    close(ours);
    ours = -1;
    move(true);
    CU_ASSERT_EQUAL(pump.to, -1);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(input_restart(&pump, 0, &err), CW_OK);
        move(false);
        rank_reads("all");
        CU_ASSERT_EQUAL(pump.to, -1);
        CU_ASSERT_EQUAL(read(pump.rank_end, &byte, 1), 0);
    }
    close_pump();
}

/* The rank is killed: its end of the pipe is gone. */
TEST(nobody_reads)
{
    open_pump(true);
    give("one ");
    close(pump.rank_end);
    pump.rank_end = -1;
    give("two ");
    CU_ASSERT_EQUAL(pump.to, -1);
    CU_ASSERT_FALSE(input_wants_read(&pump) || input_wants_write(&pump));
    CU_ASSERT_EQUAL(input_restart(&pump, 0, &err), CW_OK);
    move(false);
    rank_reads("one two ");
    close_pump();
}

/* Gives `size` bytes through the pump. Returns how many were wrong. */
static size_t pass(size_t size)
{
    static char bytes[INPUT_BUFFER], got[INPUT_BUFFER];
    size_t given = 0, taken = 0, wrong = 0;

    fcntl(pump.rank_end, F_SETFL, O_NONBLOCK);
    fcntl(ours, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < TURNS_MAX && taken < size; i++) {
        size_t part = size - given < sizeof(bytes) ? size - given : sizeof(bytes);
        ssize_t n;

        for (size_t j = 0; j < part; j++)
            bytes[j] = (char)((given + j) * 7 >> 3);
        n = part ? write(ours, bytes, part) : 0;
        given += n > 0 ? (size_t)n : 0;
        move(given > taken);
        n = read(pump.rank_end, got, sizeof(got));
        for (ssize_t j = 0; j < n; j++)
            wrong += got[j] != (char)((taken + (size_t)j) * 7 >> 3);
        taken += n > 0 ? (size_t)n : 0;
    }
    return wrong + (size - taken);
}

TEST(memory_is_bounded)
{
    open_pump(true);
    CU_ASSERT_EQUAL(pass(INPUT_KEPT_MAX / 2), 0);
    CU_ASSERT_TRUE(pump.keep);
    close_pump();
    open_pump(true);
    CU_ASSERT_EQUAL(pass(INPUT_KEPT_MAX + INPUT_KEPT_MAX / 2), 0);
    CU_ASSERT_FALSE(pump.keep);
    CU_ASSERT_TRUE(pump.room <= INPUT_KEPT_MAX);
    close_pump();
    open_pump(false);
    CU_ASSERT_EQUAL(pass(10 * INPUT_BUFFER), 0);
    CU_ASSERT_EQUAL(pump.room, INPUT_BUFFER);
    close_pump();
}

/* --- images of rank 0 --- */

TEST(given_from_a_place)
{
    open_pump(true);
    give("one two three");
    for (uint64_t place = 12; place > 0; place -= 3) {
        CU_ASSERT_TRUE(input_keeps(&pump, place));
        CU_ASSERT_EQUAL(input_restart(&pump, place, &err), CW_OK);
        CU_ASSERT_EQUAL(input_given(&pump), place);
        move(false);
        rank_reads(&"one two three"[place]);
        CU_ASSERT_EQUAL(input_given(&pump), 13);
    }
    CU_ASSERT_FALSE(input_keeps(&pump, 14));
    give(" four");
    rank_reads(" four");
    close_pump();
}

/* What is let go is not counted, and what follows it is there all the same. */
TEST(let_go)
{
    open_pump(true);
    give("one two three");
    input_let_go(&pump, 4);
    CU_ASSERT_FALSE(input_keeps(&pump, 3));
    CU_ASSERT_TRUE(input_keeps(&pump, 4));
    CU_ASSERT_EQUAL(pump.size, 9);
    CU_ASSERT_EQUAL(input_given(&pump), 13);
    CU_ASSERT_EQUAL(input_restart(&pump, 4, &err), CW_OK);
    input_let_go(&pump, 8); /* not before it is given */
    CU_ASSERT_TRUE(input_keeps(&pump, 4));
    move(false);
    rank_reads("two three");
    input_let_go(&pump, 2); /* is gone */
    input_let_go(&pump, 8);
    CU_ASSERT_FALSE(input_keeps(&pump, 4));
    CU_ASSERT_EQUAL(input_restart(&pump, 8, &err), CW_OK);
    move(false);
    rank_reads("three");
    close_pump();
}

TEST(nothing_moves_in_a_pause)
{
    open_pump(true);
    give("one ");
    pump.paused = true;
    give("two ");
    rank_reads("one ");
    CU_ASSERT_FALSE(input_wants_read(&pump) || input_wants_write(&pump) || input_waits(&pump));
    CU_ASSERT_EQUAL(input_given(&pump), 4);
    pump.paused = false;
    move(true);
    rank_reads("two ");
    close_pump();
}

/* As much as is kept at most, four times, with an image after each half. */
TEST(much_input_with_images)
{
    open_pump(true);
    for (int i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(pass(INPUT_KEPT_MAX / 2), 0);
        CU_ASSERT_TRUE(pump.keep);
        input_let_go(&pump, input_given(&pump));
    }
    CU_ASSERT_EQUAL(input_given(&pump), 4 * INPUT_KEPT_MAX);
    CU_ASSERT_TRUE(pump.room <= INPUT_KEPT_MAX);
    close_pump();
    open_pump(false);
    CU_ASSERT_EQUAL(pass(10 * INPUT_BUFFER), 0);
    CU_ASSERT_EQUAL(input_given(&pump), 10 * INPUT_BUFFER);
    CU_ASSERT_FALSE(input_keeps(&pump, input_given(&pump)));
    close_pump();
}
