/* Places of images in what ranks print: marks are taken out wherever they are, and a process that
 * goes on from one prints nothing twice and leaves nothing out. */
#include "common/clock.h"
#include "dispatcher/ranks/output.h"
#include "dispatcher/ranks/outputs.h"
#include "tests/lib/said.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("places in output");

#define NOW 7000000000ull
#define TEXT "one\n\ntwo\nthree"
#define TEXT_SIZE (sizeof(TEXT) - 1)
#define GOT_MAX (256u << 10)

static const uint8_t secret[CW_MARK_SIZE] = {0xff, 'c', 'r', 0xff, 'e', 't', '\n', 1,
                                             2,    3,   4,   5,    6,   7,   8,    0xff};
static struct cw_err err;

/* A stream of rank 3 to a pipe. */
static struct output_sink sink;
static struct output_stream stream;
static struct places places;
static struct said rank;
static int reader_fd;
static char got[GOT_MAX + 1]; /* all that came out */
static size_t got_size;

static bool has_place(uint32_t number)
{
    return places_at(&places, number, PLACE_STDOUT);
}

static struct channel *new_channel(void)
{
    said_close(&rank);
    said_open(&rank, NULL, false);
    return rank.channel;
}

static void open_stream(void)
{
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    reader_fd = fds[0];
    output_sink_open_fd(&sink, fds[1], "standard output");
    CU_ASSERT_EQUAL_FATAL(output_stream_open(&stream, new_channel(), 3, &sink, false, &err), CW_OK);
    places = (struct places){0};
    output_stream_set_mark(&stream, secret, &places, PLACE_STDOUT);
    got_size = 0;
}

static void close_stream(void)
{
    output_stream_close(&stream);
    output_sink_close(&sink, &err);
    close(reader_fd);
    said_close(&rank);
}

static void step(uint64_t now_ns)
{
    CU_ASSERT_EQUAL(output_stream_read(&stream, OUTPUT_READS_A_TURN, now_ns, &err), CW_OK);
}

static void tick(uint64_t now_ns)
{
    CU_ASSERT_EQUAL(output_stream_tick(&stream, now_ns, &err), CW_OK);
}

static void print(const void *bytes, size_t size)
{
    CU_ASSERT_EQUAL(said_put(&rank, bytes, size), size);
    step(NOW);
}

static void print_text(const char *text)
{
    print(text, strlen(text));
}

static const uint8_t *mark_of(uint32_t number)
{
    static struct cw_output_mark mark;

    mark.number = number;
    mark.check = ~number;
    memcpy(mark.mark, secret, sizeof(secret));
    return (const uint8_t *)&mark;
}

static void print_mark(uint32_t number)
{
    print(mark_of(number), CW_OUTPUT_MARK_SIZE);
}

static void read_sink(void)
{
    ssize_t n;

    while ((n = read(reader_fd, got + got_size, GOT_MAX - got_size)) > 0)
        got_size += (size_t)n;
    got[got_size] = '\0';
}

static void has_shown(const char *text)
{
    read_sink();
    CU_ASSERT_STRING_EQUAL(got, text);
}

/* The process is gone; another one goes on from this image. */
static void go_on_from(uint32_t number)
{
    step(NOW);
    output_stream_interrupt(&stream, true);
    output_stream_resume(&stream, new_channel(), number);
}

static void end(void)
{
    said_end(&rank);
    step(NOW);
}

/* --- marks --- */

TEST(split_anywhere)
{
    for (size_t split = 0; split <= CW_OUTPUT_MARK_SIZE; split++) {
        open_stream();
        print_text("one\ntw");
        print(mark_of(5), split);
        CU_ASSERT_EQUAL(has_place(5), split == CW_OUTPUT_MARK_SIZE);
        print(mark_of(5) + split, CW_OUTPUT_MARK_SIZE - split);
        CU_ASSERT_TRUE(has_place(5));
        CU_ASSERT_FALSE(has_place(4));
        print_text("o\n");
        has_shown("one\ntwo\n");
        close_stream();
    }
}

/* Several in one read, at line ends and within lines. */
TEST(several_in_one_read)
{
    uint8_t bytes[512];
    size_t size = 0;

    open_stream();
    for (uint32_t number = 1; number <= 3; number++) {
        memcpy(bytes + size, "a\nb", number);
        size += number;
        memcpy(bytes + size, mark_of(number), CW_OUTPUT_MARK_SIZE);
        size += CW_OUTPUT_MARK_SIZE;
    }
    print(bytes, size);
    for (uint32_t number = 1; number <= 3; number++)
        CU_ASSERT_TRUE(has_place(number));
    end();
    has_shown("aa\na\nb");
    close_stream();
}

/* What is no mark is output, whatever it looks like, and waits no longer than a line does. */
TEST(false_marks)
{
    for (size_t wrong = 0; wrong < CW_OUTPUT_MARK_SIZE; wrong++)
        for (size_t split = 0; split <= CW_OUTPUT_MARK_SIZE; split++) {
            uint8_t bytes[CW_OUTPUT_MARK_SIZE];

            open_stream();
            memcpy(bytes, mark_of(0x01020304), sizeof(bytes));
            bytes[wrong] ^= 0x40;
            print(bytes, split);
            print(bytes + split, sizeof(bytes) - split);
            CU_ASSERT_EQUAL(places.count, 0);
            end();
            read_sink();
            CU_ASSERT_EQUAL(got_size, sizeof(bytes));
            CU_ASSERT_EQUAL(memcmp(got, bytes, sizeof(bytes)), 0);
            close_stream();
        }
    open_stream();
    print_mark(0);
    end();
    read_sink();
    CU_ASSERT_EQUAL(got_size, CW_OUTPUT_MARK_SIZE);
    CU_ASSERT_EQUAL(places.count, 0);
    close_stream();
}

/* A beginning of a mark, then a mark. Its number is one whose mark does not end as it begins. */
TEST(mark_behind_a_beginning)
{
    const uint32_t number = 0x90000009;

    for (size_t size = 1; size < CW_OUTPUT_MARK_SIZE; size++) {
        open_stream();
        print(mark_of(number), size);
        print_mark(number);
        CU_ASSERT_TRUE(has_place(number));
        end();
        read_sink();
        CU_ASSERT_EQUAL(got_size, size);
        CU_ASSERT_EQUAL(memcmp(got, mark_of(number), size), 0);
        close_stream();
    }
}

TEST(beginning_is_shown_after_a_time)
{
    open_stream();
    print_text("one\n\xff");
    has_shown("one\n");
    CU_ASSERT_TRUE(output_stream_holds(&stream));
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&stream, NOW), NOW + OUTPUT_PARTIAL_NS);
    tick(NOW + OUTPUT_PARTIAL_NS - 1);
    has_shown("one\n");
    tick(NOW + OUTPUT_PARTIAL_NS);
    tick(NOW + 2 * OUTPUT_PARTIAL_NS);
    has_shown("one\n\xff");
    CU_ASSERT_FALSE(output_stream_holds(&stream));
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&stream, NOW), UINT64_MAX);
    close_stream();
}

/* The sink takes nothing, so that reads stop at any byte: marks are found all the same, in their
 * places. */
TEST(full_sink)
{
    static char text[OUTPUT_LINE_MAX];
    struct cw_err ignored;

    for (size_t shift = 0; shift <= CW_OUTPUT_MARK_SIZE + 1; shift++) {
        size_t size = sizeof(text) - shift;
        size_t full = 0;
        ssize_t n;

        open_stream();
        memset(text, 'x', sizeof(text));
        fcntl(sink.fd, F_SETFL, O_NONBLOCK);
        while ((n = write(sink.fd, text, 4096)) > 0)
            full += (size_t)n;
        text[size - 1] = '\n';
        CU_ASSERT_EQUAL(said_put(&rank, text, size), size);
        CU_ASSERT_EQUAL(said_put(&rank, mark_of(2), CW_OUTPUT_MARK_SIZE), CW_OUTPUT_MARK_SIZE);
        CU_ASSERT_EQUAL(said_put(&rank, "rest\n", 5), 5);
        output_stream_await(&stream, 2);
        step(NOW);
        /* far longer than a beginning waits otherwise: the rest of it is in the pipe */
        tick(NOW + 10 * OUTPUT_PARTIAL_NS);
        for (int i = 0; i < 100 && (got_size < full + size + 5); i++) {
            read_sink();
            tick(NOW + 10 * OUTPUT_PARTIAL_NS);
            output_stream_read(&stream, OUTPUT_READS_A_TURN, NOW + 10 * OUTPUT_PARTIAL_NS,
                               &ignored);
        }
        CU_ASSERT_EQUAL(got_size, full + size + 5);
        CU_ASSERT_STRING_EQUAL(got + full + size, "rest\n");
        CU_ASSERT_TRUE(has_place(2));
        CU_ASSERT_EQUAL(places_at(&places, 2, PLACE_STDOUT)[0], 1);
        CU_ASSERT_EQUAL(places_at(&places, 2, PLACE_STDOUT)[1], 0);
        close_stream();
    }
}

/* --- going on --- */

/* The image at any byte, killed at any later one; then the rest comes once. */
TEST(every_image_and_every_end)
{
    for (size_t image = 0; image <= TEXT_SIZE; image++)
        for (size_t killed = image; killed <= TEXT_SIZE; killed++) {
            open_stream();
            print(TEXT, image);
            print_mark(1);
            print(TEXT + image, killed - image);
            go_on_from(1);
            print(TEXT + image, TEXT_SIZE - image);
            end();
            has_shown(TEXT);
            close_stream();
        }
}

/* The first process is killed; the second one, which begins anew, takes an image at any byte, also
 * among those that the first one had printed; the third one goes on from it, and is killed; the
 * fourth does. */
TEST(image_while_repeating)
{
    for (size_t first = 0; first <= TEXT_SIZE; first++)
        for (size_t image = 0; image <= TEXT_SIZE; image++)
            for (size_t third = image; third <= TEXT_SIZE; third++) {
                open_stream();
                print(TEXT, first);
                go_on_from(0);
                print(TEXT, image / 2);
                print(TEXT + image / 2, image - image / 2);
                print_mark(2);
                go_on_from(2);
                print(TEXT + image, third - image);
                go_on_from(2);
                print(TEXT + image, TEXT_SIZE - image);
                end();
                has_shown(TEXT);
                close_stream();
            }
}

/* A process that goes on from one image takes another one among what it repeats. */
TEST(image_after_an_image)
{
    for (size_t first = 0; first <= TEXT_SIZE; first++)
        for (size_t second = first; second <= TEXT_SIZE; second++) {
            open_stream();
            print(TEXT, first);
            print_mark(1);
            print(TEXT + first, TEXT_SIZE - first);
            go_on_from(1);
            print(TEXT + first, second - first);
            print_mark(2);
            go_on_from(2);
            print(TEXT + second, TEXT_SIZE - second);
            go_on_from(1);
            print(TEXT + first, TEXT_SIZE - first);
            print_text("!\n");
            end();
            has_shown(TEXT "!\n");
            close_stream();
        }
}

/* The program says something else the second time: whole lines stay whole. */
TEST(lines_of_other_lengths)
{
    open_stream();
    print_text("a\nt=1");
    print_mark(1);
    print_text(".5\nt=2.25\nt=3");
    go_on_from(1);
    print_text(".512\nt=2\nt=\nnext\n");
    has_shown("a\nt=1.5\nt=2.25\nt=3\nnext\n");
    close_stream();
}

/* The rest of a line is not shown before the process that goes on had time to end it. */
TEST(line_that_waits)
{
    open_stream();
    print_text("one");
    print_mark(1);
    go_on_from(1);
    tick(NOW + 10 * OUTPUT_PARTIAL_NS);
    print_text(" line\n");
    has_shown("one line\n");
    close_stream();
}

TEST(mark_never_comes)
{
    open_stream();
    print_text("one\ntw");
    CU_ASSERT_EQUAL(said_put(&rank, "o\n", 2), 2);
    output_stream_await(&stream, 1);
    CU_ASSERT_FALSE(has_place(1));
    step(NOW);
    CU_ASSERT_TRUE(has_place(1));
    go_on_from(1);
    print_text("three\n");
    has_shown("one\ntwo\nthree\n");
    end();
    output_stream_await(&stream, 3);
    CU_ASSERT_TRUE(has_place(3));
    close_stream();
}

/* What was not read before the pipe was closed says nothing of a mark. */
TEST(mark_is_not_known)
{
    open_stream();
    print_text("one\n");
    output_stream_await(&stream, 1);
    output_stream_interrupt(&stream, true);
    CU_ASSERT_FALSE(has_place(1));
    output_stream_await(&stream, 1);
    CU_ASSERT_FALSE(has_place(1));
    close_stream();
}

/* --- both streams --- */

static struct said ends[2];
static int failures;

static void on_failed(void *ctx, const struct cw_err *e)
{
    (void)ctx;
    (void)e;
    failures++;
}

static void open_rank(struct outputs *outputs, uint32_t number)
{
    struct channel *ours[2];

    for (int which = 0; which < 2; which++) {
        said_close(&ends[which]);
        said_open(&ends[which], NULL, false);
        ours[which] = ends[which].channel;
    }
    CU_ASSERT_EQUAL_FATAL(outputs_open(outputs, 0, number, ours, &err), CW_OK);
}

static void print_to(int which, const char *text)
{
    CU_ASSERT_EQUAL(said_put(&ends[which], text, strlen(text)), strlen(text));
}

static void mark_to(int which, uint32_t number)
{
    CU_ASSERT_EQUAL(said_put(&ends[which], mark_of(number), CW_OUTPUT_MARK_SIZE),
                    CW_OUTPUT_MARK_SIZE);
}

static void file_has(const char *dir, const char *name, const char *text)
{
    char path[256];
    int fd;
    ssize_t n;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = read(fd, got, GOT_MAX);
    got[n > 0 ? n : 0] = '\0';
    CU_ASSERT_STRING_EQUAL(got, text);
    close(fd);
    unlink(path);
}

static bool both_have_place(uint32_t number)
{
    return has_place(number) && places_at(&places, number, PLACE_STDERR);
}

TEST(two_streams)
{
    char dir[] = "/tmp/test-places-XXXXXX";
    struct loop *loop = loop_new(&err);
    struct outputs_config config = {
        .loop = loop, .ranks = 1, .dir = dir, .places = &places, .failed = on_failed};
    struct outputs *outputs;

    places = (struct places){0};

    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    outputs = outputs_new(&config, &err);
    outputs_set_mark(outputs, secret);
    open_rank(outputs, 0);
    CU_ASSERT_TRUE(both_have_place(0));
    print_to(0, "out 1\n");
    mark_to(0, 1);
    print_to(0, "out 2\n");
    print_to(1, "err 1\n"); /* no mark of the first image: the program has redirected stderr */
    CU_ASSERT_FALSE(both_have_place(1));
    outputs_settle(outputs, 0, 1);
    CU_ASSERT_TRUE(both_have_place(1));
    mark_to(1, 2);
    mark_to(0, 2);
    print_to(1, "err 2\n");
    outputs_settle(outputs, 0, 2);
    for (uint32_t number = 1; number <= 2; number++) {
        outputs_interrupt(outputs, 0, number == 1);
        open_rank(outputs, number);
        if (number == 1)
            print_to(0, "out 2\n");
        print_to(1, "err 2\n");
        print_to(number - 1, "more\n");
        loop_turn(loop, cw_clock_ns());
    }
    places_forget_before(&places, 2);
    CU_ASSERT_FALSE(both_have_place(1));
    CU_ASSERT_TRUE(both_have_place(2));
    outputs_interrupt(outputs, 0, false);
    outputs_free(outputs);
    loop_free(loop);
    file_has(dir, "rank.0.out", "out 1\nout 2\nmore\n");
    file_has(dir, "rank.0.err", "err 1\nerr 2\nmore\n");
    CU_ASSERT_EQUAL(rmdir(dir), 0);
    CU_ASSERT_EQUAL(failures, 0);
    said_close(&ends[0]);
    said_close(&ends[1]);
}

TEST(drawn_marks)
{
    uint8_t marks[2][CW_MARK_SIZE];

    outputs_draw_mark(marks[0]);
    outputs_draw_mark(marks[1]);
    CU_ASSERT_NOT_EQUAL(memcmp(marks[0], marks[1], CW_MARK_SIZE), 0);
    CU_ASSERT_TRUE(marks[0][0] >= 0xf8);
}
