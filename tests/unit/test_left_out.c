/* Queues of sessions that were left: what was to be sent, or was sent and not acknowledged, is
 * there again. */
#include "relay/core/out.h"
#include "tests/lib/codec.h"
#include "tests/unit/left_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("left queues");

#define SEGMENT STORE_SEGMENT_BYTES
#define STEPS 600

/* Whose queue it is. */
struct owner {
    struct ledger_entry entry;
    struct out_queue out;
};

static struct site now;
static struct owner owner;
static uint64_t seed;

static void save_out(const void *of, void *body)
{
    struct out_saved saved = out_save(&((const struct owner *)of)->out);

    memcpy(body, &saved, sizeof(saved));
}

static uint8_t byte_at(uint64_t position)
{
    return (uint8_t)(position * 7 + position / 251);
}

static void put(struct out_queue *out, size_t size, bool large)
{
    static uint8_t bytes[RELAY_BLOCK_BYTES];
    uint64_t from = out->front + out->kept + out->bytes;
    uint8_t *to = large ? bytes : out_reserve(out, size);

    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    for (size_t i = 0; i < size; i++)
        to[i] = byte_at(from + i);
    if (large)
        CU_ASSERT_EQUAL(out_append(out, bytes, size, NULL), CW_OK);
    ledger_change(&owner.entry);
}

static void change_queue(struct out_queue *out)
{
    size_t size = 1 + codec_random_below(&seed, 5000);

    switch (codec_random_below(&seed, 6)) {
    case 0:
        put(out, 50 * size, true);
        break;
    case 1:
    case 2:
        put(out, size, false);
        break;
    case 3:
        out_acknowledge(out, out->front + codec_random_below(&seed, out->kept + 1));
        break;
    default:
        out_sent(out, codec_random_below(&seed, out->bytes + 1));
        break;
    }
    ledger_change(&owner.entry);
}

/* From any position on that the other side may name, the same bytes follow. */
static void check_queue(struct out_queue *out, uint64_t end)
{
    uint64_t position = out->front + codec_random_below(&seed, out->kept + 1);
    struct iovec iov[64];
    uint64_t wrong = 0;

    CU_ASSERT_TRUE_FATAL(out_rewind(out, position));
    while (out->bytes > 0) {
        int n = out_peek(out, iov, 64, UINT64_MAX);

        for (int i = 0; i < n; i++) {
            for (size_t j = 0; j < iov[i].iov_len; j++)
                wrong += ((uint8_t *)iov[i].iov_base)[j] != byte_at(position + j);
            position += iov[i].iov_len;
            out_sent(out, iov[i].iov_len);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(position, end);
}

static int take_queue(struct site *s, struct owner *to, uint32_t cell, struct out_saved *saved)
{
    const void *body = ledger_find(&s->ledger, cell, LEDGER_CONN);

    CU_ASSERT_PTR_NOT_NULL_FATAL(body);
    memcpy(saved, body, sizeof(*saved));
    memset(to, 0, sizeof(*to));
    out_init(&to->out, &s->pool);
    ledger_return(&s->ledger, &to->entry, cell, to, save_out);
    return out_return(&to->out, &s->store, &to->entry, saved);
}

static void close_queue(struct site *s, struct owner *of)
{
    out_fini(&of->out);
    left_site_step(s);
    left_site_close(s);
}

/* Killed now: the queue is as the last step left it, with nothing of it sent. */
static void check_kill(void)
{
    struct out_saved saved;
    struct site next;
    struct owner to;

    left_site_open(&next, left_copy(now.left), SITE_MEMORY, 0);
    CU_ASSERT_EQUAL(take_queue(&next, &to, owner.entry.cell, &saved), CW_OK);
    left_site_returned(&next);
    CU_ASSERT_EQUAL(to.out.front + to.out.kept, saved.end);
    CU_ASSERT_FALSE(out_rewind(&to.out, saved.end + 1));
    CU_ASSERT_FALSE(saved.front > 0 && out_rewind(&to.out, saved.front - 1));
    check_queue(&to.out, saved.end);
    put(&to.out, 3000, false);
    check_queue(&to.out, saved.end + 3000);
    close_queue(&next, &to);
}

static void start_queue(void)
{
    seed = 1;
    memset(&owner, 0, sizeof(owner));
    left_site_open(&now, left_new(), SITE_MEMORY, 0);
    CU_ASSERT_TRUE(ledger_enter(&now.ledger, &owner.entry, LEDGER_CONN, &owner, save_out));
    out_init(&owner.out, &now.pool);
    out_outlive(&owner.out, &now.store, &owner.entry);
}

static void queue_goes_on(bool keeps)
{
    start_queue();
    out_keep(&owner.out, keeps);
    left_site_step(&now);
    for (int i = 0; i < STEPS; i++) {
        if (owner.out.bytes + owner.out.kept > 4 * SEGMENT)
            out_sent(&owner.out, owner.out.bytes);
        if (owner.out.kept > 4 * SEGMENT)
            out_acknowledge(&owner.out, owner.out.front + owner.out.kept);
        ledger_change(&owner.entry);
        change_queue(&owner.out);
        if (codec_random_below(&seed, 3) == 0)
            left_site_step(&now);
        if (codec_random_below(&seed, 12) == 0)
            check_kill();
    }
    close_queue(&now, &owner);
}

TEST(queue_that_keeps)
{
    queue_goes_on(true);
}

TEST(queue_that_does_not)
{
    queue_goes_on(false);
}

TEST(queue_that_makes_no_sense)
{
    for (int how = 0; how < 4; how++) {
        struct out_saved *saved;
        struct out_saved found;
        struct site next;
        struct owner to;

        start_queue();
        put(&owner.out, 5000, false);
        left_site_step(&now);
        left_site_open(&next, left_copy(now.left), SITE_MEMORY, 0);
        saved = (void *)ledger_find(&next.ledger, owner.entry.cell, LEDGER_CONN);
        CU_ASSERT_PTR_NOT_NULL_FATAL(saved);
        saved->skip += how == 0 ? 5001 : 0;
        saved->end += how == 1;
        saved->chain.count += how == 2;
        saved->front += how == 3;
        CU_ASSERT_EQUAL(take_queue(&next, &to, owner.entry.cell, &found), CW_EPROTO);
        left_site_returned(&next);
        close_queue(&next, &to);
        close_queue(&now, &owner);
    }
}
