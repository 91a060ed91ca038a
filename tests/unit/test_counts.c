/* What was printed of a kept job: counts that outlive the process, and, as far as they are settled,
 * the machine; and files that are cut to what was counted. */
#include "dispatcher/ranks/output.h"
#include "dispatcher/ranks/output_file.h"
#include "dispatcher/state/counts.h"
#include "tests/lib/said.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("counts of what was printed");

#define RANKS 3u
#define BOOT_AT 16 /* bytes before the name of the kernel that wrote them */

static char path[64];
static int dir = -1;
static struct counts counts;

static void begin(void)
{
    strcpy(path, "/tmp/test-counts-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(path));
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(counts_make(&counts, dir, RANKS), 0);
}

static void finish(void)
{
    counts_close(&counts);
    unlinkat(dir, COUNTS_NAME, 0);
    close(dir);
    rmdir(path);
}

/* Another process finds them. */
static void again(void)
{
    counts_close(&counts);
    CU_ASSERT_EQUAL_FATAL(counts_find(&counts, dir, RANKS), 0);
    counts_go_on(&counts);
}

static void write_at(off_t at, const void *bytes, size_t size)
{
    int fd = openat(dir, COUNTS_NAME, O_WRONLY | O_CLOEXEC);

    CU_ASSERT_EQUAL(pwrite(fd, bytes, size, at), (ssize_t)size);
    close(fd);
}

/* The machine has lost power. */
static void reboot(void)
{
    counts_close(&counts);
    write_at(BOOT_AT, "another", 7);
    CU_ASSERT_EQUAL_FATAL(counts_find(&counts, dir, RANKS), 0);
    counts_go_on(&counts);
}

TEST(outlive_the_process)
{
    begin();
    CU_ASSERT_FALSE(counts.rebooted);
    counts_set_journal(&counts, 77);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        counts_set_printed(&counts, rank, 0, 10 + rank);
        counts_set_printed(&counts, rank, 1, 20 + rank);
    }
    again();
    CU_ASSERT_FALSE(counts.rebooted);
    CU_ASSERT_EQUAL(counts_read_journal(dir), 77);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        CU_ASSERT_EQUAL(counts_printed(&counts, rank, 0), 10 + rank);
        CU_ASSERT_EQUAL(counts_printed(&counts, rank, 1), 20 + rank);
    }
    CU_ASSERT_EQUAL(counts_printed(&counts, RANKS, 0), 0);
    finish();
}

/* After the loss of power what is not known to be on disk is not counted. */
TEST(settled_outlives_the_machine)
{
    begin();
    counts_set_journal(&counts, 77);
    counts_set_printed(&counts, 1, 0, 5);
    counts_settle(&counts, 1, 0);
    counts_set_printed(&counts, 1, 0, 9);
    counts_set_printed(&counts, 1, 1, 4);
    counts_begin_printing(&counts, 1);
    reboot();
    CU_ASSERT_TRUE(counts.rebooted);
    CU_ASSERT_EQUAL(counts_read_journal(dir), 77);
    CU_ASSERT_EQUAL(counts_printed(&counts, 1, 0), 5);
    CU_ASSERT_EQUAL(counts_printed(&counts, 1, 1), 0);
    CU_ASSERT_FALSE(counts_was_printing(&counts, &(uint32_t){0}));
    again();
    CU_ASSERT_FALSE(counts.rebooted);
    CU_ASSERT_EQUAL(counts_printed(&counts, 1, 0), 5);
    finish();
}

/* Who cannot go on with what another kernel wrote finds the same another time. */
TEST(found_but_not_gone_on_with)
{
    begin();
    counts_set_printed(&counts, 1, 0, 5);
    counts_close(&counts);
    write_at(BOOT_AT, "another", 7);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(counts_find(&counts, dir, RANKS), 0);
        CU_ASSERT_TRUE(counts.rebooted);
        CU_ASSERT_EQUAL(counts_printed(&counts, 1, 0), 5);
        counts_close(&counts);
    }
    finish();
}

TEST(killed_while_it_printed)
{
    uint32_t rank = 0;

    begin();
    CU_ASSERT_FALSE(counts_was_printing(&counts, &rank));
    counts_begin_printing(&counts, 2);
    again();
    CU_ASSERT_TRUE(counts_was_printing(&counts, &rank));
    CU_ASSERT_EQUAL(rank, 2);
    counts_end_printing(&counts);
    again();
    CU_ASSERT_FALSE(counts_was_printing(&counts, &rank));
    finish();
}

TEST(of_another_job)
{
    struct counts other;

    begin();
    CU_ASSERT_EQUAL(counts_find(&other, dir, RANKS + 1), -1);
    CU_ASSERT_EQUAL(errno, EBADMSG);
    CU_ASSERT_EQUAL(counts_make(&other, dir, RANKS), -1);
    CU_ASSERT_EQUAL(errno, EEXIST);
    counts_close(&counts);
    unlinkat(dir, COUNTS_NAME, 0);
    CU_ASSERT_EQUAL(counts_find(&other, dir, RANKS), -1);
    CU_ASSERT_EQUAL(errno, ENOENT);
    CU_ASSERT_EQUAL(counts_read_journal(dir), 0);
    CU_ASSERT_EQUAL(mkdirat(dir, COUNTS_NAME, 0700), 0);
    CU_ASSERT_EQUAL(counts_find(&other, dir, RANKS), -1);
    unlinkat(dir, COUNTS_NAME, AT_REMOVEDIR);
    finish();
}

/* --- files --------------------------------------------------------------------------------------
 */

/* A file with `before` is cut; returns what output_file_cut does. */
static int64_t cut(const char *before, uint64_t lines, uint64_t prefix, uint64_t bytes,
                   const char *after)
{
    FILE *f = tmpfile();
    char got[256] = "";
    int64_t missing;

    fputs(before, f);
    fflush(f);
    missing = output_file_cut(fileno(f), lines, prefix, bytes);
    CU_ASSERT_TRUE(pread(fileno(f), got, sizeof(got) - 1, 0) >= 0);
    CU_ASSERT_STRING_EQUAL(got, after);
    fclose(f);
    return missing;
}

TEST(files_are_cut)
{
    CU_ASSERT_EQUAL(cut("a\nb\nc\nd", 3, 0, 1, "a\nb\nc\nd"), 0);
    CU_ASSERT_EQUAL(cut("a\nb\nc\ndef", 3, 0, 1, "a\nb\nc\nd"), 0);
    CU_ASSERT_EQUAL(cut("a\nb\nc\ndef", 3, 0, 0, "a\nb\nc\n"), 0);
    CU_ASSERT_EQUAL(cut("a\nb\nc\n", 1, 0, 0, "a\n"), 0);
    CU_ASSERT_EQUAL(cut("a\nb\n", 0, 0, 0, ""), 0);
    CU_ASSERT_EQUAL(cut("\n\n\n", 2, 0, 0, "\n\n"), 0);
    CU_ASSERT_EQUAL(cut("[1] a\n[1] bc", 1, 4, 1, "[1] a\n[1] b"), 0);
    CU_ASSERT_EQUAL(cut("[1] a\n[1] bc", 1, 4, 0, "[1] a\n"), 0);
    CU_ASSERT_EQUAL(cut("", 0, 0, 0, ""), 0);
    CU_ASSERT_EQUAL(output_file_cut(-1, 1, 0, 0), -1);
}

TEST(lines_that_are_missing)
{
    CU_ASSERT_EQUAL(cut("a\nb\n", 5, 0, 2, "a\nb\n"), 3);
    CU_ASSERT_EQUAL(cut("a\nb", 2, 0, 0, "a\nb"), 1);
    CU_ASSERT_EQUAL(cut("a\nb", 1, 0, 2, "a\nb"), 1);
    CU_ASSERT_EQUAL(cut("", 2, 0, 0, ""), 2);
}

/* More than is read at once, lines that end there, and lines that are longer. */
TEST(long_files)
{
    static const size_t lengths[] = {1, 7, 4096, 65535, 65536, 65537, 200000};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        size_t line = lengths[i];
        uint64_t lines = 300000 / line + 2;
        FILE *f = tmpfile();
        struct stat st;

        for (uint64_t n = 0; n <= lines; n++) {
            for (size_t c = 1; c < line; c++)
                putc('x', f);
            putc('\n', f);
        }
        fflush(f);
        CU_ASSERT_EQUAL(output_file_cut(fileno(f), lines, 0, line > 1 ? 1 : 0), 0);
        fstat(fileno(f), &st);
        CU_ASSERT_EQUAL((uint64_t)st.st_size, lines * line + (line > 1 ? 1 : 0));
        fclose(f);
    }
}

TEST(what_is_no_file)
{
    int ends[2];

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    CU_ASSERT_EQUAL(output_file_cut(ends[1], 5, 0, 0), 0);
    CU_ASSERT_EQUAL(output_file_sync(ends[1]), 0);
    close(ends[0]);
    close(ends[1]);
    CU_ASSERT_EQUAL(output_file_sync(ends[0]), -1);
    CU_ASSERT_EQUAL(output_dir_sync("/tmp"), 0);
    CU_ASSERT_EQUAL(output_dir_sync("/none"), -1);
}

/* --- the count follows each write ---------------------------------------------------------------
 */

static struct {
    int begun;
    int done;
    off_t sizes[16];      /* of the file when a write was done ... */
    uint64_t printed[16]; /* ... and what was counted then */
    int fd;
} heard;

static void on_printing(struct output_stream *stream, bool done)
{
    heard.begun += !done;
    if (!done)
        return;
    CU_ASSERT_EQUAL(++heard.done, heard.begun);
    heard.sizes[heard.done % 16] = lseek(heard.fd, 0, SEEK_END);
    heard.printed[heard.done % 16] = stream->printed;
}

TEST(counted_at_once)
{
    struct output_sink sink = {0};
    struct output_stream stream;
    struct cw_err err = {0};
    FILE *f = tmpfile();
    struct said rank;

    heard.fd = fileno(f);
    said_open(&rank, NULL, false);
    output_sink_open_fd(&sink, fileno(f), "a file");
    CU_ASSERT_EQUAL_FATAL(output_stream_open(&stream, rank.channel, 0, &sink, true, &err), CW_OK);
    stream.printing = on_printing;
    CU_ASSERT_EQUAL(said_put(&rank, "a\nb\nc\n", 6), 6);
    CU_ASSERT_FALSE(sink.dirty);
    CU_ASSERT_EQUAL(output_stream_read(&stream, OUTPUT_READS_A_TURN, 1, &err), CW_OK);
    CU_ASSERT_EQUAL(heard.done, 3);
    for (int i = 1; i <= heard.done; i++) {
        CU_ASSERT_EQUAL(heard.printed[i], (uint64_t)i);
        CU_ASSERT_EQUAL(heard.sizes[i], i * 6);
    }
    CU_ASSERT_TRUE(sink.dirty);
    CU_ASSERT_EQUAL(output_sink_sync(&sink, &err), CW_OK);
    CU_ASSERT_FALSE(sink.dirty);
    output_stream_close(&stream);
    said_close(&rank);
    fclose(f);
}
