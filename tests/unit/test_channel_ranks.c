/* Ranks that are threads, each with a mailbox and what it knows of channel memory as a process has
 * them: they send to each other at once, of any size and kind, before and after the receives, and
 * sleep. The thread sanitizer sees what is shared. And a rank that reads again what it decided, in
 * which others have written. */
#define arena_alloc malloc
#define fatal_exit ranks_fatal_exit
/* dispatcher/wire/channel.c has others */
#define channel_open ranks_channel_open
#define channel_read ranks_channel_read
#define channel_put ranks_channel_put
#include "rdevice/arena.h"
#include "rdevice/image/system.h"

static void *ranks_memory;
static void *map_here(uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset);
#define system_map map_here
#undef ARENA_CHANNEL
#define ARENA_CHANNEL ranks_memory
#include "common/decided.h"
#include "rdevice/channel.c"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define RANKS 4u
#define MESSAGES 60u   /* from each rank to each other one */
#define LARGEST 80000u /* bytes */
#define LOG (64u << 20)
#define SLEEP_NS 20000000ull

static void finish(void);
SUITE_AFTER_EACH("ranks of channel memory", finish);

struct rank {
    struct cw_setup setup;
    struct channel channel;
    struct inbox inbox;
    struct request_table requests;
    pthread_t thread;
    uint64_t seed;
    uint64_t polls;
    uint32_t open;          /* receives and synchronous sends that have not completed */
    uint32_t active;        /* of these, that came */
    uint32_t posted[RANKS]; /* of the next message from each */
    uint32_t sent[RANKS];
    bool wrong;
};

static struct rank ranks[RANKS];
static int fd = -1;
static size_t bytes;
static jmp_buf ended; /* of tests with one thread */
static char reason[256];
static bool may_end;

/* Mailboxes have memory of their own (test_mailbox.c). */
void mailbox_arena_free(void *at, size_t size);
void mailbox_arena_clear(void);

void ranks_fatal_exit(uint32_t kind, const char *fmt, ...)
{
    va_list ap;

    (void)kind;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof(reason), fmt, ap);
    va_end(ap);
    if (!may_end) {
        fprintf(stderr, "%s\n", reason);
        abort();
    }
    longjmp(ended, 1);
}

static void *map_here(uint64_t at, uint64_t size, int prot, int flags, int from, uint64_t offset)
{
    (void)prot;
    (void)flags;
    (void)offset;
    CU_ASSERT_TRUE_FATAL(at == (uintptr_t)ranks_memory && size == bytes && from == fd);
    return ranks_memory;
}

/* --- ranks --------------------------------------------------------------------------------------
 */

static void start(uint64_t log)
{
    char number[16];

    bytes = cw_channel_bytes(RANKS, log);
    fd = memfd_create("ranks", 0);
    CU_ASSERT_TRUE_FATAL(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    ranks_memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(ranks_memory, MAP_FAILED);
    snprintf(number, sizeof(number), "%d,-1", fd);
    setenv(CW_CHANNEL_ENV, number, 1);
    inputs_written.used = 0;
}

static void finish(void)
{
    mailbox_arena_clear();
    unsetenv(CW_CHANNEL_ENV);
    munmap(ranks_memory, bytes);
    close(fd);
}

/* A process of it. */
static void begin_rank(uint32_t number)
{
    struct rank *r = &ranks[number];

    *r = (struct rank){.setup = {.flags = CW_SETUP_CHANNEL,
                                 .ranks = RANKS,
                                 .channel_ranks = RANKS,
                                 .mailbox_bytes = 4 * LARGEST,
                                 .process = {.rank = number, .incarnation = 1}},
                       .seed = number + 1};
    for (uint32_t i = 0; i < RANKS; i++)
        r->setup.channel_rank[i] = (uint16_t)i;
    inbox_begin(&r->inbox);
    request_setup(&r->requests, 0, NULL);
    channel_open(&r->channel, &r->setup, &r->inbox, &r->requests);
}

static void end_rank(struct rank *r)
{
    struct channel *c = &r->channel;

    free(c->places);
    free(c->found);
    free(c->made);
    free(c->in);
    free(c->out);
    free(c->marked);
    free(c->holds);
}

static uint64_t below(struct rank *r, uint64_t bound)
{
    return codec_random_below(&r->seed, bound);
}

/* --- messages -----------------------------------------------------------------------------------
 */

static uint32_t kind_of(uint32_t number)
{
    static const uint32_t kinds[] = {CW_PIECE_TAG, CW_PIECE_SYNC, CW_PIECE_TAG, CW_PIECE_AM};

    return kinds[number % 4];
}

static uint64_t tag_of(uint32_t from, uint32_t number)
{
    return (uint64_t)from << 32 | number;
}

static uint32_t size_of(uint64_t tag)
{
    uint64_t random = tag + 1;
    uint64_t bound = codec_random_below(&random, 4) ? 300 : LARGEST;

    return (uint32_t)codec_random_below(&random, bound);
}

static uint8_t *contents_with(uint64_t tag)
{
    uint8_t *made = malloc(LARGEST);

    for (uint32_t i = 0; i < size_of(tag); i++)
        made[i] = (uint8_t)(tag + tag / 251 + i * 7);
    return made;
}

static void check_contents(struct rank *r, uint64_t tag, const uint8_t *is, size_t size)
{
    uint8_t *was = contents_with(tag);

    r->wrong |= size != size_of(tag) || memcmp(is, was, size) != 0;
    free(was);
}

static void take_events(struct rank *r)
{
    struct event *event = inbox_take(&r->inbox);

    for (struct event *next; event; event = next) {
        struct request *request = (struct request *)event;
        struct am *am = (struct am *)event;

        next = event->next;
        if (event->active) {
            check_contents(r, am->id, am->bytes, am->total);
            r->active++;
            mailbox_arena_free(am, sizeof(*am) + am->total);
            continue;
        }
        if (request->receiving) {
            check_contents(r, request->tag, request->target, request->total);
            free(request->target);
        }
        r->open--;
        request_free(&r->requests, request);
    }
}

/* The next receive of messages from one of the others, if one is left. */
static bool post_one(struct rank *r)
{
    uint32_t from = (uint32_t)below(r, RANKS);
    struct request *request;
    uint64_t tag;

    while (r->posted[from] < MESSAGES && kind_of(r->posted[from]) == CW_PIECE_AM)
        r->posted[from]++;
    if (from == r->setup.process.rank || r->posted[from] == MESSAGES)
        return false;
    tag = tag_of(from, r->posted[from]++);
    request = request_new(&r->requests, true);
    request->capacity = LARGEST;
    request->target = malloc(LARGEST);
    r->open++;
    mailbox_recv(
        &r->channel.mailbox,
        &(struct cw_recv){.req = request->id, .tag = tag, .mask = UINT64_MAX, .capacity = LARGEST});
    return true;
}

/* Returns whether anything came. */
static bool poll_once(struct rank *r)
{
    bool came = channel_read(&r->channel, ++r->polls);

    take_events(r);
    return came;
}

static void put_all(struct rank *r, uint32_t to, struct cw_piece *piece)
{
    uint8_t *contents = contents_with(piece->tag);
    struct iovec from = {contents, piece->total};
    uint32_t done = 0;
    int32_t put;

    while (done < piece->total || piece->type != CW_PIECE_MORE) {
        put = channel_put(&r->channel, to, piece, &from, done, piece->total - done);
        if (put >= 0) {
            done += (uint32_t)put;
            piece->type = CW_PIECE_MORE;
        } else if (!poll_once(r) && !post_one(r)) {
            channel_sleep(&r->channel, SLEEP_NS);
        }
    }
    r->channel.waits_for = CHANNEL_NOBODY;
    free(contents);
}

static bool send_one(struct rank *r)
{
    uint32_t to = (uint32_t)below(r, RANKS);
    uint64_t tag = tag_of(r->setup.process.rank, r->sent[to]);
    struct cw_piece piece = {.type = kind_of(r->sent[to]), .tag = tag, .total = size_of(tag)};

    if (to == r->setup.process.rank || r->sent[to] == MESSAGES)
        return false;
    r->sent[to]++;
    if (piece.type == CW_PIECE_SYNC) {
        piece.req = request_new(&r->requests, false)->id;
        r->open++;
    }
    channel_note_send(&r->channel, &(struct cw_send){.dst = to, .tag = tag});
    channel_begin(&r->channel, channel_count_sent(&r->channel, to, piece.total), piece.total);
    put_all(r, to, &piece);
    return true;
}

static bool is_done(const struct rank *r)
{
    uint32_t sent = 0, posted = 0;

    for (uint32_t i = 0; i < RANKS; i++) {
        sent += r->sent[i];
        posted += r->posted[i];
    }
    return sent == MESSAGES * (RANKS - 1) && posted == sent && r->open == 0 &&
           r->active == sent / 4 && r->channel.mailbox.news_count == 0;
}

static void *run_rank(void *arg)
{
    struct rank *r = arg;

    while (!is_done(r)) {
        bool acts = below(r, 2) ? post_one(r) : send_one(r);

        if (!acts && !poll_once(r))
            channel_sleep(&r->channel, SLEEP_NS);
    }
    return NULL;
}

/* --- what a rank decided ------------------------------------------------------------------------
 */

static struct cw_stream read_decisions[RANKS];

static void begin_decisions(void *ctx, uint32_t rank)
{
    (void)ctx;
    read_decisions[rank] = cw_channel_decisions(&ranks[0].channel.memory, rank);
}

static bool next_decision(void *ctx, uint32_t rank, struct cw_piece *piece)
{
    bool there = cw_stream_next(&read_decisions[rank], piece);

    (void)ctx;
    if (there)
        cw_stream_take(&read_decisions[rank], piece);
    return there;
}

/* What followed from what: all of it is consistent, and where one decision of a rank is not there,
 * those of others that came of its last message are not either. */
static void check_decisions_follow(void)
{
    const struct cw_decided_source source = {begin_decisions, next_decision, NULL};
    uint64_t counts[RANKS];
    uint64_t cut[RANKS];

    for (uint32_t i = 0; i < RANKS; i++)
        counts[i] = cut[i] = ranks[i].channel.decided;
    cw_decided_cut(&source, RANKS, cut);
    CU_ASSERT_EQUAL(memcmp(cut, counts, sizeof(cut)), 0);
    for (uint32_t i = 0; i < RANKS && counts[0] > 0; i++) {
        uint64_t all = 0;

        memcpy(cut, counts, sizeof(cut));
        cut[i] /= 2;
        cw_decided_cut(&source, RANKS, cut);
        for (uint32_t j = 0; j < RANKS; j++)
            all += j != i && cut[j] < counts[j];
        CU_ASSERT_EQUAL(all, RANKS - 1);
    }
}

static void run_ranks(uint64_t log)
{
    start(log);
    for (uint32_t i = 0; i < RANKS; i++)
        begin_rank(i);
    for (uint32_t i = 0; i < RANKS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        CU_ASSERT_FALSE(ranks[i].wrong);
        CU_ASSERT_TRUE(ranks[i].channel.keeps == (log > 0));
    }
    check_decisions_follow();
    for (uint32_t i = 0; i < RANKS; i++)
        end_rank(&ranks[i]);
}

TEST(threads_exchange_messages)
{
    run_ranks(0);
}

TEST(threads_exchange_messages_with_a_log)
{
    run_ranks(LOG);
}

/* --- decisions that are read again --------------------------------------------------------------
 */

static struct cw_piece *noted; /* in the memory */

/* The next incarnation is about to read that the first one was to send something. */
static void start_reading_again(void)
{
    struct channel *c = &ranks[0].channel;
    struct cw_piece piece;

    start(LOG);
    begin_rank(0);
    channel_live(c);
    channel_note_send(c, &(struct cw_send){.dst = 1, .kind = CW_SEND_SYNC, .tag = 7, .clock = 9});
    end_rank(&ranks[0]);
    begin_rank(0);
    CU_ASSERT_TRUE_FATAL(cw_stream_next(&c->decisions, &piece));
    noted = (struct cw_piece *)(c->decisions.block + c->decisions.offset);
}

/* False: the process ended, since another one has written there. */
static bool reads_again(void)
{
    struct channel *c = &ranks[0].channel;
    struct cw_send send = {.kind = 0};
    struct cw_piece piece;
    volatile bool lives = false;

    may_end = true;
    reason[0] = '\0';
    if (setjmp(ended) == 0) {
        if (channel_next(c, &piece))
            send = channel_noted_send(c, &piece);
        channel_live(c);
        lives = true;
    }
    may_end = false;
    end_rank(&ranks[0]);
    CU_ASSERT_TRUE(
        !lives || (send.dst == 1 && send.kind == CW_SEND_SYNC && send.tag == 7 && send.clock == 9));
    CU_ASSERT_TRUE(lives || strstr(reason, "another rank of its host wrote there"));
    return lives;
}

TEST(decisions_are_read_again)
{
    start_reading_again();
    CU_ASSERT_TRUE(reads_again());
}

/* A message says how much its sender had decided, and who takes it notes that; one that repeats
 * says the same. */
TEST(decisions_that_follow_from_others)
{
    struct cw_piece message = {.type = CW_PIECE_TAG};
    struct cw_piece piece;

    start(LOG);
    begin_rank(0);
    begin_rank(1);
    for (int i = 0; i < 3; i++)
        channel_note_send(&ranks[0].channel, &(struct cw_send){.dst = 1, .kind = CW_SEND_TAG});
    CU_ASSERT_EQUAL(channel_put(&ranks[0].channel, 1, &message, NULL, 0, 0), 0);
    channel_read(&ranks[1].channel, 5);
    CU_ASSERT_EQUAL(ranks[1].channel.decided, 1);
    end_rank(&ranks[1]);
    begin_rank(1);
    CU_ASSERT_TRUE_FATAL(channel_next(&ranks[1].channel, &piece));
    CU_ASSERT_TRUE(piece.type == CW_PIECE_TOOK && piece.tag == 5 && piece.req == 0 &&
                   piece.more == 1 && piece.total == 3);
    channel_repeated(&ranks[1].channel, &piece);
    channel_live(&ranks[1].channel);
    CU_ASSERT_EQUAL(ranks[1].channel.decided, 1);
    end_rank(&ranks[0]);
    begin_rank(0);
    for (int i = 0; i < 3 && channel_next(&ranks[0].channel, &piece); i++)
        channel_repeated(&ranks[0].channel, &piece);
    channel_live(&ranks[0].channel);
    CU_ASSERT_EQUAL(ranks[0].channel.decided, 3);
    end_rank(&ranks[0]);
    end_rank(&ranks[1]);
}

TEST(decisions_that_cannot_be)
{
    start_reading_again();
    noted->type = CW_PIECE_TAG;
    CU_ASSERT_FALSE(reads_again());
    finish();
    start_reading_again();
    noted->size = 8;
    CU_ASSERT_FALSE(reads_again());
    finish();
    start_reading_again();
    noted->more = 77; /* its kind */
    CU_ASSERT_FALSE(reads_again());
    finish();
    start_reading_again();
    noted->size = UINT16_MAX;
    CU_ASSERT_FALSE(reads_again());
}

/* A log that cannot be read on is not taken for one that ends there. */
TEST(decisions_that_end_in_the_wrong_place)
{
    struct cw_piece *behind;

    start_reading_again();
    behind = (struct cw_piece *)((uint8_t *)noted + sizeof(*noted) + 2 * sizeof(uint64_t));
    behind->type = CW_PIECE_TYPES;
    behind->stamp = noted->stamp + sizeof(*noted) + 2 * sizeof(uint64_t);
    CU_ASSERT_FALSE(reads_again());
}
