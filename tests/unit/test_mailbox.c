/* A rank that is its own mailbox: messages come through channel memory, or from the relay, in any
 * pieces, before and after their receives, by MPI's rules; and senders write what cannot be. */
#define arena_alloc mailbox_arena_alloc
#define arena_free mailbox_arena_free
#include "rdevice/arrivals.c"
#include "rdevice/inbox.c"
#include "rdevice/mailbox.c"
#include "rdevice/request.c"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <pthread.h>
#include <stdlib.h>

#define RANKS 3u
#define ME 2u
#define PIECE 4000u  /* bytes of a piece, where a test does not say it */
#define ROOM 100000u /* of a receive, at most */
#define STEPS 20000
#define OPEN_MAX 64u

/* Tags as MPICH has them: who sent it, in which context, as what. */
#define TAG(context, source, tag)                                                                  \
    ((uint64_t)(context) << 48 | (uint64_t)(source) << 32 | (uint64_t)(tag))
#define EXACT UINT64_MAX
#define ANY_TAG (UINT64_MAX << 32)
#define ANY_SOURCE (UINT64_MAX << 48 | UINT32_MAX)

void mailbox_arena_clear(void);
static void finish(void);
SUITE_AFTER_EACH("mailbox of a rank", finish);

static struct cw_channel channel;
static struct cw_stream writers[RANKS];
static struct cw_stream readers[RANKS];
static struct request_table requests;
static struct inbox inbox;
static struct mailbox box;
static struct arrivals from_relay;      /* from ranks with any number */
static uint8_t buffers[OPEN_MAX][ROOM]; /* by the number of a request */
static uint8_t payload[ROOM];           /* of whom it came and how large it is, at first */
static uint64_t seed;

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

static void start(void)
{
    size_t bytes = cw_channel_bytes(RANKS, 0);
    void *memory = NULL;

    CU_ASSERT_EQUAL_FATAL(posix_memalign(&memory, 4096, bytes), 0);
    memset(memory, 0, bytes);
    CU_ASSERT_TRUE_FATAL(cw_channel_at(&channel, memory, bytes, RANKS));
    for (uint32_t from = 0; from < RANKS; from++)
        writers[from] = readers[from] = cw_channel_stream(&channel, from, ME, false);
    requests = (struct request_table){.chunks = NULL};
    request_setup(&requests, 0, NULL);
    inbox_begin(&inbox);
    mailbox_begin(&box, &inbox, &requests, RANKS, UINT64_MAX);
    arrivals_begin(&from_relay, &box);
    for (uint32_t i = 0; i < ROOM; i++)
        payload[i] = (uint8_t)(i * 7 + i / 251);
    seed = 1;
}

static void finish(void)
{
    mailbox_arena_clear();
    free(channel.memory);
    channel.memory = NULL;
}

/* --- what others send ----------------------------------------------------------------------------
 */

static void put(uint32_t from, struct cw_piece piece, const void *bytes, uint32_t size)
{
    CU_ASSERT_EQUAL_FATAL(cw_stream_room(&writers[from], size), (int32_t)size);
    piece.size = size;
    cw_stream_put(&writers[from], &piece, &(struct iovec){(void *)bytes, size}, 0);
}

/* What has come from this rank; NULL, or what is wrong. */
static const char *take(uint32_t from)
{
    struct cw_piece piece;
    const char *wrong = NULL;

    while (!wrong && cw_stream_next(&readers[from], &piece)) {
        wrong = mailbox_piece(&box, from, &piece, &readers[from]);
        cw_stream_take(&readers[from], &piece);
    }
    return wrong;
}

static void put_first(uint32_t from, uint32_t type, uint64_t tag, uint32_t total, uint32_t size)
{
    put(from, (struct cw_piece){.type = type, .tag = tag, .total = total, .req = 77}, payload,
        size);
    CU_ASSERT_PTR_NULL(take(from));
}

static void put_more(uint32_t from, uint32_t done, uint32_t size)
{
    put(from, (struct cw_piece){.type = CW_PIECE_MORE}, payload + done, size);
    CU_ASSERT_PTR_NULL(take(from));
}

static void send_as(uint32_t from, uint32_t type, uint64_t tag, uint32_t total)
{
    uint32_t size = total < PIECE ? total : PIECE;

    put_first(from, type, tag, total, size);
    for (uint32_t done = size; done < total; done += size) {
        size = total - done < PIECE ? total - done : PIECE;
        put_more(from, done, size);
    }
}

static void send(uint32_t from, uint64_t tag, uint32_t total)
{
    send_as(from, CW_PIECE_TAG, tag, total);
}

/* --- what the rank asks for ----------------------------------------------------------------------
 */

static struct request *new_receive(uint64_t tag, uint64_t mask, size_t capacity)
{
    struct request *request = request_new(&requests, true);

    CU_ASSERT_TRUE_FATAL(request->id < OPEN_MAX);
    request->target = buffers[request->id];
    request->capacity = capacity;
    request->want_tag = tag;
    request->want_mask = mask;
    memset(request->target, 0, ROOM);
    return request;
}

static struct cw_recv recv_of(const struct request *request)
{
    return (struct cw_recv){.req = request->id,
                            .tag = request->want_tag,
                            .mask = request->want_mask,
                            .capacity = request->capacity};
}

static struct request *receive(uint64_t tag, uint64_t mask, size_t capacity)
{
    struct request *request = new_receive(tag, mask, capacity);
    struct cw_recv recv = recv_of(request);

    mailbox_recv(&box, &recv);
    return request;
}

static struct request *receive_taken_out(uint32_t msg, size_t capacity)
{
    struct request *request = new_receive(0, 0, capacity);
    struct cw_mrecv mrecv = {.req = request->id, .msg = msg, .capacity = capacity};

    mailbox_mrecv(&box, &mrecv);
    return request;
}

static void cancel(const struct request *request)
{
    struct cw_recv recv = recv_of(request);

    mailbox_cancel(&box, &recv);
}

/* It is the next event, with the first bytes of the payload and none behind them. */
static void came(struct request *request, uint64_t tag, size_t total)
{
    size_t size = total < request->capacity ? total : request->capacity;

    CU_ASSERT_PTR_EQUAL_FATAL(inbox.happened, &request->event);
    CU_ASSERT_TRUE(!request->busy && request->tag == tag && request->total == total);
    CU_ASSERT_EQUAL(request->status, size < total ? REQUEST_TRUNCATED : REQUEST_OK);
    CU_ASSERT_EQUAL(memcmp(request->target, payload, size), 0);
    CU_ASSERT_TRUE(size == ROOM || request->target[size] == 0);
    inbox.happened = request->event.next;
    if (!inbox.happened)
        inbox.happened_tail = &inbox.happened;
    request_free(&requests, request);
}

static void nothing_came(void)
{
    CU_ASSERT_PTR_NULL(inbox.happened);
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
    CU_ASSERT_EQUAL(box.matched_count, 0);
    came(receive(TAG(1, 0, 5), EXACT, ROOM), TAG(1, 0, 5), 3);
    CU_ASSERT_TRUE(box.matched_count == 1 && box.matched[0].rank == 0 && box.matched[0].req == 77);
    request = receive(TAG(1, 1, 5), EXACT, ROOM);
    put_first(1, CW_PIECE_SYNC, TAG(1, 1, 5), 3000, 1000); /* before it is whole */
    CU_ASSERT_TRUE(box.matched_count == 2 && box.matched[1].rank == 1 && box.matched[1].req == 77);
    put_more(1, 1000, 2000);
    CU_ASSERT_EQUAL(box.matched_count, 2);
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

/* --- from the relay ------------------------------------------------------------------------------
 */

/* The next frame of a message, of which `done` bytes came before. */
static const char *arrive_from(uint32_t src, uint32_t kind, uint64_t tag, uint32_t total,
                               uint32_t done, uint32_t size)
{
    struct cw_message header = {.req = src, .tag = tag, .total = total};
    uint8_t body[CW_ARRIVAL_SIZE];
    const char *wrong;
    uint8_t *to;

    header.sync = kind == CW_SEND_SYNC ? 55 : 0;
    header.flags = CW_MESSAGE_UNMATCHED | (kind == CW_SEND_SYNC ? CW_MESSAGE_SYNC : 0) |
                   (kind == CW_SEND_AM ? CW_MESSAGE_ACTIVE : 0);
    header.flags |= done == 0 ? CW_MESSAGE_FIRST : 0;
    if (done + size == total) {
        header.flags |= CW_MESSAGE_LAST;
        header.event = from_relay.event + 1;
    }
    cw_arrival_put(body, &header);
    wrong = arrivals_on_message(&from_relay, body, size, &to);
    if (wrong)
        return wrong;
    if (size)
        memcpy(to, payload + done, size);
    arrivals_payload_came(&from_relay);
    return NULL;
}

static void arrives(uint32_t src, uint32_t kind, uint64_t tag, uint32_t total)
{
    CU_ASSERT_PTR_NULL(arrive_from(src, kind, tag, total, 0, total));
}

static void take_all(void)
{
    while (arrivals_count(&from_relay) > 0)
        CU_ASSERT_PTR_NULL(arrivals_take(&from_relay));
}

/* Messages of both ways wait in the order in which they were taken. */
TEST(beside_those_of_the_host)
{
    struct request *request;

    start();
    arrives(70000, CW_SEND_TAG, TAG(1, 7, 5), 3000);
    send(0, TAG(1, 0, 5), 2000);
    take_all();
    came(receive(TAG(1, 0, 5), ANY_SOURCE, ROOM), TAG(1, 0, 5), 2000);
    came(receive(TAG(1, 0, 5), ANY_SOURCE, 10), TAG(1, 7, 5), 3000);
    request = receive(TAG(1, 0, 6), ANY_SOURCE, ROOM);
    arrives(9, CW_SEND_TAG, TAG(1, 9, 6), 0);
    nothing_came();
    take_all();
    came(request, TAG(1, 9, 6), 0);
    CU_ASSERT_EQUAL(box.far_bytes + box.waiting_bytes + from_relay.bytes, 0);
}

TEST(arrivals_that_are_told)
{
    struct cw_probed probed;

    start();
    arrives(9, CW_SEND_SYNC, TAG(1, 9, 6), 100);
    arrives(8, CW_SEND_SYNC, TAG(1, 8, 6), 100);
    take_all();
    CU_ASSERT_EQUAL(box.matched_count, 0);
    probed = mailbox_probe(&box, TAG(1, 8, 6), EXACT, true);
    came(receive_taken_out(probed.msg, ROOM), TAG(1, 8, 6), 100);
    CU_ASSERT_TRUE(box.matched_count == 1 && box.matched[0].rank == 8 && box.matched[0].far &&
                   box.matched[0].req == 55);
}

/* What was not whole comes again when the relay is back; in a process from an image what was not
 * taken, too. */
TEST(arrivals_that_come_again)
{
    start();
    arrives(8, CW_SEND_TAG, 5, 3000);
    take_all();
    arrives(8, CW_SEND_TAG, 6, 300);
    CU_ASSERT_PTR_NULL(arrive_from(9, CW_SEND_TAG, 7, 2000, 0, 1000));
    CU_ASSERT_PTR_NULL(arrive_from(7, CW_SEND_AM, 7, 20, 0, 10));
    CU_ASSERT_EQUAL(arrivals_count(&from_relay), 1);
    arrivals_on_return(&from_relay);
    CU_ASSERT_PTR_NULL(arrive_from(9, CW_SEND_TAG, 7, 2000, 0, 1000));
    arrivals_on_restore(&from_relay);
    CU_ASSERT_EQUAL(from_relay.event, 1);
    arrives(8, CW_SEND_TAG, 6, 300);
    arrives(9, CW_SEND_TAG, 7, 2000);
    take_all();
    came(receive(7, EXACT, ROOM), 7, 2000);
    came(receive(6, EXACT, ROOM), 6, 300);
    came(receive(5, EXACT, ROOM), 5, 3000);
    CU_ASSERT_EQUAL(box.far_bytes + from_relay.bytes, 0);
}

TEST(arrivals_that_cannot_be)
{
    uint8_t done[CW_DONE_SIZE];

    start();
    CU_ASSERT_STRING_EQUAL(arrive_from(8, CW_SEND_TAG, 5, 3000, 1000, 1000),
                           "more of a message that has not begun");
    CU_ASSERT_PTR_NULL(arrive_from(8, CW_SEND_TAG, 5, 3000, 0, 1000));
    CU_ASSERT_STRING_EQUAL(arrive_from(8, CW_SEND_TAG, 5, 4000, 1000, 2500),
                           "ARRIVAL whose bytes do not add up");
    cw_done_put(done, &(struct cw_done){.req = 1, .event = 1});
    CU_ASSERT_PTR_NULL(arrivals_on_sent(&from_relay, done));
    CU_ASSERT_PTR_NOT_NULL(arrivals_take(&from_relay)); /* there is no such send */
}
