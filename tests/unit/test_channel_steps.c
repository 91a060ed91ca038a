/* Channel memory with a log: a process that is killed at any instruction while it appends, goes on
 * to another block, or gives blocks back. What it leaves is looked at after each instruction that
 * changed the memory: its successor goes on there, nothing is lost or comes twice, and no block is
 * in two places. */
#include "common/channel.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("channel, step by step");

#define BLOCKS 24u /* of the log, beside those that are there without one */
#define BYTES 100u /* of a message */
#define MORE 4u    /* messages that are put while it is looked at */
#define STEPS_MAX 10000000u

static struct cw_channel channel; /* what both processes map */
static struct cw_channel copy;    /* as it was after one instruction */
static uint8_t *before;           /* as it was when it was last looked at */
static uint64_t base;             /* messages put before */
static uint32_t looks;

static void start(void)
{
    size_t size = cw_channel_bytes(2, BLOCKS * CW_CHANNEL_BLOCK_MAX);
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(shared, MAP_FAILED);
    before = malloc(size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(before);
    CU_ASSERT_EQUAL_FATAL(posix_memalign((void **)&copy.memory, 4096, size), 0);
    CU_ASSERT_TRUE_FATAL(cw_channel_at(&channel, shared, size, 2));
    CU_ASSERT_TRUE_FATAL(cw_channel_at(&copy, copy.memory, size, 2));
    base = looks = 0;
}

static void finish(void)
{
    munmap(channel.memory, channel.size);
    free(copy.memory);
    free(before);
}

/* The same side, of the copy. */
static struct cw_stream of_copy(const struct cw_stream *stream)
{
    struct cw_stream s = *stream;

    s.channel = &copy;
    s.head = (struct cw_stream_head *)(copy.memory + ((uint8_t *)stream->head - channel.memory));
    if (stream->block)
        s.block = copy.memory + (stream->block - channel.memory);
    return s;
}

static bool put_message(struct cw_stream *stream, uint64_t number)
{
    uint8_t bytes[BYTES];
    struct cw_piece piece = {.type = CW_PIECE_TAG, .tag = number, .total = BYTES, .size = BYTES};

    memset(bytes, (int)number, sizeof(bytes));
    if (!cw_stream_fits(stream, BYTES))
        return false;
    cw_stream_put(stream, &piece, &(struct iovec){bytes, BYTES}, 0);
    return true;
}

/* Takes all that is there, from message `number` on; returns the next one. */
static uint64_t take_messages(struct cw_stream *stream, uint64_t number)
{
    uint8_t bytes[BYTES];
    struct cw_piece piece;

    for (; cw_stream_next(stream, &piece); number++) {
        memset(bytes, (int)number, sizeof(bytes));
        CU_ASSERT_TRUE_FATAL(piece.type == CW_PIECE_TAG && piece.tag == number &&
                             piece.size == BYTES);
        CU_ASSERT_EQUAL_FATAL(memcmp(cw_stream_payload(stream), bytes, BYTES), 0);
        cw_stream_take(stream, &piece);
    }
    CU_ASSERT_FALSE_FATAL(stream->broken);
    return number;
}

/* Runs `act` in another process, and looks after each instruction that changed the memory. */
static void step_through(void (*act)(void), void (*look)(void))
{
    uint32_t steps = 0;
    int status;
    pid_t pid = fork();

    CU_ASSERT_TRUE_FATAL(pid >= 0);
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        act();
        _exit(0);
    }
    memcpy(before, channel.memory, channel.size);
    CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_TRUE_FATAL(WIFSTOPPED(status)); /* else ptrace(2) is not allowed here */
    while (WIFSTOPPED(status) && steps++ < STEPS_MAX) {
        ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
        CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
        if (memcmp(before, channel.memory, channel.size) == 0)
            continue;
        memcpy(before, channel.memory, channel.size);
        memcpy(copy.memory, channel.memory, channel.size);
        look();
        looks++;
    }
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- a writer -----------------------------------------------------------------------------------
 */

static struct cw_stream writer;

static void put_more(void)
{
    for (uint32_t i = 0; i < MORE; i++)
        put_message(&writer, base + i);
}

static void look_at_writer(void)
{
    struct cw_stream successor = cw_channel_stream(&copy, 1, 0, true);
    struct cw_stream reader = cw_channel_stream(&copy, 1, 0, true);
    uint64_t there, end;

    cw_stream_find_end(&successor);
    there = take_messages(&reader, 0);
    CU_ASSERT_TRUE_FATAL(there >= base && there <= base + MORE);
    CU_ASSERT_EQUAL_FATAL(successor.sum.messages, there);
    for (end = there; end < base + 2 * MORE; end++)
        CU_ASSERT_TRUE_FATAL(put_message(&successor, end));
    CU_ASSERT_EQUAL_FATAL(take_messages(&reader, there), end);
}

/* Fills all but the last few messages of a block. */
static void fill_block(void)
{
    while (writer.offset < channel.block_bytes - 4 * (BYTES + 2 * CW_CHANNEL_LINE))
        put_message(&writer, base++);
}

TEST(a_writer_is_killed_anywhere)
{
    start();
    writer = cw_channel_stream(&channel, 1, 0, true);
    step_through(put_more, look_at_writer); /* the first block of the stream, too */
    CU_ASSERT_TRUE(looks > MORE);
    cw_stream_find_end(&writer);
    base = writer.sum.messages;
    fill_block();
    step_through(put_more, look_at_writer);
    finish();
}

/* --- a reader that gives blocks back ------------------------------------------------------------
 */

static struct cw_stream reader;

static void give_back(void)
{
    cw_stream_free(&reader, reader.at);
}

/* All blocks that are free are filled with something else. */
static uint32_t take_all_blocks(void)
{
    struct cw_stream other = cw_channel_stream(&copy, 0, 1, true);
    uint32_t count = 0;

    while (put_message(&other, ~0ull))
        count++;
    return (uint32_t)(other.at / copy.block_bytes) + (count > 0);
}

static void look_at_reader(void)
{
    struct cw_stream successor = of_copy(&reader);
    struct cw_stream end = of_copy(&writer);
    struct cw_stream from = cw_channel_stream(&copy, 1, 0, true);
    struct cw_piece piece;
    uint32_t free_blocks;

    CU_ASSERT_TRUE_FATAL(cw_stream_next(&from, &piece)); /* what is left begins with a message */
    CU_ASSERT_EQUAL_FATAL(piece.type, CW_PIECE_TAG);
    CU_ASSERT_EQUAL_FATAL(take_messages(&from, piece.tag), base);
    cw_stream_free(&successor, successor.at);
    free_blocks = take_all_blocks();
    CU_ASSERT_TRUE_FATAL(free_blocks + 3 >= copy.blocks); /* its own two, and one in hand at most */
    CU_ASSERT_TRUE_FATAL(put_message(&end, base));
    CU_ASSERT_EQUAL_FATAL(take_messages(&successor, base), base + 1);
}

TEST(a_reader_is_killed_while_it_gives_back)
{
    start();
    writer = reader = cw_channel_stream(&channel, 1, 0, true);
    while (writer.at < 6 * channel.block_bytes)
        put_message(&writer, base++);
    take_messages(&reader, 0);
    step_through(give_back, look_at_reader);
    CU_ASSERT_TRUE(looks >= 10); /* two words for each of five blocks */
    finish();
}
