/* Places of images in the standard input of rank 0. */
#include "common/clock.h"
#include "dispatcher/ranks/rank_input.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TURNS 20
#define PASSES_MAX 100000

static struct cw_err err;
static struct loop *loop;
static struct rank_input *input;
static int saved_stdin;
static int ours; /* what is written here is the standard input */
static int theirs;
static int overruns;
static struct places places;

static void on_overrun(void *ctx)
{
    (void)ctx;
    overruns++;
}

/* The process of the rank has its end, which does not wait. */
static void take_end(void)
{
    theirs = dup(rank_input_end(input));
    fcntl(theirs, F_SETFL, O_NONBLOCK);
    rank_input_taken(input);
}

static void open_input(void)
{
    struct rank_input_config config = {.keep = true, .overrun = on_overrun, .places = &places};
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC), 0);
    saved_stdin = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(fds[0], STDIN_FILENO);
    close(fds[0]);
    ours = fds[1];
    loop = loop_new(&err);
    config.loop = loop;
    overruns = 0;
    places = (struct places){0};
    input = rank_input_new(&config, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(input);
    take_end();
}

static void close_input(void)
{
    rank_input_free(input);
    loop_free(loop);
    close(theirs);
    if (ours >= 0)
        close(ours);
    dup2(saved_stdin, STDIN_FILENO);
    close(saved_stdin);
}

SUITE_AFTER_EACH("input of rank 0", close_input);

static void turns(void)
{
    for (int i = 0; i < TURNS; i++) {
        loop_look(loop);
        loop_turn(loop, cw_clock_ns());
    }
}

static void give(const char *text)
{
    CU_ASSERT_EQUAL(write(ours, text, strlen(text)), (ssize_t)strlen(text));
    turns();
}

static void end_input(void)
{
    close(ours);
    ours = -1;
    turns();
}

static void rank_reads(size_t most, const char *text)
{
    char got[256];
    ssize_t n = read(theirs, got, most);

    got[n > 0 ? n : 0] = '\0';
    CU_ASSERT_STRING_EQUAL(got, text);
}

static uint64_t unread(void)
{
    int bytes = 0;

    CU_ASSERT_EQUAL(ioctl(theirs, FIONREAD, &bytes), 0);
    return (uint64_t)bytes;
}

static void restart(uint32_t number)
{
    close(theirs);
    CU_ASSERT_EQUAL(rank_input_restart(input, number, &err), CW_OK);
    take_end();
    turns();
}

TEST(goes_on_where_it_had_read_to)
{
    open_input();
    give("one two three");
    rank_reads(4, "one ");
    rank_input_pause(input);
    give(" four");
    CU_ASSERT_EQUAL(unread(), 9);
    CU_ASSERT_FALSE(rank_input_has_place(input, 1));
    CU_ASSERT_TRUE(rank_input_mark(input, 1, unread()));
    CU_ASSERT_TRUE(rank_input_has_place(input, 1));
    rank_input_resume(input);
    turns();
    rank_reads(99, "two three four");
    restart(1);
    rank_reads(4, "two ");
    rank_input_pause(input);
    CU_ASSERT_TRUE(rank_input_mark(input, 2, unread()));
    restart(2); /* which ends the pause */
    give(" five");
    rank_reads(99, "three four five");
    restart(1);
    rank_reads(99, "two three four five");
    restart(0);
    rank_reads(99, "one two three four five");
    CU_ASSERT_EQUAL(overruns, 0);
}

/* How much was in the pipe at that moment is not known. */
TEST(image_without_a_pause)
{
    open_input();
    give("one two");
    rank_reads(4, "one ");
    CU_ASSERT_FALSE(rank_input_mark(input, 1, unread()));
    rank_input_pause(input);
    CU_ASSERT_FALSE(rank_input_mark(input, 2, 8)); /* more than was written */
    CU_ASSERT_FALSE(rank_input_mark(input, 0, 0));
    rank_input_resume(input);
    end_input();
    CU_ASSERT_TRUE(rank_input_mark(input, 3, unread())); /* nothing more is written */
    restart(3);
    rank_reads(99, "two");
    CU_ASSERT_EQUAL(read(theirs, &(char){0}, 1), 0);
    CU_ASSERT_FALSE(rank_input_has_place(input, 1));
    CU_ASSERT_FALSE(rank_input_has_place(input, 2));
    close(theirs);
    CU_ASSERT_EQUAL(rank_input_restart(input, 2, &err), CW_ELIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "image 2"));
    theirs = -1;
}

TEST(unread_is_unknown)
{
    open_input();
    CU_ASSERT_TRUE(rank_input_mark(input, 1, UINT64_MAX)); /* nothing was given */
    CU_ASSERT_TRUE(rank_input_mark(input, 1, 0));
    give("one");
    rank_input_pause(input);
    CU_ASSERT_FALSE(rank_input_mark(input, 2, UINT64_MAX));
    rank_input_resume(input);
    end_input();
    CU_ASSERT_FALSE(rank_input_mark(input, 3, UINT64_MAX));
    restart(1);
    rank_reads(99, "one");
    close_input();
    open_input();
    give("one");
    close(theirs);
    CU_ASSERT_TRUE(rank_input_mark(input, 1, UINT64_MAX)); /* nobody reads it */
    give("two");
    CU_ASSERT_TRUE(rank_input_mark(input, 2, UINT64_MAX));
    theirs = -1;
}

TEST(no_input_at_all)
{
    open_input();
    end_input();
    CU_ASSERT_TRUE(rank_input_mark(input, 1, UINT64_MAX));
    restart(1);
    CU_ASSERT_EQUAL(read(theirs, &(char){0}, 1), 0);
}

TEST(forgotten)
{
    open_input();
    give("one two three");
    for (uint32_t number = 1; number <= 2; number++) {
        rank_reads(4, number == 1 ? "one " : "two ");
        rank_input_pause(input);
        CU_ASSERT_TRUE(rank_input_mark(input, number, unread()));
        rank_input_resume(input);
    }
    rank_input_let_go(input, 9); /* is not known */
    CU_ASSERT_TRUE(rank_input_has_place(input, 0));
    close_input();
    open_input();
    give("one two three");
    for (uint32_t number = 1; number <= 2; number++) {
        rank_reads(4, number == 1 ? "one " : "two ");
        rank_input_pause(input);
        CU_ASSERT_TRUE(rank_input_mark(input, number, unread()));
    }
    rank_input_let_go(input, 2);
    CU_ASSERT_FALSE(rank_input_has_place(input, 0));
    CU_ASSERT_FALSE(rank_input_has_place(input, 1));
    CU_ASSERT_TRUE(rank_input_has_place(input, 2));
    restart(2);
    rank_reads(99, "three");
    give(" four");
    rank_reads(99, " four");
}

TEST(given_again)
{
    open_input();
    give("one ");
    rank_reads(99, "one ");
    give("two ");
    restart(0);
    rank_reads(99, "one two ");
    give("three");
    rank_reads(99, "three");
    end_input();
    for (int i = 0; i < 2; i++) { /* the end comes again, too */
        restart(0);
        rank_reads(99, "one two three");
        CU_ASSERT_EQUAL(read(theirs, &(char){0}, 1), 0);
    }
}

/* The rank is killed: its end of the pipe is gone. */
TEST(nobody_reads)
{
    open_input();
    give("one ");
    close(theirs);
    give("two ");
    theirs = -1;
    restart(0);
    rank_reads(99, "one two ");
}

/* Gives `size` bytes. Returns how many were wrong. */
static size_t pass(size_t size)
{
    static char bytes[INPUT_BUFFER], got[INPUT_BUFFER];
    size_t given = 0, taken = 0, wrong = 0;

    fcntl(ours, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < PASSES_MAX && taken < size; i++) {
        size_t part = size - given < sizeof(bytes) ? size - given : sizeof(bytes);
        ssize_t n;

        for (size_t j = 0; j < part; j++)
            bytes[j] = (char)((given + j) * 7 >> 3);
        n = part ? write(ours, bytes, part) : 0;
        given += n > 0 ? (size_t)n : 0;
        loop_look(loop);
        loop_turn(loop, cw_clock_ns());
        n = read(theirs, got, sizeof(got));
        for (ssize_t j = 0; j < n; j++)
            wrong += got[j] != (char)((taken + (size_t)j) * 7 >> 3);
        taken += n > 0 ? (size_t)n : 0;
    }
    return wrong + (size - taken);
}

TEST(memory_is_bounded)
{
    open_input();
    CU_ASSERT_EQUAL(pass(INPUT_KEPT_MAX / 2), 0);
    CU_ASSERT_TRUE(rank_input_has_place(input, 0));
    CU_ASSERT_EQUAL(pass(INPUT_KEPT_MAX), 0);
    CU_ASSERT_FALSE(rank_input_has_place(input, 0));
    CU_ASSERT_EQUAL(overruns, 1);
}

/* As much as is kept at most, four times, with an image after each half. */
TEST(much_input_with_images)
{
    open_input();
    for (uint32_t number = 1; number <= 8; number++) {
        CU_ASSERT_EQUAL(pass(INPUT_KEPT_MAX / 2), 0);
        rank_input_pause(input);
        CU_ASSERT_TRUE(rank_input_mark(input, number, unread()));
        rank_input_resume(input);
        rank_input_let_go(input, number);
    }
    CU_ASSERT_TRUE(rank_input_has_place(input, 8));
    CU_ASSERT_EQUAL(overruns, 0);
}
