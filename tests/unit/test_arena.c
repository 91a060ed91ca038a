/* The device's memory: pieces that are free return their memory, all but a bounded part of it. The
 * arena of the other tests is their own. */
#define arena_init tested_arena_init
#define arena_alloc tested_arena_alloc
#define arena_free tested_arena_free
#include "rdevice/arena.c"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <unistd.h>

SUITE("arena");

#define PIECES 1024u
#define PIECE (32u << 10)

/* Bytes of the arena that have memory. */
static size_t resident(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = device.used / page;
    unsigned char *there = calloc(pages, 1);
    size_t count = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(there);
    CU_ASSERT_EQUAL(mincore(device.first, device.used, there), 0);
    for (size_t i = 0; i < pages; i++)
        count += there[i] & 1;
    free(there);
    return count * page;
}

static void take_all(void **pieces)
{
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i] = tested_arena_alloc(PIECE);
        memset(pieces[i], 1, PIECE);
    }
}

TEST(free_pieces_return_their_memory)
{
    static void *pieces[PIECES];
    size_t bytes_all;

    CU_ASSERT_EQUAL_FATAL(tested_arena_init(), 0);
    for (int round = 0; round < 2; round++) {
        take_all(pieces);
        bytes_all = device.used;
        CU_ASSERT_EQUAL(bytes_all, (size_t)PIECES * PIECE);
        for (unsigned i = 0; i < PIECES; i++)
            tested_arena_free(pieces[i], PIECE);
        CU_ASSERT_TRUE(resident() <= KEPT_MAX + bytes_all / 8);
        CU_ASSERT_TRUE(resident() >= KEPT_MAX);
    }
    CU_ASSERT_EQUAL(munmap(device.first, device.mapped), 0);
}
