/* A rank that is its own mailbox, and what comes through its relay: messages that this hands over,
 * or offers, beside those of channel memory; again where the relay is back, or the process is one
 * from an image; and what cannot be. */
#include "tests/unit/box.h"

SUITE_AFTER_EACH("mailbox of a rank, from elsewhere", finish);

/* The bytes of a frame that was right. */
static const char *payload_comes(uint8_t *to, uint32_t done, uint32_t size)
{
    if (size)
        memcpy(to, payload + done, size);
    arrivals_payload_came(&from_relay);
    return NULL;
}

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
    return wrong ? wrong : payload_comes(to, done, size);
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
    CU_ASSERT_EQUAL(box.news_count, 0);
    probed = mailbox_probe(&box, TAG(1, 8, 6), EXACT, true);
    came(receive_taken_out(probed.msg, ROOM), TAG(1, 8, 6), 100);
    CU_ASSERT_TRUE(box.news_count == 1 && box.news[0].rank == 8 &&
                   box.news[0].kind == NEWS_MATCHED && box.news[0].req == 55);
}

/* One message is offered, under this number. */
static void offered(uint32_t src, uint64_t tag, uint32_t total, uint32_t msg)
{
    struct cw_message header = {.req = src, .tag = tag, .total = total, .msg = msg};
    uint8_t body[CW_ARRIVAL_SIZE];
    uint8_t *to;

    header.flags = CW_MESSAGE_UNMATCHED | CW_MESSAGE_OFFERED | CW_MESSAGE_FIRST | CW_MESSAGE_LAST;
    header.event = from_relay.event + 1;
    cw_arrival_put(body, &header);
    CU_ASSERT_PTR_NULL_FATAL(arrivals_on_message(&from_relay, body, 0, &to));
    arrivals_payload_came(&from_relay);
}

/* The next bytes of an offered message, of which `done` came before and its receive has `wanted`.
 * What is wrong with it, or NULL. */
static const char *hand(const struct request *request, uint64_t tag, uint32_t total, uint32_t done,
                        uint32_t size, uint32_t wanted)
{
    struct cw_message header = {.req = request->id, .tag = tag, .total = total};
    uint8_t body[CW_MESSAGE_SIZE];
    const char *wrong;
    uint8_t *to;

    header.flags = (done == 0 ? CW_MESSAGE_FIRST : 0) | (wanted < total ? CW_MESSAGE_TRUNC : 0);
    if (done + size == wanted) {
        header.flags |= CW_MESSAGE_LAST;
        header.event = from_relay.event + 1;
    }
    cw_message_put(body, &header);
    wrong = arrivals_on_asked(&from_relay, body, size, &to);
    return wrong ? wrong : payload_comes(to, done, size);
}

/* The last that is told is that this receive is for this offer. */
static void asked(const struct request *request, uint32_t msg)
{
    const struct mailbox_news *news = &box.news[box.news_count - 1];

    CU_ASSERT_TRUE_FATAL(box.news_count > 0 && news->kind == NEWS_ASKED);
    CU_ASSERT_TRUE(news->req == request->id && news->msg == msg &&
                   news->bytes == request->capacity);
    nothing_came();
}

/* Offers are matched as messages are, in order, by receives before and after them, and probes.
 * Their bytes go where they belong, in parts beside each other's, and are there once they are
 * taken. */
TEST(offers)
{
    struct request *first;
    struct request *second;
    struct cw_probed probed;

    start();
    first = receive(TAG(1, 7, 5), EXACT, ROOM);
    offered(7, TAG(1, 7, 5), 5000, 4);
    nothing_came();
    CU_ASSERT_EQUAL(box.news_count, 0);
    take_all();
    asked(first, 4);
    offered(7, TAG(1, 7, 5), 3000, 9);
    arrives(7, CW_SEND_TAG, TAG(1, 7, 5), 20);
    take_all();
    probed = mailbox_probe(&box, TAG(1, 7, 5), EXACT, true);
    CU_ASSERT_TRUE(probed.found && probed.total == 3000);
    CU_ASSERT_EQUAL(mailbox_probe(&box, TAG(1, 7, 5), EXACT, false).total, 20);
    second = receive_taken_out(probed.msg, 2000);
    asked(second, 9);
    CU_ASSERT_PTR_NULL(hand(first, TAG(1, 7, 5), 5000, 0, 4000, 5000));
    CU_ASSERT_PTR_NULL(hand(second, TAG(1, 7, 5), 3000, 0, 2000, 2000));
    take_all();
    came(second, TAG(1, 7, 5), 3000);
    CU_ASSERT_PTR_NULL(hand(first, TAG(1, 7, 5), 5000, 4000, 1000, 5000));
    nothing_came();
    take_all();
    came(first, TAG(1, 7, 5), 5000);
    CU_ASSERT_EQUAL(box.far_bytes + from_relay.bytes, cw_room_taken(20));
}

/* What was not whole comes again, or in a process from an image what was not taken. */
TEST(offers_that_come_again)
{
    struct request *half;
    struct request *whole;

    start();
    half = receive(5, EXACT, ROOM);
    whole = receive(6, EXACT, ROOM);
    offered(7, 5, 5000, 0);
    offered(8, 6, 300, 1);
    take_all();
    offered(8, 9, 70, 2);
    CU_ASSERT_PTR_NULL(hand(whole, 6, 300, 0, 300, 300));
    CU_ASSERT_PTR_NULL(hand(half, 5, 5000, 0, 1000, 5000));
    arrivals_on_return(&from_relay);
    CU_ASSERT_EQUAL(from_relay.event, 4);
    CU_ASSERT_PTR_NOT_NULL(hand(whole, 6, 300, 0, 300, 300)); /* it is here */
    CU_ASSERT_PTR_NULL(hand(half, 5, 5000, 0, 2000, 5000));
    arrivals_on_restore(&from_relay);
    CU_ASSERT_EQUAL(from_relay.event, 2);
    offered(8, 9, 70, 2);
    CU_ASSERT_PTR_NULL(hand(whole, 6, 300, 0, 300, 300));
    CU_ASSERT_PTR_NULL(hand(half, 5, 5000, 0, 5000, 5000));
    take_all();
    came(whole, 6, 300);
    came(half, 5, 5000);
    asked(receive(9, EXACT, ROOM), 2);
}

/* What the relay may hand over is told at first, and whenever a part of that is free again. */
TEST(room_for_arrivals)
{
    const uint64_t room = 8 * cw_room_taken(100);

    start();
    box.room = MAILBOX_FAR_SHARE * room;
    box.news_count = 0;
    mailbox_open_far(&box);
    CU_ASSERT_TRUE(box.news_count == 1 && box.news[0].kind == NEWS_ROOM &&
                   box.news[0].bytes == room);
    for (uint32_t i = 0; i < 8; i++)
        arrives(7, CW_SEND_TAG, i, 100);
    CU_ASSERT_STRING_EQUAL(arrive_from(7, CW_SEND_TAG, 9, 0, 0, 0),
                           "a message for which there is no room");
    arrives(7, CW_SEND_AM, 9, 5000);
    offered(7, 9, 5000, 0);
    arrivals_on_restore(&from_relay);
    for (uint32_t i = 0; i < 8; i++)
        arrives(7, CW_SEND_TAG, i, 100);
    take_all();
    CU_ASSERT_STRING_EQUAL(arrive_from(7, CW_SEND_TAG, 9, 0, 0, 0),
                           "a message for which there is no room");
    for (uint32_t i = 0; i < 8; i++) {
        came(receive(i, EXACT, ROOM), i, 100);
        CU_ASSERT_EQUAL(box.news_count, 1 + (i + 1) / 3);
    }
    CU_ASSERT_EQUAL(box.news[1].bytes, room + 3 * cw_room_taken(100));
}

TEST(offers_that_cannot_be)
{
    struct request *request;

    start();
    request = receive(5, EXACT, ROOM);
    CU_ASSERT_STRING_EQUAL(hand(request, 5, 10, 0, 10, 10),
                           "MESSAGE that this rank has not asked for");
    request->id += OPEN_MAX;
    CU_ASSERT_STRING_EQUAL(hand(request, 5, 10, 0, 10, 10),
                           "MESSAGE that this rank has not asked for");
    request->id -= OPEN_MAX;
    offered(7, 5, 3000, 0);
    take_all();
    CU_ASSERT_STRING_EQUAL(hand(request, 5, 3000, 1000, 1000, 3000),
                           "MESSAGE for a receive that is not posted");
    CU_ASSERT_STRING_EQUAL(hand(request, 5, 3000, 0, 3001, 3000),
                           "MESSAGE whose bytes do not add up");
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
