/* What the ranks print: lines stay whole, errors name the sink, and nothing is lost. */
#include "dispatcher/ranks/output.h"
#include "tests/lib/said.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW 7000000000ull
#define READ_MAX (4u << 20)
#define TEXT_LINES 100 /* more than fits into one write to a pipe */

static struct cw_err err;
static char *got; /* everything read from the sink */
static size_t got_size;

static int set_up(void)
{
    got = malloc(READ_MAX + 1);
    return got == NULL;
}

static int tear_down(void)
{
    free(got);
    return 0;
}

/* A stream of rank 3 between what it says and a pipe, which we read at `reader_fd`. */
struct line {
    struct said rank;
    int reader_fd;
    struct output_sink sink;
    struct output_stream stream;
};

static void make_pipe(int fds[2])
{
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC), 0);
}

static void open_stream(struct line *l, bool tag, uint32_t rank)
{
    said_open(&l->rank, NULL, false);
    CU_ASSERT_EQUAL_FATAL(
        output_stream_open(&l->stream, l->rank.channel, rank, &l->sink, tag, &err), CW_OK);
    memset(&err, 0, sizeof(err));
}

static void open_line(struct line *l, bool tag)
{
    int fds[2];

    make_pipe(fds);
    l->reader_fd = fds[0];
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    output_sink_open_fd(&l->sink, fds[1], "standard output");
    open_stream(l, tag, 3);
    got_size = 0;
}

static void close_line(struct line *l)
{
    output_stream_close(&l->stream);
    output_sink_close(&l->sink, &err);
    close(l->reader_fd);
    said_close(&l->rank);
}

static void print(struct line *l, const char *text)
{
    CU_ASSERT_EQUAL(said_put(&l->rank, text, strlen(text)), strlen(text));
}

static void end(struct line *l)
{
    said_end(&l->rank);
}

static void read_sink(const struct line *l, size_t most)
{
    ssize_t n;

    if (most > READ_MAX - got_size)
        most = READ_MAX - got_size;
    while (most > 0 && (n = read(l->reader_fd, got + got_size, most)) > 0) {
        got_size += (size_t)n;
        most -= (size_t)n;
    }
    got[got_size] = '\0';
}

/* What has come out since the last look. */
static void shows(struct line *l, const char *text)
{
    got_size = 0;
    read_sink(l, READ_MAX);
    CU_ASSERT_STRING_EQUAL(got, text);
}

static void step(struct line *l, uint64_t now_ns)
{
    CU_ASSERT_EQUAL(output_stream_read(&l->stream, OUTPUT_READS_A_TURN, now_ns, &err), CW_OK);
}

static void tick(struct line *l, uint64_t now_ns)
{
    CU_ASSERT_EQUAL(output_stream_tick(&l->stream, now_ns, &err), CW_OK);
}

SUITE("output", set_up, tear_down);

TEST(whole_lines)
{
    struct line l;

    open_line(&l, false);
    step(&l, NOW);
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&l.stream, NOW), UINT64_MAX);
    print(&l, "one\ntwo\nthr");
    step(&l, NOW);
    shows(&l, "one\ntwo\n");
    print(&l, "ee\n");
    step(&l, NOW + 1);
    shows(&l, "three\n");
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&l.stream, NOW), UINT64_MAX);
    close_line(&l);
}

TEST(partial_line_after_a_time)
{
    struct line l;

    open_line(&l, false);
    print(&l, "prompt> ");
    step(&l, NOW);
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&l.stream, NOW), NOW + OUTPUT_PARTIAL_NS);
    tick(&l, NOW + OUTPUT_PARTIAL_NS - 1);
    shows(&l, "");
    tick(&l, NOW + OUTPUT_PARTIAL_NS);
    shows(&l, "prompt> ");
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&l.stream, NOW), UINT64_MAX);
    /* the time counts anew for what comes after a whole line */
    print(&l, "a");
    step(&l, NOW + 2 * OUTPUT_PARTIAL_NS);
    print(&l, "b\nc");
    step(&l, NOW + 2 * OUTPUT_PARTIAL_NS + 50);
    shows(&l, "ab\n");
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&l.stream, NOW), NOW + 3 * OUTPUT_PARTIAL_NS + 50);
    close_line(&l);
}

TEST(last_line_without_an_end)
{
    struct line l;

    open_line(&l, false);
    print(&l, "one\nla");
    print(&l, "st");
    step(&l, NOW);
    CU_ASSERT_TRUE(output_stream_wants_input(&l.stream));
    end(&l);
    step(&l, NOW);
    shows(&l, "one\nlast");
    CU_ASSERT_PTR_NULL(l.stream.from);
    CU_ASSERT_FALSE(output_stream_wants_input(&l.stream));
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&l.stream, NOW), UINT64_MAX);
    close_line(&l);
}

TEST(tags)
{
    struct line l;

    open_line(&l, true);
    print(&l, "one\n\ntwo\npart");
    step(&l, NOW);
    tick(&l, NOW + OUTPUT_PARTIAL_NS);
    shows(&l, "[3] one\n[3] \n[3] two\n[3] part");
    print(&l, "ial\nnext\n");
    step(&l, NOW + OUTPUT_PARTIAL_NS);
    shows(&l, "ial\n[3] next\n");
    close_line(&l);
}

/* A line longer than what is held goes on in pieces, tagged once. */
TEST(very_long_line)
{
    static char text[3 * OUTPUT_LINE_MAX];
    struct line l;
    size_t sent = 0;

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\n';
    open_line(&l, true);
    while (got_size < sizeof(text) + 4 && sent <= sizeof(text)) {
        sent += said_put(&l.rank, text + sent, sizeof(text) - sent);
        step(&l, NOW);
        tick(&l, NOW);
        read_sink(&l, READ_MAX);
    }
    CU_ASSERT_EQUAL(got_size, sizeof(text) + 4);
    CU_ASSERT_EQUAL(memcmp(got, "[3] ", 4), 0);
    CU_ASSERT_EQUAL(memcmp(got + 4, text, sizeof(text)), 0);
    close_line(&l);
}

/* The rank waits in its pipe while nobody reads; nothing is lost, nothing is held beyond a bound.
 */
TEST(full_sink)
{
    struct line l;
    char line[100];
    int printed = 0;
    int seen = 0;
    bool stuck;

    open_line(&l, false);
    do {
        int size = snprintf(line, sizeof(line), "line %d of a rank that prints a lot\n", printed);

        stuck = said_put(&l.rank, line, (size_t)size) != (size_t)size;
        printed += !stuck;
        step(&l, NOW);
    } while (!stuck && printed < 100000);
    CU_ASSERT_TRUE(stuck);
    CU_ASSERT_FALSE(output_stream_wants_input(&l.stream));
    CU_ASSERT_TRUE(l.stream.blocked);
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&l.stream, NOW), NOW + OUTPUT_RETRY_NS);
    end(&l);
    for (int i = 0; i < 1000 && (l.stream.from || l.stream.used); i++) {
        read_sink(&l, 10000);
        tick(&l, NOW);
        step(&l, NOW);
    }
    read_sink(&l, READ_MAX);
    for (char *at = got; *at; at = strchr(at, '\n') + 1) {
        snprintf(line, sizeof(line), "line %d of a rank that prints a lot\n", seen);
        if (strncmp(at, line, strlen(line)) != 0)
            break;
        seen++;
    }
    CU_ASSERT_EQUAL(seen, printed);
    close_line(&l);
}

/* Every line of `got` begins with its letter and has no other in it. */
static uint32_t mixed_lines(void)
{
    uint32_t mixed = 0;

    for (char *at = got; *at;) {
        size_t size = strcspn(at, "\n");
        const char *body = strncmp(at, "[", 1) == 0 ? strchr(at, ' ') + 1 : at;

        mixed += strspn(body, (char[]){body[0], '\0'}) != size - (size_t)(body - at);
        at += size + (at[size] == '\n');
    }
    return mixed;
}

/* Two ranks print lines of 77 letters to one slow pipe. */
static uint32_t print_together(bool tag)
{
    struct line a;
    struct line b;
    char text[2][TEXT_LINES * 78 + 1];

    open_line(&a, tag);
    b.sink = a.sink;
    open_stream(&b, tag, 4);
    for (int i = 0; i < 2; i++) {
        memset(text[i], "ab"[i], sizeof(text[i]));
        for (int j = 0; j < TEXT_LINES; j++)
            text[i][j * 78 + 77] = '\n';
        text[i][TEXT_LINES * 78] = '\0';
    }
    for (int i = 0; i < 200; i++) {
        if (a.stream.used == 0 && b.stream.used == 0) {
            print(&a, text[0]);
            print(&b, text[1]);
        }
        step(&a, NOW);
        step(&b, NOW);
        if (i % 3 == 0)
            read_sink(&a, 5000);
        /* now the one, now the other finds room first */
        tick(i / 3 % 2 ? &a : &b, NOW);
        tick(i / 3 % 2 ? &b : &a, NOW);
    }
    for (int i = 0; i < 100; i++) {
        read_sink(&a, READ_MAX);
        tick(&a, NOW);
        tick(&b, NOW);
    }
    CU_ASSERT_TRUE(got_size > 100000);
    output_stream_close(&b.stream);
    said_close(&b.rank);
    close_line(&a);
    return mixed_lines();
}

TEST(lines_of_two_ranks_with_tags)
{
    CU_ASSERT_EQUAL(print_together(true), 0);
}

TEST(lines_of_two_ranks)
{
    CU_ASSERT_EQUAL(print_together(false), 0);
}

/* A rank that shows how far it is, a dot at a time, holds the lines of others up for a moment, and
 * no longer. */
TEST(line_without_an_end)
{
    struct line a, b;
    uint64_t now_ns = NOW;

    open_line(&a, false);
    b.sink = a.sink;
    open_stream(&b, false, 4);
    for (int i = 0; i < 10; i++) {
        now_ns += OUTPUT_PARTIAL_NS / 2;
        print(&a, ".");
        step(&a, now_ns);
        tick(&a, now_ns);
        if (i == 4)
            print(&b, "whole\n");
        step(&b, now_ns);
        tick(&b, now_ns);
    }
    read_sink(&a, READ_MAX);
    CU_ASSERT_PTR_NOT_NULL(strstr(got, "whole\n"));
    output_stream_close(&b.stream);
    said_close(&b.rank);
    close_line(&a);
}

/* A rank that prints faster than its lines can be written takes its turn, and no more. */
TEST(takes_its_turn)
{
    static char text[16384];
    struct line l;
    uint32_t lines;

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 2 ? '\n' : 'y';
    open_line(&l, true);
    CU_ASSERT_EQUAL(said_put(&l.rank, text, sizeof(text)), sizeof(text));
    step(&l, NOW);
    got_size = 0;
    read_sink(&l, READ_MAX);
    lines = (uint32_t)(got_size / strlen("[3] y\n"));
    CU_ASSERT_TRUE(lines >= OUTPUT_WRITES_A_TURN && lines <= 2 * OUTPUT_WRITES_A_TURN);
    CU_ASSERT_EQUAL(output_stream_deadline_ns(&l.stream, NOW), NOW);
    for (uint32_t i = 0; i < sizeof(text) / OUTPUT_WRITES_A_TURN; i++)
        tick(&l, NOW);
    read_sink(&l, READ_MAX);
    CU_ASSERT_EQUAL(got_size, sizeof(text) / 2 * strlen("[3] y\n"));
    close_line(&l);
}

/* Lines of our own, of a stream without a pipe. */
TEST(added)
{
    static char text[OUTPUT_LINE_MAX];
    struct line l;
    int fds[2];

    make_pipe(fds);
    l.reader_fd = fds[0];
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    output_sink_open_fd(&l.sink, fds[1], "standard error");
    CU_ASSERT_EQUAL_FATAL(output_stream_open(&l.stream, NULL, 0, &l.sink, false, &err), CW_OK);
    l.rank = (struct said){0};
    memset(text, '\n', sizeof(text));
    CU_ASSERT_TRUE(output_stream_add(&l.stream, "one\n", 4));
    CU_ASSERT_FALSE(output_stream_add(&l.stream, text, sizeof(text)));
    tick(&l, NOW);
    shows(&l, "one\n");
    CU_ASSERT_TRUE(output_stream_add(&l.stream, text, sizeof(text)));
    CU_ASSERT_FALSE(output_stream_add(&l.stream, "one\n", 4));
    close_line(&l);
}

TEST(nobody_reads_any_more)
{
    struct line l;

    open_line(&l, false);
    close(l.reader_fd);
    print(&l, "lost\n");
    CU_ASSERT_EQUAL(output_stream_read(&l.stream, OUTPUT_READS_A_TURN, NOW, &err), CW_ECLOSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "rank 3 to standard output: Broken pipe"));
    l.reader_fd = -1;
    close_line(&l);
}

TEST(disk_is_full)
{
    struct line l;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    CU_ASSERT_TRUE_FATAL(fd >= 0);
    output_sink_open_fd(&l.sink, fd, "/dev/full");
    open_stream(&l, false, 3);
    l.reader_fd = -1;
    print(&l, "lost\n");
    CU_ASSERT_EQUAL(output_stream_read(&l.stream, OUTPUT_READS_A_TURN, NOW, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "rank 3 to /dev/full: No space left on device"));
    close_line(&l);
}

TEST(files)
{
    char dir[] = "/tmp/test-output-XXXXXX";
    char path[PATH_MAX];
    struct line l;
    struct stat st;

    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/rank.7.out", dir);
    for (int i = 0; i < 2; i++) { /* the second time what was there goes */
        CU_ASSERT_EQUAL_FATAL(output_sink_open_file(&l.sink, dir, 7, "out", false, &err), CW_OK);
        open_stream(&l, false, 7);
        print(&l, "to a file\nend");
        end(&l);
        step(&l, NOW);
        l.reader_fd = -1;
        close_line(&l);
        CU_ASSERT_EQUAL(l.sink.fd, -1);
        CU_ASSERT_EQUAL(stat(path, &st), 0);
        CU_ASSERT_EQUAL(st.st_size, 13);
    }
    unlink(path);
    CU_ASSERT_EQUAL(symlink("/dev/full", path), 0);
    CU_ASSERT_EQUAL_FATAL(output_sink_open_file(&l.sink, dir, 7, "out", false, &err), CW_OK);
    open_stream(&l, true, 7);
    print(&l, "lost\n");
    CU_ASSERT_EQUAL(output_stream_read(&l.stream, OUTPUT_READS_A_TURN, NOW, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    l.reader_fd = -1;
    close_line(&l);
    unlink(path);
    rmdir(dir);
    CU_ASSERT_EQUAL(output_sink_open_file(&l.sink, dir, 7, "err", false, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "rank.7.err: No such file"));
}

/* As a file system that keeps what is written to itself until then. */
TEST(closing_fails)
{
    struct output_sink sink;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    output_sink_open_fd(&sink, fd, "/far/rank.0.out");
    close(fd);
    CU_ASSERT_EQUAL(output_sink_close(&sink, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/far/rank.0.out: not all that was printed"));
    CU_ASSERT_EQUAL(output_sink_close(&sink, &err), CW_OK);
}

TEST(standard_descriptors_stay_open)
{
    struct output_sink sink;

    output_sink_open_fd(&sink, STDERR_FILENO, "standard error");
    output_sink_close(&sink, &err);
    CU_ASSERT_TRUE(fcntl(STDERR_FILENO, F_GETFD) >= 0);
}

/* --- the output of several incarnations of a rank --- */

/* The process is gone, and the next one is there. */
static void replace(struct line *l)
{
    step(l, NOW);
    output_stream_interrupt(&l->stream, true);
    CU_ASSERT_FALSE(output_stream_wants_input(&l->stream));
    said_close(&l->rank);
    said_open(&l->rank, NULL, false);
    output_stream_resume(&l->stream, l->rank.channel, 0);
}

TEST(lines_come_once)
{
    struct line l;

    open_line(&l, false);
    print(&l, "one\ntwo\n");
    replace(&l);
    shows(&l, "one\ntwo\n");
    print(&l, "one\ntwo\nthree\n");
    step(&l, NOW);
    shows(&l, "three\n");
    replace(&l);
    print(&l, "on"); /* killed while it repeated */
    replace(&l);
    print(&l, "one\ntw");
    step(&l, NOW);
    print(&l, "o\nthree\nfo");
    step(&l, NOW);
    print(&l, "ur\n");
    end(&l);
    step(&l, NOW);
    shows(&l, "four\n");
    close_line(&l);
}

/* A line whose beginning came from the one and whose end comes from the other. */
TEST(line_of_two_processes)
{
    struct line l;

    for (int shown = 0; shown < 2; shown++) {
        open_line(&l, true);
        print(&l, "one\npart");
        step(&l, NOW);
        if (shown)
            tick(&l, NOW + OUTPUT_PARTIAL_NS);
        shows(&l, shown ? "[3] one\n[3] part" : "[3] one\n");
        replace(&l);
        /* until then it stays as it is */
        CU_ASSERT_EQUAL(output_stream_deadline_ns(&l.stream, NOW), UINT64_MAX);
        tick(&l, NOW + 10 * OUTPUT_PARTIAL_NS);
        shows(&l, "");
        print(&l, "one\npa");
        step(&l, NOW);
        print(&l, "rtial");
        step(&l, NOW + 20 * OUTPUT_PARTIAL_NS);
        shows(&l, "");
        print(&l, "\n");
        step(&l, NOW + 20 * OUTPUT_PARTIAL_NS);
        shows(&l, shown ? "ial\n" : "[3] partial\n");
        close_line(&l);
    }
}

/* Split anywhere, killed anywhere: what comes out is what one process prints. */
TEST(every_place_to_be_killed_at)
{
    static const char text[] = "a\n\nbcd\nef";
    char part[sizeof(text)];

    for (size_t killed = 0; killed < sizeof(text); killed++)
        for (size_t split = 0; split < sizeof(text); split++) {
            struct line l;

            open_line(&l, false);
            snprintf(part, killed + 1, "%s", text);
            print(&l, part);
            replace(&l);
            snprintf(part, split + 1, "%s", text);
            print(&l, part);
            step(&l, NOW);
            print(&l, text + split);
            end(&l);
            step(&l, NOW);
            read_sink(&l, READ_MAX);
            CU_ASSERT_STRING_EQUAL(got, text);
            close_line(&l);
        }
}

/* A repetition that is not exact, as when a program prints the time: whole lines all the same. */
TEST(lines_of_other_lengths)
{
    struct line l;

    open_line(&l, false);
    print(&l, "t=1.5\nt=2.25\nt=3");
    replace(&l);
    shows(&l, "t=1.5\nt=2.25\n");
    print(&l, "t=1.512\nt=2\nt=\nnext\n");
    step(&l, NOW);
    shows(&l, "t=3\nnext\n");
    close_line(&l);
}

/* What a dead process left in its pipe comes out as long as there is no other. */
TEST(read_after_the_crash)
{
    static const char again[] = "one\ntwo\nthree\n";
    struct said second;
    struct line l;

    open_line(&l, false);
    print(&l, "one\ntwo\n");
    end(&l);
    output_stream_interrupt(&l.stream, false);
    CU_ASSERT_TRUE(output_stream_wants_input(&l.stream));
    step(&l, NOW);
    shows(&l, "one\ntwo\n");
    said_close(&l.rank);
    said_open(&second, NULL, false);
    output_stream_resume(&l.stream, second.channel, 0);
    CU_ASSERT_EQUAL(said_put(&second, again, strlen(again)), strlen(again));
    said_end(&second);
    output_stream_interrupt(&l.stream, false); /* this time nobody reads it in time */
    said_open(&l.rank, NULL, false);
    output_stream_resume(&l.stream, l.rank.channel, 0);
    said_close(&second);
    print(&l, "one\ntwo\nthree\nfour\n");
    step(&l, NOW);
    shows(&l, "three\nfour\n");
    close_line(&l);
}

/* The job ends while a rank is down: nothing of it is held back. */
TEST(no_other_process_comes)
{
    struct line l;

    open_line(&l, false);
    print(&l, "one\npart");
    step(&l, NOW);
    output_stream_interrupt(&l.stream, true);
    tick(&l, NOW + 10 * OUTPUT_PARTIAL_NS);
    shows(&l, "one\n");
    output_stream_give_up(&l.stream);
    tick(&l, NOW + 10 * OUTPUT_PARTIAL_NS);
    shows(&l, "part");
    CU_ASSERT_EQUAL(l.stream.used, 0);
    close_line(&l);
}
