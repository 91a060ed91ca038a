/* Bytes that are kept until they are acknowledged, compared with a model: the whole stream. */
#include "common/kept.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

SUITE("kept");

#define SIZE 13u
#define STREAM 4096u
#define STEPS 200000u

static uint8_t memory[SIZE];
static uint8_t stream[STREAM];
static struct cw_kept kept;

static void start(void)
{
    for (size_t i = 0; i < STREAM; i++)
        stream[i] = (uint8_t)(i * 31 + i / 256);
    memset(memory, 0xee, sizeof(memory));
    cw_kept_init(&kept, memory, SIZE);
}

/* Puts the next `size` bytes of the stream. Returns how many there was room for. */
static size_t put(size_t size)
{
    return cw_kept_put(&kept, stream + kept.end, size);
}

/* What is to be sent is what the stream has there. */
static bool unsent_is_right(void)
{
    struct iovec iov[2];
    int count = cw_kept_unsent(&kept, iov);
    uint64_t at = kept.sent;

    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len == 0 || memcmp(iov[i].iov_base, stream + at, iov[i].iov_len) != 0)
            return false;
        at += iov[i].iov_len;
    }
    return at == kept.end;
}

TEST(bytes_are_sent_again_from_where_the_other_side_says)
{
    start();
    CU_ASSERT_EQUAL(put(10), 10);
    CU_ASSERT_EQUAL(cw_kept_left(&kept), 10);
    cw_kept_sent(&kept, 7);
    CU_ASSERT_EQUAL(cw_kept_left(&kept), 3);
    CU_ASSERT_EQUAL(cw_kept_acknowledge(&kept, 4), CW_OK);
    CU_ASSERT_EQUAL(cw_kept_room(&kept), 7);
    CU_ASSERT_EQUAL(put(20), 7); /* full, and around the end of the memory */
    CU_ASSERT_EQUAL(put(1), 0);
    CU_ASSERT_TRUE(unsent_is_right());
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, 5), CW_OK);
    CU_ASSERT_EQUAL(cw_kept_left(&kept), 12);
    CU_ASSERT_TRUE(unsent_is_right());
    cw_kept_sent(&kept, 12);
    CU_ASSERT_EQUAL(cw_kept_unsent(&kept, (struct iovec[2]){{0}}), 0);
}

TEST(hostile_positions)
{
    start();
    put(10);
    cw_kept_sent(&kept, 7);
    CU_ASSERT_EQUAL(cw_kept_acknowledge(&kept, 3), CW_OK);
    for (uint64_t position = 0; position <= 20; position++) {
        struct cw_kept before = kept;
        struct cw_kept again = kept;
        bool good = position >= 3 && position <= 7;

        CU_ASSERT_EQUAL(cw_kept_acknowledge(&again, position), position <= 7 ? CW_OK : CW_EPROTO);
        CU_ASSERT_EQUAL(memcmp(&again, &before, sizeof(before)) == 0, !good || position == 3);
        again = kept;
        CU_ASSERT_EQUAL(cw_kept_rewind(&again, position), good ? CW_OK : CW_EPROTO);
        CU_ASSERT_EQUAL(memcmp(&again, &before, sizeof(before)) == 0, !good);
    }
    CU_ASSERT_EQUAL(cw_kept_acknowledge(&kept, UINT64_MAX), CW_EPROTO);
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, UINT64_MAX), CW_EPROTO);
}

/* What was sent again, but not for the second time, cannot be acknowledged: a new connection has
 * nothing of it. */
TEST(nothing_is_acknowledged_that_was_not_sent_again)
{
    start();
    put(10);
    cw_kept_sent(&kept, 10);
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, 2), CW_OK);
    cw_kept_sent(&kept, 3);
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, 6), CW_EPROTO);
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, 5), CW_OK);
}

TEST(unread_bytes_of_rings_come_back)
{
    struct iovec iov[2] = {{stream + 94, 3}, {stream + 97, 3}};

    start();
    cw_kept_skip(&kept, 100);
    CU_ASSERT_EQUAL(cw_kept_restore(&kept, iov, 2), CW_OK);
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, 93), CW_EPROTO);
    CU_ASSERT_EQUAL(put(7), 7); /* what is said while the session is suspended */
    CU_ASSERT_EQUAL(put(1), 0);
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, 95), CW_OK);
    CU_ASSERT_EQUAL(cw_kept_left(&kept), 12);
    CU_ASSERT_TRUE(unsent_is_right());
}

/* A connection that breaks again before its reader took what was sent to it for the second time. */
TEST(unread_bytes_come_back_before_those_not_sent_yet)
{
    struct iovec iov[2] = {{stream + 1, 1}, {stream + 2, 2}};

    start();
    put(8);
    cw_kept_sent(&kept, 4);
    CU_ASSERT_EQUAL(cw_kept_acknowledge(&kept, kept.sent), CW_OK);
    CU_ASSERT_EQUAL(cw_kept_restore(&kept, &iov[1], 1), CW_OK);
    CU_ASSERT_EQUAL(kept.acked, 2);
    iov[1] = (struct iovec){stream + 2, 2};
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, 2), CW_OK);
    CU_ASSERT_EQUAL(cw_kept_left(&kept), 6);
    CU_ASSERT_TRUE(unsent_is_right());
}

/* The reader had not taken the WELCOME either: only what follows it is part of the stream. */
TEST(a_handshake_is_not_part_of_the_stream)
{
    uint8_t unread[] = "WELCOME";
    struct iovec iov[3] = {{unread, 4}, {unread + 4, 3}, {stream + 20, 5}};

    start();
    cw_kept_skip(&kept, 20);
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, 20), CW_OK);
    cw_kept_skip(&kept, 5);
    CU_ASSERT_EQUAL(cw_kept_restore(&kept, iov, 3), CW_OK);
    CU_ASSERT_EQUAL(kept.acked, 20);
    CU_ASSERT_EQUAL(cw_kept_rewind(&kept, 20), CW_OK);
    CU_ASSERT_EQUAL(cw_kept_left(&kept), 5);
    CU_ASSERT_TRUE(unsent_is_right());
}

TEST(no_room_for_what_comes_back)
{
    struct iovec iov = {stream + 6, 14};
    struct cw_kept before;

    start();
    cw_kept_skip(&kept, 20);
    before = kept;
    CU_ASSERT_EQUAL(cw_kept_restore(&kept, &iov, 1), CW_ELIMIT);
    CU_ASSERT_EQUAL(memcmp(&kept, &before, sizeof(before)), 0);
    iov.iov_base = stream + 7;
    iov.iov_len = 13;
    CU_ASSERT_EQUAL(cw_kept_restore(&kept, &iov, 1), CW_OK);
    CU_ASSERT_EQUAL(cw_kept_room(&kept), 0);
}

static size_t below(size_t n)
{
    return n ? (size_t)rand() % n : 0;
}

/* Connections of either kind break at random; the receiver's stream is the sender's. */
TEST(random_breaks)
{
    uint64_t received = 0; /* what the other side has; its bytes are right by unsent_is_right */
    bool rings = false;

    srand(7);
    start();
    for (unsigned step = 0; step < STEPS; step++) {
        size_t n = below(SIZE + 2);

        if (kept.end + SIZE > STREAM) {
            start();
            received = 0;
        }
        if (n < 5 && (!rings || cw_kept_left(&kept) > 0)) {
            put(n);
        } else if (n < 5) { /* straight to a ring, which has room for 6 */
            if (kept.end + n - received <= 6)
                cw_kept_skip(&kept, n);
        } else if (n < 9) {
            n = below(cw_kept_left(&kept) + 1);
            if (!rings)
                cw_kept_sent(&kept, n);
            else if (kept.sent + n - received <= 6) {
                cw_kept_sent(&kept, n);
                CU_ASSERT_EQUAL(cw_kept_acknowledge(&kept, kept.sent), CW_OK);
            }
        } else if (n < 13) {
            received += below((size_t)(kept.sent - received) + 1);
            if (!rings && n < 11)
                CU_ASSERT_EQUAL(cw_kept_acknowledge(&kept, received), CW_OK);
        } else {
            struct iovec unread = {stream + received, (size_t)(kept.sent - received)};

            if (rings && cw_kept_restore(&kept, &unread, 1) < 0)
                continue; /* a real ring and the bound of what is kept make room for both */
            CU_ASSERT_EQUAL_FATAL(cw_kept_rewind(&kept, received), CW_OK);
            rings = below(2);
        }
        CU_ASSERT_TRUE_FATAL(unsent_is_right());
        CU_ASSERT_TRUE_FATAL(kept.acked <= kept.sent && kept.sent <= kept.end);
        CU_ASSERT_TRUE_FATAL(kept.end - kept.acked <= SIZE);
    }
}
