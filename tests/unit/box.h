/* A rank's mailbox, and all about it: what others send through channel memory, and what the rank
 * asks for. Each file that includes it has its own; the mailbox's code is in test_mailbox.c. */
#ifndef UNIT_BOX_H
#define UNIT_BOX_H

#include "rdevice/arrivals.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

/* Frees what the mailboxes, and what belongs to them, have not. */
void mailbox_arena_clear(void);

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

static inline void start(void)
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
    mailbox_open_far(&box);
    box.news_count = 0;
    for (uint32_t i = 0; i < ROOM; i++)
        payload[i] = (uint8_t)(i * 7 + i / 251);
    seed = 1;
}

static inline void finish(void)
{
    mailbox_arena_clear();
    free(channel.memory);
    channel.memory = NULL;
}

/* --- what others send ----------------------------------------------------------------------------
 */

static inline void put(uint32_t from, struct cw_piece piece, const void *bytes, uint32_t size)
{
    CU_ASSERT_EQUAL_FATAL(cw_stream_room(&writers[from], size), (int32_t)size);
    piece.size = size;
    cw_stream_put(&writers[from], &piece, &(struct iovec){(void *)bytes, size}, 0);
}

/* What has come from this rank; NULL, or what is wrong. */
static inline const char *take(uint32_t from)
{
    struct cw_piece piece;
    const char *wrong = NULL;

    while (!wrong && cw_stream_next(&readers[from], &piece)) {
        wrong = mailbox_piece(&box, from, &piece, &readers[from]);
        cw_stream_take(&readers[from], &piece);
    }
    return wrong;
}

static inline void put_first(uint32_t from, uint32_t type, uint64_t tag, uint32_t total,
                             uint32_t size)
{
    put(from, (struct cw_piece){.type = type, .tag = tag, .total = total, .req = 77}, payload,
        size);
    CU_ASSERT_PTR_NULL(take(from));
}

static inline void put_more(uint32_t from, uint32_t done, uint32_t size)
{
    put(from, (struct cw_piece){.type = CW_PIECE_MORE}, payload + done, size);
    CU_ASSERT_PTR_NULL(take(from));
}

static inline void send_as(uint32_t from, uint32_t type, uint64_t tag, uint32_t total)
{
    uint32_t size = total < PIECE ? total : PIECE;

    put_first(from, type, tag, total, size);
    for (uint32_t done = size; done < total; done += size) {
        size = total - done < PIECE ? total - done : PIECE;
        put_more(from, done, size);
    }
}

static inline void send(uint32_t from, uint64_t tag, uint32_t total)
{
    send_as(from, CW_PIECE_TAG, tag, total);
}

/* --- what the rank asks for ----------------------------------------------------------------------
 */

static inline struct request *new_receive(uint64_t tag, uint64_t mask, size_t capacity)
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

static inline struct cw_recv recv_of(const struct request *request)
{
    return (struct cw_recv){.req = request->id,
                            .tag = request->want_tag,
                            .mask = request->want_mask,
                            .capacity = request->capacity};
}

static inline struct request *receive(uint64_t tag, uint64_t mask, size_t capacity)
{
    struct request *request = new_receive(tag, mask, capacity);
    struct cw_recv recv = recv_of(request);

    mailbox_recv(&box, &recv);
    return request;
}

static inline struct request *receive_taken_out(uint32_t msg, size_t capacity)
{
    struct request *request = new_receive(0, 0, capacity);
    struct cw_mrecv mrecv = {.req = request->id, .msg = msg, .capacity = capacity};

    mailbox_mrecv(&box, &mrecv);
    return request;
}

static inline void cancel(const struct request *request)
{
    struct cw_recv recv = recv_of(request);

    mailbox_cancel(&box, &recv);
}

/* It is the next event, with the first bytes of the payload and none behind them. */
static inline void came(struct request *request, uint64_t tag, size_t total)
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

static inline void nothing_came(void)
{
    CU_ASSERT_PTR_NULL(inbox.happened);
}

#endif
