/* Frames: what is written is read back, and what does not fit is not accepted. */
#include "common/frame.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("frame");

/* A value whose every byte differs: fields that are swapped or cut are seen. */
static void fill(void *value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)value)[i] = (uint8_t)(i * 7 + 1);
}

TEST(challenge)
{
    uint8_t bytes[CW_CHALLENGE_SIZE];
    struct cw_challenge v;
    struct cw_challenge back;

    memset(&v, 0, sizeof(v));
    fill(v.nonce, sizeof(v.nonce));
    v.magic = CW_PROTOCOL_MAGIC;
    v.version = 0x1234;
    cw_challenge_put(bytes, &v);
    CU_ASSERT_TRUE(cw_challenge_get(bytes, &back));
    CU_ASSERT_EQUAL(back.magic, v.magic);
    CU_ASSERT_EQUAL(back.version, v.version);
    CU_ASSERT_EQUAL(memcmp(back.nonce, v.nonce, sizeof(v.nonce)), 0);
    bytes[0] ^= 1;
    CU_ASSERT_FALSE(cw_challenge_get(bytes, &back));
}

TEST(hello)
{
    uint8_t bytes[CW_HELLO_SIZE];
    struct cw_hello v;
    struct cw_hello back;

    fill(&v, sizeof(v));
    v.magic = CW_PROTOCOL_MAGIC;
    v.role = CW_ROLE_DISPATCHER;
    cw_hello_put(bytes, &v);
    CU_ASSERT_TRUE(cw_hello_get(bytes, &back));
    CU_ASSERT_TRUE(back.magic == v.magic && back.version == v.version && back.role == v.role);
    CU_ASSERT_TRUE(back.rank == v.rank && back.incarnation == v.incarnation);
    CU_ASSERT_EQUAL(memcmp(back.job, v.job, sizeof(v.job)), 0);
    CU_ASSERT_EQUAL(memcmp(back.nonce, v.nonce, sizeof(v.nonce)), 0);
    CU_ASSERT_EQUAL(memcmp(back.mac, v.mac, sizeof(v.mac)), 0);
    CU_ASSERT_TRUE(back.event == v.event && back.poll_clock == v.poll_clock);
    CU_ASSERT_TRUE(back.acts == v.acts && back.flags == v.flags);
    CU_ASSERT_TRUE(back.resume_ms == v.resume_ms && back.received == v.received);
    CU_ASSERT_EQUAL(bytes[0], 'C');
    CU_ASSERT_EQUAL(bytes[3], 'Y');
    v.role = 0;
    cw_hello_put(bytes, &v);
    CU_ASSERT_FALSE(cw_hello_get(bytes, &back));
    v.role = CW_ROLE_RANK;
    v.magic++;
    cw_hello_put(bytes, &v);
    CU_ASSERT_FALSE(cw_hello_get(bytes, &back));
}

TEST(welcome)
{
    uint8_t bytes[CW_WELCOME_SIZE];
    struct cw_welcome v;
    struct cw_welcome back;

    fill(&v, sizeof(v));
    cw_welcome_put(bytes, &v);
    CU_ASSERT_TRUE(cw_welcome_get(bytes, &back));
    CU_ASSERT_TRUE(back.acts == v.acts && back.event == v.event && back.missing == v.missing);
    CU_ASSERT_TRUE(back.clock == v.clock && back.flags == v.flags);
    CU_ASSERT_EQUAL(back.received, v.received);
    CU_ASSERT_EQUAL(memcmp(back.mac, v.mac, sizeof(v.mac)), 0);
}

TEST(send_frame)
{
    struct cw_send v = {.dst = 0x01020304,
                        .req = 0x05060708,
                        .tag = 0x1112131415161718,
                        .clock = 0x3132333435363738,
                        .contents = 0x4142434445464748};
    uint8_t bytes[CW_SEND_SIZE];
    struct cw_send back;

    for (uint32_t kind = 0; kind < 5; kind++) {
        v.kind = kind;
        v.total = CW_MESSAGE_MAX;
        cw_send_put(bytes, &v);
        CU_ASSERT_EQUAL(cw_send_get(bytes, &back), kind >= CW_SEND_TAG && kind <= CW_SEND_AM);
        CU_ASSERT_EQUAL(back.dst, v.dst);
        CU_ASSERT_EQUAL(back.kind, v.kind);
        CU_ASSERT_EQUAL(back.req, v.req);
        CU_ASSERT_EQUAL(back.tag, v.tag);
        CU_ASSERT_EQUAL(back.total, v.total);
        CU_ASSERT_EQUAL(back.clock, v.clock);
        CU_ASSERT_EQUAL(back.contents, v.contents);
    }
    v.kind = CW_SEND_TAG;
    v.total = CW_MESSAGE_MAX + 1;
    cw_send_put(bytes, &v);
    CU_ASSERT_FALSE(cw_send_get(bytes, &back));
}

TEST(receives_and_probes)
{
    struct cw_recv recv = {0x01020304,         0,          0x1112131415161718,
                           0x2122232425262728, UINT64_MAX, 3ull << 50};
    struct cw_mrecv mrecv = {0x01020304, 0x05060708, 0x1112131415161718, 4ull << 50};
    struct cw_probe probe = {0x1112131415161718, 0x2122232425262728, 1, 0, 5ull << 50};
    uint8_t bytes[CW_RECV_SIZE];
    struct cw_recv recv_back;
    struct cw_mrecv mrecv_back;
    struct cw_probe probe_back;

    cw_recv_put(bytes, &recv);
    CU_ASSERT_TRUE(cw_recv_get(bytes, &recv_back));
    CU_ASSERT_TRUE(recv_back.req == recv.req && recv_back.tag == recv.tag &&
                   recv_back.mask == recv.mask && recv_back.capacity == recv.capacity &&
                   recv_back.clock == recv.clock);
    cw_mrecv_put(bytes, &mrecv);
    CU_ASSERT_TRUE(cw_mrecv_get(bytes, &mrecv_back));
    CU_ASSERT_EQUAL(memcmp(&mrecv, &mrecv_back, sizeof(mrecv)), 0);
    cw_probe_put(bytes, &probe);
    CU_ASSERT_TRUE(cw_probe_get(bytes, &probe_back));
    CU_ASSERT_TRUE(probe_back.tag == probe.tag && probe_back.mask == probe.mask &&
                   probe_back.remove == 1 && probe_back.clock == probe.clock);
    probe.remove = 2;
    cw_probe_put(bytes, &probe);
    CU_ASSERT_FALSE(cw_probe_get(bytes, &probe_back));
}

TEST(events)
{
    struct cw_message message = {1, 15, 0x1112131415161718, 0x2122232425262728, CW_MESSAGE_MAX,
                                 0, 0};
    struct cw_done done = {.req = 0x01020304, .event = 0x1112131415161718};
    struct cw_probed probed = {1ull << 40, 1, 2, 3ull << 40, 4ull << 40, 5ull << 40};
    uint8_t bytes[CW_PROBED_SIZE];
    struct cw_message message_back;
    struct cw_done done_back;
    struct cw_probed probed_back;

    cw_message_put(bytes, &message);
    CU_ASSERT_TRUE(cw_message_get(bytes, &message_back));
    CU_ASSERT_EQUAL(memcmp(&message, &message_back, sizeof(message)), 0);
    message.flags |= CW_MESSAGE_UNMATCHED;
    cw_message_put(bytes, &message);
    CU_ASSERT_FALSE(cw_message_get(bytes, &message_back));
    message.flags = CW_MESSAGE_FIRST | CW_MESSAGE_UNMATCHED | CW_MESSAGE_SYNC;
    message.sync = 0x01020304;
    cw_arrival_put(bytes, &message);
    CU_ASSERT_TRUE(cw_arrival_get(bytes, &message_back));
    CU_ASSERT_EQUAL(memcmp(&message, &message_back, sizeof(message)), 0);
    message.total++;
    cw_arrival_put(bytes, &message);
    CU_ASSERT_FALSE(cw_arrival_get(bytes, &message_back));
    cw_done_put(bytes, &done);
    CU_ASSERT_TRUE(cw_done_get(bytes, &done_back));
    CU_ASSERT_TRUE(done_back.req == done.req && done_back.event == done.event);
    cw_probed_put(bytes, &probed);
    CU_ASSERT_TRUE(cw_probed_get(bytes, &probed_back));
    CU_ASSERT_EQUAL(memcmp(&probed, &probed_back, sizeof(probed)), 0);
    probed.found = 2;
    cw_probed_put(bytes, &probed);
    CU_ASSERT_FALSE(cw_probed_get(bytes, &probed_back));
}

TEST(determinants)
{
    struct cw_taken taken = {.event = 0x1112131415161718, .clock = 0x2122232425262728};
    struct cw_taken taken_back;
    struct cw_point point = {.event = 0x1112131415161718, .clock = 2, .acts = UINT64_MAX};
    struct cw_point point_back;
    uint8_t bytes[CW_POINT_SIZE];

    cw_taken_put(bytes, &taken);
    CU_ASSERT_TRUE(cw_taken_get(bytes, &taken_back));
    CU_ASSERT_TRUE(taken_back.event == taken.event && taken_back.clock == taken.clock);
    cw_point_put(bytes, &point);
    CU_ASSERT_TRUE(cw_point_get(bytes, &point_back));
    CU_ASSERT_EQUAL(memcmp(&point, &point_back, sizeof(point)), 0);
}

TEST(statistics)
{
    uint8_t bytes[CW_STATS_SIZE];
    struct cw_stats v;
    struct cw_stats back;
    struct cw_rank_stats bye = {0};

    memset(&v, 0, sizeof(v));
    memset(&back, 0, sizeof(back));
    v.rank = 0x01020304;
    v.incarnation = 0x05060708;
    fill(&v.of_rank, sizeof(v.of_rank));
    fill(&v.of_relay, sizeof(v.of_relay));
    cw_stats_put(bytes, &v);
    CU_ASSERT_TRUE(cw_stats_get(bytes, &back));
    CU_ASSERT_EQUAL(memcmp(&v, &back, sizeof(v)), 0);
    cw_bye_put(bytes, &v.of_rank);
    cw_bye_get(bytes, &bye);
    CU_ASSERT_TRUE(bye.polls == v.of_rank.polls && bye.sleeps == v.of_rank.sleeps &&
                   bye.syscalls == v.of_rank.syscalls && bye.sent == 0);
}

TEST(notices)
{
    uint8_t bytes[CW_NOTICE_SIZE + CW_TEXT_MAX + 8];
    struct cw_notice_body said = {.code = 5,
                                  .rank = 0x01020304,
                                  .incarnation = 0x05060708,
                                  .acts = 0x1112131415161718,
                                  .event = 0x2122232425262728,
                                  .text = "why"};
    struct cw_notice_body v;
    size_t size = cw_notice_put(bytes, &said);

    CU_ASSERT_EQUAL(size, CW_NOTICE_SIZE + 3);
    CU_ASSERT_TRUE(cw_notice_get(bytes, size, &v));
    CU_ASSERT_EQUAL(v.code, 5);
    CU_ASSERT_EQUAL(v.rank, 0x01020304);
    CU_ASSERT_EQUAL(v.incarnation, said.incarnation);
    CU_ASSERT_TRUE(v.acts == said.acts && v.event == said.event);
    CU_ASSERT_STRING_EQUAL(v.text, "why");
    memset(said.text, 'x', sizeof(said.text)); /* also when nobody ended it */
    size = cw_notice_put(bytes, &said);
    CU_ASSERT_EQUAL(size, CW_NOTICE_SIZE + CW_TEXT_MAX);
    CU_ASSERT_TRUE(cw_notice_get(bytes, size, &v));
    CU_ASSERT_EQUAL(strlen(v.text), CW_TEXT_MAX);
    CU_ASSERT_FALSE(cw_notice_get(bytes, size + 1, &v));
    CU_ASSERT_EQUAL(strlen(v.text), CW_TEXT_MAX);
    CU_ASSERT_TRUE(cw_notice_get(bytes, CW_NOTICE_SIZE, &v));
    CU_ASSERT_STRING_EQUAL(v.text, "");
    for (size_t i = 0; i < CW_NOTICE_SIZE; i++)
        CU_ASSERT_FALSE(cw_notice_get(bytes, i, &v));
}

/* What a stranger writes must not reach a terminal as it is. */
TEST(notice_text_is_printable)
{
    uint8_t bytes[CW_NOTICE_SIZE + 256];
    struct cw_notice_body v;

    memset(bytes, 0, CW_NOTICE_SIZE);
    for (int i = 0; i < 256; i++)
        bytes[CW_NOTICE_SIZE + i] = (uint8_t)i;
    CU_ASSERT_TRUE(cw_notice_get(bytes, sizeof(bytes), &v));
    CU_ASSERT_EQUAL(strlen(v.text), 256);
    for (int i = 0; i < 256; i++)
        CU_ASSERT_TRUE(v.text[i] == (i >= ' ' && i < 0x7f ? (char)i : '?'));
}

TEST(names)
{
    CU_ASSERT_STRING_EQUAL(cw_frame_name(CW_FRAME_SEND_DATA), "SEND_DATA");
    CU_ASSERT_STRING_EQUAL(cw_frame_name(0), "?");
    CU_ASSERT_STRING_EQUAL(cw_frame_name(200), "?");
    CU_ASSERT_EQUAL(cw_frame_fixed(CW_FRAME_HELLO), CW_HELLO_SIZE);
    CU_ASSERT_EQUAL(cw_frame_fixed(0), 0);
    CU_ASSERT_EQUAL(cw_frame_fixed(200), 0);
}

/* --- headers ---------------------------------------------------------------------------------- */
static struct cw_err err;

static int accept_header(struct cw_session *s, uint32_t length, uint32_t type, uint32_t seq,
                         uint32_t ack)
{
    uint8_t bytes[CW_FRAME_HEADER];
    struct cw_writer w = cw_writer(bytes, sizeof(bytes));
    struct cw_header header;

    cw_put_u32(&w, length);
    cw_put_u32(&w, type);
    cw_put_u32(&w, seq);
    cw_put_u32(&w, ack);
    return cw_frame_accept(s, bytes, &header, &err);
}

/* For every type: exactly the lengths from its fixed part to its bound are accepted. */
TEST(lengths)
{
    for (uint32_t type = 0; type < 256; type++) {
        uint32_t fixed = cw_frame_fixed((uint8_t)type);
        uint32_t most = fixed;

        if (strcmp(cw_frame_name((uint8_t)type), "?") == 0)
            continue;
        if (type == CW_FRAME_SEND || type == CW_FRAME_SEND_DATA || type == CW_FRAME_MESSAGE ||
            type == CW_FRAME_ARRIVAL || type == CW_FRAME_FORWARD || type == CW_FRAME_FORWARD_DATA ||
            type == CW_FRAME_COPY_PART)
            most += CW_FRAME_DATA_MAX;
        if (type == CW_FRAME_READINGS)
            most += CW_READINGS_MAX;
        if (type == CW_FRAME_DECIDED)
            most += CW_DECIDED_MAX;
        if (type == CW_FRAME_LINK)
            most += CW_LINK_ADDRESS_MAX;
        if (type == CW_FRAME_REFUSED || type == CW_FRAME_NOTICE)
            most += CW_TEXT_MAX;
        for (uint32_t length = 0; length < 600; length++) {
            struct cw_session s = {0};

            CU_ASSERT_EQUAL(accept_header(&s, length, type, 1, 0) == CW_OK,
                            length >= fixed && length <= most);
            CU_ASSERT_EQUAL(s.in_seq, length >= fixed && length <= most);
        }
        CU_ASSERT_EQUAL(accept_header(&(struct cw_session){0}, most, type, 1, 0), CW_OK);
        CU_ASSERT_EQUAL(accept_header(&(struct cw_session){0}, most + 1, type, 1, 0), CW_EPROTO);
        CU_ASSERT_EQUAL(accept_header(&(struct cw_session){0}, UINT32_MAX, type, 1, 0), CW_EPROTO);
    }
}

TEST(types)
{
    for (uint32_t type = 0; type < 1024; type++) {
        bool known = type < 256 && strcmp(cw_frame_name((uint8_t)type), "?") != 0;
        struct cw_session s = {0};

        CU_ASSERT_EQUAL(accept_header(&s, cw_frame_fixed((uint8_t)type), type, 1, 0),
                        known ? CW_OK : CW_EPROTO);
    }
    CU_ASSERT_EQUAL(accept_header(&(struct cw_session){0}, 0, 0x01000000 | CW_FRAME_ACK, 1, 0),
                    CW_EPROTO);
    CU_ASSERT_STRING_EQUAL(err.text, "frame of unknown type 16777221");
}

TEST(numbers)
{
    static const uint32_t bad[] = {0, 1, 5, 7, UINT32_MAX};
    struct cw_session s = {.in_seq = 5};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CU_ASSERT_EQUAL(accept_header(&s, 0, CW_FRAME_HINT, bad[i], 0), CW_EPROTO);
        CU_ASSERT_EQUAL(s.in_seq, 5);
    }
    CU_ASSERT_EQUAL(accept_header(&s, 0, CW_FRAME_HINT, 6, 0), CW_OK);
    s.in_seq = UINT32_MAX;
    CU_ASSERT_EQUAL(accept_header(&s, 0, CW_FRAME_HINT, 1, 0), CW_EPROTO);
    CU_ASSERT_EQUAL(accept_header(&s, 0, CW_FRAME_HINT, 0, 0), CW_OK);
    CU_ASSERT_EQUAL(s.in_seq, 0);
}

/* From the last one that was told to the last one that was sent, also across 2^32. */
TEST(acknowledgements)
{
    for (uint32_t base = UINT32_MAX - 20; base != 20; base++) {
        for (int32_t ack = -5; ack <= 15; ack++) {
            struct cw_session s = {.out_seq = base + 10, .out_acked = base};
            bool good = ack >= 0 && ack <= 10;

            CU_ASSERT_EQUAL(accept_header(&s, 0, CW_FRAME_HINT, 1, base + (uint32_t)ack),
                            good ? CW_OK : CW_EPROTO);
            CU_ASSERT_EQUAL(s.out_acked, good ? base + (uint32_t)ack : base);
        }
    }
}

TEST(headers_that_are_sent)
{
    struct cw_session us = {.in_seq = 7};
    struct cw_session them = {.out_seq = 9};
    uint8_t bytes[CW_FRAME_HEADER];
    struct cw_header header;

    cw_frame_begin(&us, bytes, CW_FRAME_SEND, CW_SEND_SIZE + 9);
    CU_ASSERT_EQUAL(us.out_seq, 1);
    CU_ASSERT_EQUAL(us.in_acked, 7);
    CU_ASSERT_EQUAL(cw_frame_accept(&them, bytes, &header, &err), CW_OK);
    CU_ASSERT_EQUAL(header.length, CW_SEND_SIZE + 9);
    CU_ASSERT_EQUAL(header.type, CW_FRAME_SEND);
    CU_ASSERT_EQUAL(header.seq, 1);
    CU_ASSERT_EQUAL(header.ack, 7);
    CU_ASSERT_EQUAL(them.out_acked, 7);
}

TEST(an_ack_is_owed)
{
    struct cw_session s = {.in_seq = UINT32_MAX, .in_acked = UINT32_MAX};

    s.in_seq += CW_ACK_EVERY - 1;
    CU_ASSERT_FALSE(cw_session_owes_ack(&s, true));
    s.in_seq++;
    CU_ASSERT_TRUE(cw_session_owes_ack(&s, true));
    CU_ASSERT_TRUE(cw_session_owes_ack(&s, false));
}

/* Only of a socket: what goes through rings is not kept by its sender. */
TEST(an_ack_is_owed_for_bytes)
{
    struct cw_session s = {.received = CW_ACK_BYTES + 6, .received_told = 7};
    uint8_t bytes[CW_ACK_SIZE];

    CU_ASSERT_FALSE(cw_session_owes_ack(&s, true));
    s.received++;
    CU_ASSERT_TRUE(cw_session_owes_ack(&s, true));
    CU_ASSERT_FALSE(cw_session_owes_ack(&s, false));
    cw_ack_put(bytes, &s);
    CU_ASSERT_FALSE(cw_session_owes_ack(&s, true));
    CU_ASSERT_EQUAL(cw_ack_get(bytes), CW_ACK_BYTES + 7);
}

TEST(cuts)
{
    static const uint32_t all[] = {0, 7, CW_CUT_DISPATCHER, CW_CUT_LINKS};
    uint8_t bytes[CW_WORD_SIZE];

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        cw_word_put(bytes, all[i]);
        CU_ASSERT_EQUAL(cw_word_get(bytes), all[i]);
    }
    CU_ASSERT_TRUE(CW_CUT_DISPATCHER >= CW_RANKS_MAX && CW_CUT_LINKS >= CW_RANKS_MAX);
}

/* --- the reader and the writer ---------------------------------------------------------------- */
TEST(reader_past_the_end)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7};
    struct cw_reader r = cw_reader(bytes, sizeof(bytes));
    uint8_t copy[8];

    CU_ASSERT_EQUAL(cw_get_u32(&r), 0x04030201);
    CU_ASSERT_FALSE(cw_reader_end(&r));
    CU_ASSERT_EQUAL(cw_get_u16(&r), 0x0605);
    CU_ASSERT_EQUAL(cw_get_u16(&r), 0);
    CU_ASSERT_TRUE(r.bad);
    CU_ASSERT_EQUAL(cw_get_u8(&r), 7);
    CU_ASSERT_FALSE(cw_reader_end(&r));
    memset(copy, 0xff, sizeof(copy));
    cw_get_copy(&r, copy, sizeof(copy));
    for (size_t i = 0; i < sizeof(copy); i++)
        CU_ASSERT_EQUAL(copy[i], 0);
    r = cw_reader(bytes, 7);
    CU_ASSERT_EQUAL(cw_get_u64(&r), 0);
    CU_ASSERT_TRUE(r.bad);
    r = cw_reader(NULL, 0);
    CU_ASSERT_TRUE(cw_reader_end(&r));
    CU_ASSERT_EQUAL(cw_get_u8(&r), 0);
    CU_ASSERT_FALSE(cw_reader_end(&r));
}

TEST(writer_past_the_end)
{
    uint8_t bytes[8];
    struct cw_writer w = cw_writer(bytes, 6);

    memset(bytes, 0xff, sizeof(bytes));
    cw_put_u32(&w, 0x04030201);
    cw_put_u32(&w, 0);
    CU_ASSERT_TRUE(w.bad);
    CU_ASSERT_EQUAL(w.used, 4);
    CU_ASSERT_EQUAL(bytes[4], 0xff);
    cw_put_u16(&w, 0x0605);
    CU_ASSERT_EQUAL(w.used, 6);
    CU_ASSERT_EQUAL(memcmp(bytes, "\1\2\3\4\5\6\xff\xff", 8), 0);
    cw_put_bytes(&w, NULL, 0);
    CU_ASSERT_EQUAL(w.used, 6);
}
