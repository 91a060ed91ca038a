/* Which ranks can no longer be restarted because of the files that they share. */
#include "dispatcher/job/files.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

SUITE("files");

static struct files *files;
static char told[1024]; /* "1w0 " : rank 1 writes to what rank 0 has opened; r: the other way */

static void note(void *ctx, const struct files_unsafe *unsafe)
{
    char one[32];

    (void)ctx;
    snprintf(one, sizeof(one), "%u%c%d ", unsafe->rank, unsafe->writes ? 'w' : 'r',
             (int)unsafe->other);
    strncat(told, one, sizeof(told) - strlen(told) - 1);
}

static void open_at(uint32_t rank, uint64_t inode, bool writes, uint64_t ns)
{
    struct cw_opening o = {
        .device = 1, .inode = inode, .born_ns = 5, .opened_ns = ns, .writes = writes};

    files_open(files, rank, &o, note, NULL);
}

static void reads(uint32_t rank, uint64_t ns)
{
    open_at(rank, 7, false, ns);
}

static void writes(uint32_t rank, uint64_t ns)
{
    open_at(rank, 7, true, ns);
}

static void make(uint32_t ranks)
{
    files_free(files);
    files = files_new(ranks);
    CU_ASSERT_PTR_NOT_NULL_FATAL(files);
    told[0] = '\0';
}

static void expect(const char *text)
{
    CU_ASSERT_STRING_EQUAL(told, text);
    told[0] = '\0';
}

static void as(uint32_t rank, uint64_t ns, bool made, uint64_t name)
{
    struct cw_opening o = {.device = 1,
                           .inode = 7,
                           .born_ns = 5,
                           .opened_ns = ns,
                           .writes = made,
                           .made = made,
                           .name = name};

    files_open(files, rank, &o, note, NULL);
}

/* As Python keeps what it has compiled: made under one name, read under another one. */
TEST(made_and_renamed)
{
    make(3);
    as(1, 1, true, 100);
    as(0, 2, false, 200);
    as(2, 3, false, 200);
    expect("");
    make(3); /* heard of late */
    as(0, 2, false, 200);
    as(1, 1, true, 100);
    expect("");
    make(3); /* not renamed */
    as(1, 1, true, 100);
    as(0, 2, false, 100);
    expect("1w0 ");
    make(3); /* written again under its new name */
    as(1, 1, true, 100);
    as(0, 2, false, 200);
    writes(1, 3);
    expect("1w0 0r1 ");
}

TEST(alone)
{
    make(3);
    writes(1, 1);
    reads(1, 2);
    writes(1, 3);
    expect("");
    for (uint32_t rank = 0; rank < 3; rank++)
        open_at(rank, 100 + rank, true, 4);
    expect("");
}

TEST(only_read)
{
    make(3);
    for (uint32_t rank = 0; rank < 3; rank++)
        reads(rank, rank);
    expect("");
}

TEST(all_write)
{
    make(3);
    writes(0, 1);
    expect("");
    writes(1, 2);
    expect("1w0 0w1 0r1 ");
    writes(2, 3);
    expect("2w0 1w2 0r2 1r2 ");
}

TEST(written_then_read)
{
    make(3);
    writes(0, 1);
    reads(1, 2);
    expect("0w1 ");
    reads(2, 3);
    expect("0w2 ");
    writes(0, 4); /* the readers would read something else now */
    expect("0w1 1r0 2r0 ");
}

TEST(read_then_written)
{
    make(200);
    reads(3, 1);
    reads(64, 2);
    reads(199, 2);
    writes(64, 3);
    expect("64w3 3r64 199r64 ");
}

/* Reports of several ranks are not read in the order in which they were sent. */
TEST(heard_of_late)
{
    make(3);
    reads(1, 2);
    writes(0, 1);
    expect("0w1 ");
    make(3);
    writes(0, 2);
    reads(1, 1);
    expect("1r0 0w1 ");
    make(3);
    writes(0, 2);
    writes(1, 1);
    expect("1w0 0w1 ");
}

/* Another device, another birth: another file. */
TEST(identity)
{
    struct cw_opening o = {.device = 1, .inode = 7, .born_ns = 5, .writes = true};

    make(3);
    files_open(files, 0, &o, note, NULL);
    o.device = 2;
    files_open(files, 1, &o, note, NULL);
    o.device = 1;
    o.born_ns = 6;
    files_open(files, 2, &o, note, NULL);
    expect("");
    files_open(files, 1, &o, note, NULL);
    expect("1w2 2w1 2r1 ");
}

TEST(too_many)
{
    make(2);
    for (uint64_t i = 0; i < FILES_MAX; i++)
        open_at(0, i, true, 1);
    expect("");
    open_at(0, FILES_MAX, false, 1);
    expect("");
    open_at(0, FILES_MAX, true, 1);
    expect("0w-1 ");
    open_at(1, FILES_MAX - 1, false, 2); /* those that are known still count */
    expect("0w1 ");
    /* the memory is a bound too */
    make(CW_RANKS_MAX);
    for (uint64_t i = 0; i < FILES_BYTES_MAX / (CW_RANKS_MAX / 8) && !told[0]; i++)
        open_at(CW_RANKS_MAX - 1, i, true, 1);
    expect("65535w-1 ");
    files_free(files);
    files = NULL;
}
