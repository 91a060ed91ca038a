/* A rank that is its own mailbox: messages come through channel memory, in any pieces, before and
 * after their receives, by MPI's rules; and senders write what cannot be. */
#define arena_alloc mailbox_arena_alloc
#define arena_free mailbox_arena_free
#include "rdevice/arrivals.c"
#include "rdevice/inbox.c"
#include "rdevice/mailbox.c"
#include "rdevice/request.c"
#include "tests/unit/box.h"

#include <pthread.h>

SUITE_AFTER_EACH("mailbox of a rank", finish);

/* --- the arena, which knows what was not freed; also of test_channel_ranks.c, whose ranks are
 * threads */

static pthread_mutex_t pieces_use = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(pieces, arena_piece) pieces = TAILQ_HEAD_INITIALIZER(pieces);
struct arena_piece {
    TAILQ_ENTRY(arena_piece) others;
    size_t size;
    _Alignas(64) uint8_t bytes[];
};

void *arena_alloc(size_t size)
{
    struct arena_piece *piece = aligned_alloc(64, (sizeof(*piece) + size + 63) & ~(size_t)63);

    if (!piece)
        abort();
    piece->size = size;
    pthread_mutex_lock(&pieces_use);
    TAILQ_INSERT_HEAD(&pieces, piece, others);
    pthread_mutex_unlock(&pieces_use);
    return piece->bytes;
}

void arena_free(void *at, size_t size)
{
    struct arena_piece *piece =
        (struct arena_piece *)((uint8_t *)at - offsetof(struct arena_piece, bytes));

    if (piece->size != size)
        CU_FAIL("memory is given back that has another size");
    pthread_mutex_lock(&pieces_use);
    TAILQ_REMOVE(&pieces, piece, others);
    pthread_mutex_unlock(&pieces_use);
    free(piece);
}

void mailbox_arena_clear(void)
{
    while (!TAILQ_EMPTY(&pieces))
        arena_free(TAILQ_FIRST(&pieces)->bytes, TAILQ_FIRST(&pieces)->size);
}

/* --- tests ---------------------------------------------------------------------------------------
 */

static const uint32_t sizes[] = {0, 1, PIECE, PIECE + 1, 10 * PIECE};

TEST(receives_before_their_messages)
{
    start();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct request *request = receive(TAG(1, 0, 5), EXACT, ROOM);

        nothing_came();
        send(0, TAG(1, 0, 5), sizes[i]);
        came(request, TAG(1, 0, 5), sizes[i]);
    }
    nothing_came();
}

TEST(messages_before_their_receives)
{
    start();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        send(0, TAG(1, 0, 5), sizes[i]);
        nothing_came();
        came(receive(TAG(1, 0, 5), EXACT, ROOM), TAG(1, 0, 5), sizes[i]);
    }
    nothing_came();
}

TEST(wildcards_and_contexts)
{
    struct request *any_source;
    struct request *any_tag;
    struct request *other;

    start();
    other = receive(TAG(2, 0, 5), EXACT, ROOM);
    any_tag = receive(TAG(1, 1, 0), ANY_TAG, ROOM);
    any_source = receive(TAG(1, 0, 5), ANY_SOURCE, ROOM);
    send(0, TAG(1, 0, 6), 8); /* nobody wants it */
    nothing_came();
    send(0, TAG(1, 0, 5), 9);
    came(any_source, TAG(1, 0, 5), 9);
    send(1, TAG(1, 1, 5), 10);
    came(any_tag, TAG(1, 1, 5), 10);
    send(0, TAG(2, 0, 5), 11);
    came(other, TAG(2, 0, 5), 11);
    CU_ASSERT_FALSE(mailbox_probe(&box, TAG(2, 0, 6), EXACT, false).found);
    came(receive(TAG(1, 0, 0), ANY_TAG, ROOM), TAG(1, 0, 6), 8);
}

/* Of two receives for one message the first has it, whatever else each would take; of two messages
 * for one receive the one that came first, whoever sent it. */
TEST(the_first_is_first)
{
    struct request *wide;
    struct request *narrow;

    start();
    wide = receive(TAG(1, 0, 5), ANY_SOURCE, ROOM);
    narrow = receive(TAG(1, 1, 5), EXACT, ROOM);
    send(1, TAG(1, 1, 5), 1);
    came(wide, TAG(1, 1, 5), 1);
    send(1, TAG(1, 1, 5), 2);
    came(narrow, TAG(1, 1, 5), 2);
    send(1, TAG(1, 1, 5), 3);
    send(0, TAG(1, 0, 5), 4);
    send(1, TAG(1, 1, 5), 5);
    came(receive(TAG(1, 0, 5), ANY_SOURCE, ROOM), TAG(1, 1, 5), 3);
    came(receive(TAG(1, 0, 5), ANY_SOURCE, ROOM), TAG(1, 0, 5), 4);
    came(receive(TAG(1, 0, 5), ANY_SOURCE, ROOM), TAG(1, 1, 5), 5);
}

/* Pieces of two senders alternate, and a message that began later is whole earlier. */
TEST(two_senders_at_once)
{
    struct request *first;
    struct request *second;

    start();
    first = receive(TAG(1, 0, 5), ANY_SOURCE, ROOM);
    second = receive(TAG(1, 0, 5), ANY_SOURCE, ROOM);
    put_first(0, CW_PIECE_TAG, TAG(1, 0, 5), 3000, 1000);
    put_first(1, CW_PIECE_TAG, TAG(1, 1, 5), 2000, 1000);
    put_more(0, 1000, 1000);
    put_more(1, 1000, 1000);
    came(second, TAG(1, 1, 5), 2000);
    put_more(0, 2000, 1000);
    came(first, TAG(1, 0, 5), 3000);
}

TEST(a_receive_takes_what_is_not_whole)
{
    start();
    for (uint32_t arrived = 0; arrived < 3000; arrived += 500) {
        struct request *request;

        put_first(0, CW_PIECE_TAG, TAG(1, 0, 5), 3000, arrived);
        put_first(1, CW_PIECE_TAG, TAG(1, 1, 5), 3000, 1000); /* it stays behind */
        request = receive(TAG(1, 0, 5), EXACT, ROOM);
        nothing_came();
        for (uint32_t done = arrived; done < 3000; done += 500)
            put_more(0, done, 500);
        came(request, TAG(1, 0, 5), 3000);
        put_more(1, 1000, 2000);
        came(receive(TAG(1, 1, 5), EXACT, ROOM), TAG(1, 1, 5), 3000);
    }
}

/* Also where the part that has come is more than the receive has room for, or just as much. */
TEST(messages_are_truncated)
{
    static const uint32_t rooms[] = {0, 1, 999, 1000, 1001, 1999, 2000};

    start();
    for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
        struct request *request = receive(TAG(1, 0, 5), EXACT, rooms[i]);

        put_first(0, CW_PIECE_TAG, TAG(1, 0, 5), 2000, 1000);
        put_more(0, 1000, 1000);
        came(request, TAG(1, 0, 5), 2000);
        put_first(0, CW_PIECE_TAG, TAG(1, 0, 6), 2000, 1000);
        request = receive(TAG(1, 0, 6), EXACT, rooms[i]);
        put_more(0, 1000, 1000);
        came(request, TAG(1, 0, 6), 2000);
        send(0, TAG(1, 0, 7), 2000);
        came(receive(TAG(1, 0, 7), EXACT, rooms[i]), TAG(1, 0, 7), 2000);
    }
}

TEST(probes_take_messages_out)
{
    struct request *request;
    struct cw_probed first;
    struct cw_probed second;

    start();
    CU_ASSERT_FALSE(mailbox_probe(&box, TAG(1, 0, 5), EXACT, true).found);
    send(0, TAG(1, 0, 5), 3);
    put_first(0, CW_PIECE_TAG, TAG(1, 0, 5), 3000, 1000);
    first = mailbox_probe(&box, TAG(1, 0, 0), ANY_TAG, false);
    CU_ASSERT_TRUE(first.found && first.tag == TAG(1, 0, 5) && first.total == 3);
    first = mailbox_probe(&box, TAG(1, 0, 5), EXACT, true);
    second = mailbox_probe(&box, TAG(1, 0, 5), EXACT, true);
    CU_ASSERT_TRUE(first.found && second.found && first.total == 3 && second.total == 3000);
    CU_ASSERT_FALSE(mailbox_probe(&box, TAG(1, 0, 5), EXACT, false).found);
    put_more(0, 1000, 1000);
    came(receive_taken_out(first.msg, ROOM), TAG(1, 0, 5), 3);
    send(1, TAG(1, 1, 5), 4);
    CU_ASSERT_EQUAL(mailbox_probe(&box, TAG(1, 1, 5), EXACT, true).msg, first.msg);
    request = receive_taken_out(second.msg, 2500);
    nothing_came();
    put_more(0, 2000, 1000);
    came(request, TAG(1, 0, 5), 3000);
}

TEST(receives_are_cancelled)
{
    struct request *request;

    start();
    request = receive(TAG(1, 0, 5), EXACT, ROOM);
    cancel(request);
    CU_ASSERT_TRUE(!request->busy && request->status == REQUEST_CANCELED);
    CU_ASSERT_PTR_EQUAL(inbox.happened, &request->event);
    inbox_take(&inbox);
    send(0, TAG(1, 0, 5), 3); /* nobody waits for it any more */
    nothing_came();
    came(receive(TAG(1, 0, 5), EXACT, ROOM), TAG(1, 0, 5), 3);
    request = receive(TAG(1, 0, 5), EXACT, ROOM);
    put_first(0, CW_PIECE_TAG, TAG(1, 0, 5), 3000, 1000);
    cancel(request); /* too late */
    nothing_came();
    put_more(0, 1000, 2000);
    came(request, TAG(1, 0, 5), 3000);
}

/* The sender is to be told that its message was matched, once; a send is not cancelled. */
TEST(synchronous_sends)
{
    struct request *request;

    start();
    send(0, TAG(1, 0, 5), 3); /* one whose sender need not be told */
    came(receive(TAG(1, 0, 5), EXACT, ROOM), TAG(1, 0, 5), 3);
    send_as(0, CW_PIECE_SYNC, TAG(1, 0, 5), 3);
    CU_ASSERT_EQUAL(box.news_count, 0);
    came(receive(TAG(1, 0, 5), EXACT, ROOM), TAG(1, 0, 5), 3);
    CU_ASSERT_TRUE(box.news_count == 1 && box.news[0].rank == 0 && box.news[0].req == 77);
    request = receive(TAG(1, 1, 5), EXACT, ROOM);
    put_first(1, CW_PIECE_SYNC, TAG(1, 1, 5), 3000, 1000); /* before it is whole */
    CU_ASSERT_TRUE(box.news_count == 2 && box.news[1].rank == 1 && box.news[1].req == 77);
    put_more(1, 1000, 2000);
    CU_ASSERT_EQUAL(box.news_count, 2);
    came(request, TAG(1, 1, 5), 3000);
    request = request_new(&requests, false);
    cancel(request);
    nothing_came();
    put(1, (struct cw_piece){.type = CW_PIECE_SENT, .req = request->id}, NULL, 0);
    CU_ASSERT_PTR_NULL(take(1));
    CU_ASSERT_TRUE(!request->busy && inbox.happened == &request->event);
}

TEST(active_messages)
{
    const struct am *am;

    start();
    put_first(0, CW_PIECE_AM, 9, 3000, 1000);
    put_first(1, CW_PIECE_AM, 8, 3000, 1000);
    nothing_came();
    put_more(0, 1000, 2000);
    am = (const struct am *)inbox.happened;
    CU_ASSERT_TRUE_FATAL(am && am->event.active && am->id == 9 && am->total == 3000);
    CU_ASSERT_EQUAL(memcmp(am->bytes, payload, 3000), 0);
    put_more(1, 1000, 2000);
    CU_ASSERT_PTR_NOT_NULL(am->event.next);
}

/* --- room ----------------------------------------------------------------------------------------
 */

#define RECORD sizeof(struct waiting_message)

/* Whether the mailbox takes the first piece of such a message. */
static bool takes(uint32_t type, uint64_t tag, uint64_t total)
{
    return mailbox_takes(&box, &(struct cw_piece){.type = type, .tag = tag, .total = total});
}

TEST(messages_that_wait_have_room)
{
    struct cw_probed probed;

    start();
    box.room = 2 * RECORD + 5000;
    CU_ASSERT_TRUE(takes(CW_PIECE_TAG, 5, RECORD + 5000) && !takes(CW_PIECE_TAG, 5, RECORD + 5001));
    put_first(0, CW_PIECE_TAG, TAG(1, 0, 5), 3000, 1000); /* all of it counts */
    CU_ASSERT_TRUE(takes(CW_PIECE_SYNC, 5, 2000) && !takes(CW_PIECE_SYNC, 5, 2001));
    put_more(0, 1000, 2000);
    send(1, TAG(1, 1, 5), 2000);
    CU_ASSERT_FALSE(takes(CW_PIECE_TAG, 5, 0));
    probed = mailbox_probe(&box, TAG(1, 0, 5), EXACT, true);
    CU_ASSERT_FALSE(takes(CW_PIECE_TAG, 5, 0)); /* it is not received yet */
    came(receive_taken_out(probed.msg, 10), TAG(1, 0, 5), 3000);
    CU_ASSERT_TRUE(takes(CW_PIECE_TAG, 5, 3000));
    came(receive(TAG(1, 1, 5), EXACT, ROOM), TAG(1, 1, 5), 2000);
    CU_ASSERT_EQUAL(box.waiting_bytes, 0);
}

/* What needs no room, and what is to be refused. */
TEST(without_room_receives_get_their_messages)
{
    struct request *request;

    start();
    box.room = 0;
    request = receive(TAG(1, 0, 5), EXACT, ROOM);
    CU_ASSERT_FALSE(takes(CW_PIECE_TAG, TAG(1, 0, 6), 0));
    CU_ASSERT_TRUE(takes(CW_PIECE_TAG, TAG(1, 0, 5), 50000));
    put_first(0, CW_PIECE_TAG, TAG(1, 0, 5), 3000, 1000);
    CU_ASSERT_FALSE(takes(CW_PIECE_TAG, TAG(1, 0, 5), 0));
    CU_ASSERT_TRUE(takes(CW_PIECE_MORE, 0, 0) && takes(CW_PIECE_SENT, 0, 0));
    CU_ASSERT_TRUE(takes(CW_PIECE_TAG, 0, CW_MESSAGE_MAX + 1));
    put_more(0, 1000, 2000);
    came(request, TAG(1, 0, 5), 3000);
    CU_ASSERT_EQUAL(box.waiting_bytes, 0);
}

/* They have left the mailbox when the program has taken them. */
TEST(active_messages_have_room)
{
    start();
    box.room = RECORD + 3000;
    CU_ASSERT_TRUE(takes(CW_PIECE_AM, 9, 3000) && !takes(CW_PIECE_AM, 9, 3001));
    put_first(0, CW_PIECE_AM, 9, 3000, 1000);
    CU_ASSERT_FALSE(takes(CW_PIECE_AM, 9, 1) || takes(CW_PIECE_TAG, 9, 1));
    put_more(0, 1000, 2000);
    CU_ASSERT_FALSE(takes(CW_PIECE_AM, 9, 1));
    inbox_take(&inbox);
    CU_ASSERT_TRUE(takes(CW_PIECE_AM, 9, 3000));
}

/* --- against a model -----------------------------------------------------------------------------
 */

/* Messages and receives in their order; those that are done are gone. */
static struct {
    uint64_t tag;
    uint32_t total;
} arrived[OPEN_MAX];
static uint32_t arrivals;
static struct request *open[OPEN_MAX];
static uint32_t receives;

static void remove_at(void *list, uint32_t *count, uint32_t at, size_t entry)
{
    uint8_t *to = (uint8_t *)list + at * entry;

    memmove(to, to + entry, (--*count - at) * entry);
}

static void model_send(void)
{
    uint32_t from = (uint32_t)codec_random_below(&seed, 2);
    uint64_t tag = TAG(1 + codec_random_below(&seed, 2), from, codec_random_below(&seed, 3));
    uint32_t total = (uint32_t)codec_random_below(&seed, 3 * PIECE);
    uint32_t i = 0;

    send(from, tag, total);
    while (i < receives && ((open[i]->want_tag ^ tag) & open[i]->want_mask) != 0)
        i++;
    if (i < receives) {
        came(open[i], tag, total);
        remove_at(open, &receives, i, sizeof(*open));
    } else {
        arrived[arrivals].tag = tag;
        arrived[arrivals++].total = total;
    }
}

static void model_receive(void)
{
    static const uint64_t masks[] = {EXACT, ANY_TAG, ANY_SOURCE, ANY_TAG & ANY_SOURCE};
    uint64_t mask = masks[codec_random_below(&seed, 4)];
    uint64_t tag = TAG(1 + codec_random_below(&seed, 2), codec_random_below(&seed, 2),
                       codec_random_below(&seed, 3));
    struct request *request = receive(tag, mask, codec_random_below(&seed, 3 * PIECE));
    uint32_t i = 0;

    while (i < arrivals && ((arrived[i].tag ^ tag) & mask) != 0)
        i++;
    if (i < arrivals) {
        came(request, arrived[i].tag, arrived[i].total);
        remove_at(arrived, &arrivals, i, sizeof(*arrived));
    } else {
        open[receives++] = request;
    }
}

TEST(any_order_is_that_of_the_model)
{
    start();
    arrivals = receives = 0;
    for (int step = 0; step < STEPS; step++) {
        bool sends = codec_random_below(&seed, 2);

        if (sends && arrivals < OPEN_MAX)
            model_send();
        else if (!sends && receives < OPEN_MAX - 1)
            model_receive();
        nothing_came();
    }
    CU_ASSERT_TRUE(box.index.waiting == arrivals && match_posted_count(&box.index) == receives);
}

/* --- hostile senders -----------------------------------------------------------------------------
 */

/* The last piece from rank 0 is refused, with a text that has this in it. */
static void refused(struct cw_piece piece, uint32_t size, const char *text)
{
    const char *wrong;

    put(0, piece, payload, size);
    wrong = take(0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(wrong);
    CU_ASSERT_PTR_NOT_NULL(strstr(wrong, text));
}

TEST(more_of_nothing)
{
    start();
    refused((struct cw_piece){.type = CW_PIECE_MORE}, 10, "has not begun");
    send(0, TAG(1, 0, 5), 10);
    refused((struct cw_piece){.type = CW_PIECE_MORE}, 0, "has not begun");
}

TEST(a_message_amid_another_one)
{
    start();
    put_first(0, CW_PIECE_TAG, TAG(1, 0, 5), 3000, 1000);
    refused((struct cw_piece){.type = CW_PIECE_TAG, .total = 10}, 10, "amid another one");
}

TEST(lengths_that_cannot_be)
{
    for (int posted_first = 0; posted_first < 2; posted_first++) {
        start();
        if (posted_first)
            receive(TAG(1, 0, 5), EXACT, ROOM);
        refused((struct cw_piece){.tag = TAG(1, 0, 5), .total = 9}, 10, "more bytes");
        put_first(0, CW_PIECE_TAG, TAG(1, 0, 5), 3000, 1000);
        refused((struct cw_piece){.type = CW_PIECE_MORE}, 2001, "more bytes");
        finish();
    }
    start();
    refused((struct cw_piece){.total = CW_MESSAGE_MAX + 1}, 10, "above the bound");
    refused((struct cw_piece){.total = UINT64_MAX}, 10, "above the bound");
}

/* No such request, a receive, one that is done. */
TEST(sents_that_nobody_waits_for)
{
    struct request *request;

    start();
    refused((struct cw_piece){.type = CW_PIECE_SENT, .req = 0}, 0, "does not wait");
    refused((struct cw_piece){.type = CW_PIECE_SENT, .req = UINT32_MAX}, 0, "does not wait");
    request = receive(TAG(1, 0, 5), EXACT, ROOM);
    refused((struct cw_piece){.type = CW_PIECE_SENT, .req = request->id}, 0, "does not wait");
    request = request_new(&requests, false);
    put(0, (struct cw_piece){.type = CW_PIECE_SENT, .req = request->id}, NULL, 0);
    CU_ASSERT_PTR_NULL(take(0));
    refused((struct cw_piece){.type = CW_PIECE_SENT, .req = request->id}, 0, "does not wait");
}

/* What has happened is forgotten. */
static void forget_events(void)
{
    for (struct event *event = inbox_take(&inbox), *next; event; event = next) {
        next = event->next;
        if (event->active)
            drop_am((struct am *)event);
        else
            request_free(&requests, (struct request *)event);
    }
}

/* Anything at the place of the next piece: what the mailbox takes stays where it belongs. */
TEST(anything_at_all)
{
    struct cw_piece none;

    start();
    for (uint32_t from = 0; from < 2; from++)
        CU_ASSERT_TRUE_FATAL(cw_stream_room(&writers[from], 1) > 0 &&
                             !cw_stream_next(&readers[from], &none));
    for (int step = 0; step < STEPS; step++) {
        struct cw_stream *reader = &readers[codec_random_below(&seed, 2)];
        struct cw_piece *at = (struct cw_piece *)(reader->block + reader->offset);

        at->size = (uint32_t)codec_random_below(&seed, 9) * 500;
        at->type = (uint32_t)codec_random_below(&seed, CW_PIECE_TYPES + 1);
        at->tag = codec_random_below(&seed, 4);
        at->total = at->size + codec_random_below(&seed, 9) * 500;
        at->req = (uint32_t)codec_random_below(&seed, OPEN_MAX);
        atomic_store(&at->stamp, reader->at + 1);
        take(reader == &readers[1]);
        reader->broken = false;
        if (match_posted_count(&box.index) < OPEN_MAX / 2)
            receive(codec_random_below(&seed, 4), EXACT, codec_random_below(&seed, 2 * PIECE));
        forget_events();
    }
    CU_ASSERT_TRUE(inbox.event > STEPS / 100);
}

TEST(room_that_stretches)
{
    start();
    box.room = 2 * RECORD + 5000;
    CU_ASSERT_TRUE(mailbox_stretches(&box, 5001));
    CU_ASSERT_TRUE(takes(CW_PIECE_TAG, 5, RECORD + 5001));
    CU_ASSERT_FALSE(mailbox_stretches(&box, 5001));
}
