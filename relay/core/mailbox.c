#include "relay/core/mailbox.h"
#include "relay/core/bounds.h"

#include <assert.h>
#include <string.h>

#define PROBED_MIN 16u

void mailbox_shared_init(struct mailbox_shared *shared, struct relay_pool *pool,
                         struct ledger *ledger, uint64_t log_memory, uint64_t log_disk)
{
    store_init(&shared->store, pool, ledger, log_memory, log_disk);
    shared->messages = (struct message_cache){.pool = pool};
}

void mailbox_shared_fini(struct mailbox_shared *shared)
{
    struct relay_pool *pool = shared->messages.pool;

    copies_pay_all(&shared->copies);
    store_fini(&shared->store);
    message_cache_fini(&shared->messages);
    while (shared->free_posted) {
        struct match_posted *posted = shared->free_posted;

        shared->free_posted = posted->next_free;
        relay_pool_free(pool, posted, sizeof(*posted));
    }
}

void mailbox_init(struct relay_mailbox *mailbox, struct mailbox_shared *shared,
                  struct relay_pool *pool, struct relay_job *job, uint32_t rank, bool log,
                  bool elsewhere)
{
    *mailbox = (struct relay_mailbox){
        .shared = shared, .pool = pool, .job = job, .rank = rank, .elsewhere = elsewhere};
    feed_init(&mailbox->feed, elsewhere);
    mailbox->early_tail = &mailbox->early;
    match_init(&mailbox->index, &relay_pool_memory, pool);
    log_init(&mailbox->log, pool, &shared->store, &shared->copies, log);
}

/* --- receives and messages that are kept ---------------------------------------------------------
 */

struct match_posted *mailbox_posted_new(struct relay_mailbox *mailbox)
{
    struct mailbox_shared *shared = mailbox->shared;
    struct match_posted *posted = shared->free_posted;

    if (!posted)
        return relay_pool_alloc(mailbox->pool, sizeof(*posted));
    shared->free_posted = posted->next_free;
    shared->free_posted_count--;
    relay_pool_move(shared->messages.pool, mailbox->pool, sizeof(*posted));
    return posted;
}

void mailbox_posted_free(struct relay_mailbox *mailbox, struct match_posted *posted)
{
    struct mailbox_shared *shared = mailbox->shared;

    if (shared->free_posted_count == POSTED_KEPT) {
        relay_pool_free(mailbox->pool, posted, sizeof(*posted));
        return;
    }
    relay_pool_move(mailbox->pool, shared->messages.pool, sizeof(*posted));
    posted->next_free = shared->free_posted;
    shared->free_posted = posted;
    shared->free_posted_count++;
}

void mailbox_message_free(struct relay_mailbox *mailbox, struct relay_message *message)
{
    message_free(&mailbox->shared->messages, mailbox->pool, message);
}

int mailbox_wait(struct relay_mailbox *mailbox, struct relay_message *message)
{
    if (match_wait(&mailbox->index, &message->waiting) < 0)
        return CW_ENOMEM;
    mailbox->stats.unexpected++;
    feed_hint(&mailbox->feed);
    return CW_OK;
}

void mailbox_queue_early(struct relay_mailbox *mailbox, struct relay_message *message)
{
    message->next_free = NULL;
    *mailbox->early_tail = message;
    mailbox->early_tail = &message->next_free;
}

static int probed_grow(struct relay_mailbox *mailbox)
{
    struct relay_pool *pool = mailbox->pool;
    uint32_t size = mailbox->probed_size ? mailbox->probed_size * 2 : PROBED_MIN;
    struct relay_message **probed;

    if (size > mailbox_out_max(mailbox))
        return CW_ELIMIT;
    probed = relay_pool_alloc(pool, size * sizeof(*probed));
    if (!probed)
        return CW_ENOMEM;
    memset(probed, 0, size * sizeof(*probed));
    if (mailbox->probed_size)
        memcpy(probed, mailbox->probed, mailbox->probed_size * sizeof(*probed));
    relay_pool_free(pool, mailbox->probed, mailbox->probed_size * sizeof(*probed));
    mailbox->probed = probed;
    mailbox->probed_size = size;
    return CW_OK;
}

int64_t mailbox_next_out(struct relay_mailbox *mailbox)
{
    uint32_t at = mailbox->probed_free_hint;
    int failed;

    while (at < mailbox->probed_size && mailbox->probed[at])
        at++;
    mailbox->probed_free_hint = at;
    if (at == mailbox->probed_size && (failed = probed_grow(mailbox)) < 0)
        return failed;
    return at;
}

struct relay_message *mailbox_taken_out(struct relay_mailbox *mailbox, uint32_t number)
{
    struct relay_message *message = mailbox->probed[number];

    mailbox->probed[number] = NULL;
    if (number < mailbox->probed_free_hint)
        mailbox->probed_free_hint = number;
    return message;
}

int mailbox_put_out(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t number)
{
    int failed = CW_OK;

    while (!failed && number >= mailbox->probed_size)
        failed = probed_grow(mailbox);
    if (!failed)
        mailbox->probed[number] = message;
    return failed;
}

/* The message is matched; parts of it are still to come. */
static void open_message(struct relay_mailbox *mailbox, struct relay_message *message)
{
    LIST_INSERT_HEAD(&mailbox->open, message, in_open);
}

static void close_message(struct relay_mailbox *mailbox, struct relay_message *message)
{
    LIST_REMOVE(message, in_open);
    mailbox_message_free(mailbox, message);
}

/* --- the log -------------------------------------------------------------------------------------
 */

void mailbox_refuse_unlogged(struct relay_mailbox *mailbox, const char *why)
{
    if (mailbox->feed.conn && mailbox->away > 0)
        conn_refuse(mailbox->feed.conn, CW_REFUSED_LIMIT,
                    "%u messages that wait for rank %u were in its log alone: %s", mailbox->away,
                    mailbox->rank, why);
    if (mailbox->feed.conn && !mailbox->feed.direct)
        conn_refuse(mailbox->feed.conn, CW_REFUSED_LIMIT, "rank %u cannot be started again: %s",
                    mailbox->rank, why);
}

void mailbox_log_failed(struct relay_mailbox *mailbox, const char *why)
{
    log_free(&mailbox->log);
    mailbox->asked = false;
    mailbox_refuse_unlogged(mailbox, why);
    mailbox->unlogged_why = why;
    mailbox->is_unlogged = true;
    LIST_INSERT_HEAD(&mailbox->shared->unlogged, mailbox, in_unlogged);
}

static void forget_unlogged(struct relay_mailbox *mailbox)
{
    if (mailbox->is_unlogged)
        LIST_REMOVE(mailbox, in_unlogged);
    mailbox->is_unlogged = false;
}

struct relay_mailbox *mailbox_next_unlogged(struct mailbox_shared *shared)
{
    struct relay_mailbox *mailbox = LIST_FIRST(&shared->unlogged);

    if (mailbox)
        forget_unlogged(mailbox);
    return mailbox;
}

/* --- incarnations --------------------------------------------------------------------------------
 */

bool mailbox_has_past(const struct relay_mailbox *mailbox)
{
    return mailbox->log.kept && (mailbox->acts > 0 || mailbox->log.determinant_count > 0 ||
                                 (mailbox->elsewhere && mailbox->incarnation > 0));
}

/* False: there is no memory. */
static bool offer_early(struct relay_mailbox *mailbox, struct relay_message *message)
{
    int64_t number = mailbox_next_out(mailbox);

    return number >= 0 && mailbox_offer(mailbox, message, (uint32_t)number) == CW_OK;
}

static void take_early(struct relay_mailbox *mailbox)
{
    while (mailbox->early) {
        struct relay_message *message = mailbox->early;

        if (!mailbox_offers(mailbox, message->kind, message->total)) {
            mailbox->early = message->next_free;
            mailbox_hands(mailbox, message->kind, message->total);
            mailbox_match(mailbox, message, mailbox_stream(mailbox, message->src), UINT64_MAX);
        } else if (offer_early(mailbox, message)) {
            mailbox->early = message->next_free;
        } else {
            conn_out_of_memory(mailbox->feed.conn, "offering a rank what came before it");
            return;
        }
    }
    mailbox->early_tail = &mailbox->early;
}

static void read_away(struct relay_mailbox *mailbox);

void mailbox_attach(struct relay_mailbox *mailbox, struct relay_conn *conn,
                    const struct log_point *from)
{
    feed_attach(&mailbox->feed, conn, !mailbox->log.kept);
    mailbox->feed.decides = mailbox->lost;
    if (from)
        feed_begin(&mailbox->feed, &from->from, from->at.event);
    take_early(mailbox);
    mailbox_pump(mailbox);
}

void mailbox_pump(struct relay_mailbox *mailbox)
{
    if (!feed_pump(&mailbox->feed, &mailbox->log, &mailbox->open))
        mailbox_log_failed(mailbox, MAILBOX_LOST);
    if (mailbox->feed.stuck)
        mailbox_stick(mailbox);
    if (mailbox->feed.direct)
        mailbox_let_trim(mailbox);
    if (mailbox->away > 0)
        read_away(mailbox);
}

void mailbox_stick(struct relay_mailbox *mailbox)
{
    if (mailbox->is_stuck)
        return;
    mailbox->is_stuck = true;
    LIST_INSERT_HEAD(&mailbox->shared->stuck, mailbox, in_stuck);
}

void mailbox_wake(struct mailbox_shared *shared)
{
    struct relay_mailbox *mailbox;

    while ((mailbox = LIST_FIRST(&shared->stuck))) {
        LIST_REMOVE(mailbox, in_stuck);
        LIST_INSERT_HEAD(&shared->woken, mailbox, in_stuck);
    }
}

static void forget_stuck(struct relay_mailbox *mailbox)
{
    if (mailbox->is_stuck)
        LIST_REMOVE(mailbox, in_stuck);
    mailbox->is_stuck = false;
}

struct relay_mailbox *mailbox_next_woken(struct mailbox_shared *shared)
{
    struct relay_mailbox *mailbox = LIST_FIRST(&shared->woken);

    if (mailbox)
        forget_stuck(mailbox);
    return mailbox;
}

void mailbox_trim_later(struct relay_mailbox *mailbox, const struct cw_point *to)
{
    mailbox->trims = true;
    mailbox->trim = *to;
}

void mailbox_settle_later(struct relay_mailbox *mailbox)
{
    if (mailbox->is_due)
        return;
    mailbox->is_due = true;
    LIST_INSERT_HEAD(&mailbox->shared->due, mailbox, in_due);
}

void mailbox_let_trim(struct relay_mailbox *mailbox)
{
    if (mailbox->trims)
        mailbox_settle_later(mailbox);
}

void mailbox_set_asked(struct relay_mailbox *mailbox, bool asked)
{
    mailbox->asked = asked;
    mailbox->shared->wait_end_ns = 0;
    mailbox->shared->waited = false;
}

static void forget_due(struct relay_mailbox *mailbox)
{
    if (mailbox->is_due)
        LIST_REMOVE(mailbox, in_due);
    mailbox->is_due = false;
}

struct relay_mailbox *mailbox_next_due(struct mailbox_shared *shared)
{
    struct relay_mailbox *mailbox = LIST_FIRST(&shared->due);

    if (mailbox)
        forget_due(mailbox);
    return mailbox;
}

/* --- events --------------------------------------------------------------------------------------
 */

void mailbox_done(struct relay_mailbox *mailbox, uint8_t type, uint32_t req)
{
    mailbox->event++;
    if (mailbox->feed.direct)
        feed_done(&mailbox->feed, type, req, mailbox->event);
    if (mailbox->log.kept)
        mailbox_logged(
            mailbox, log_done(&mailbox->log, type == CW_FRAME_SENT ? LOG_SENT : LOG_CANCELED, req));
}

void mailbox_pass(struct relay_mailbox *mailbox, struct cw_message *header, const uint8_t *at,
                  uint32_t size, struct relay_block *block)
{
    header->flags |= CW_MESSAGE_FIRST | CW_MESSAGE_LAST;
    header->event = ++mailbox->event;
    mailbox->stats.received++;
    mailbox->stats.received_bytes += size;
    /* in this order: where memory is short, a log is easier to give up than a job */
    if (mailbox->feed.direct)
        feed_message(&mailbox->feed, header, at, size, block);
    if (mailbox->log.kept)
        mailbox_logged(mailbox, log_message(&mailbox->log, header, at, size, block));
}

int mailbox_offer(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t number)
{
    struct cw_message header = {.req = message->src,
                                .tag = message->waiting.tag,
                                .total = message->total,
                                .msg = number,
                                .flags = CW_MESSAGE_FIRST | CW_MESSAGE_LAST | CW_MESSAGE_UNMATCHED |
                                         CW_MESSAGE_OFFERED};
    const struct log_record offered = {.type = LOG_OFFERED,
                                       .src = message->src,
                                       .kind = message->kind,
                                       .req = message->sender_req,
                                       .tag = message->waiting.tag,
                                       .total = message->total,
                                       .msg = number,
                                       .message = message->record};

    if (mailbox_put_out(mailbox, message, number) < 0)
        return CW_ENOMEM;
    message->offered = true;
    header.event = ++mailbox->event;
    if (mailbox->feed.direct)
        feed_message(&mailbox->feed, &header, NULL, 0, NULL);
    if (mailbox->log.kept)
        mailbox_logged(mailbox, log_offered(&mailbox->log, &offered, &message->record));
    return CW_OK;
}

/* All that the receive has room for is here: an event. */
static void message_happened(struct relay_mailbox *mailbox, const struct relay_message *message,
                             struct cw_message *header)
{
    header->event = ++mailbox->event;
    mailbox->stats.received++;
    if (mailbox->log.kept)
        mailbox_logged(mailbox, log_matched(&mailbox->log, header, message->record, message->floor,
                                            message_wanted(message)));
}

/* The next `size` bytes of what the receive has room for go out under this header. */
static struct cw_message deliver_next(struct relay_mailbox *mailbox, struct relay_message *message,
                                      uint64_t size)
{
    bool last = size == message_wanted(message) - message->delivered;
    struct cw_message header = message_header(message, last);

    message->begun = true;
    message->delivered += size;
    mailbox->stats.received_bytes += size;
    if (last)
        message_happened(mailbox, message, &header);
    return header;
}

/* `size` bytes of a matched message, in order; `at`: as mailbox_arrives. */
static void deliver(struct relay_mailbox *mailbox, struct relay_message *message, const uint8_t *at,
                    uint64_t size, struct relay_block *block)
{
    uint64_t left = message_wanted(message) - message->delivered;
    struct cw_message header;

    if (message_delivered(message))
        return;
    if (size > left)
        size = left;
    header = deliver_next(mailbox, message, size);
    if (mailbox->feed.direct)
        feed_message(&mailbox->feed, &header, at, (uint32_t)size, block);
}

void mailbox_arrives(struct relay_mailbox *mailbox, struct relay_message *message,
                     const uint8_t *at, uint32_t size, struct relay_block *block)
{
    message->arrived += size;
    assert(message->arrived <= message->total);
    if (message->matched)
        deliver(mailbox, message, at, size, block);
}

struct relay_conn *mailbox_cut_arrives(struct relay_mailbox *mailbox, struct relay_message *message,
                                       uint32_t size)
{
    struct cw_message header;

    message->arrived += size;
    header = deliver_next(mailbox, message, size);
    return feed_message_of(&mailbox->feed, &header, size);
}

/* --- messages that wait in the log ---------------------------------------------------------------
 */

static void put_away(struct relay_mailbox *mailbox, struct relay_message *message)
{
    const struct relay_log *log = &mailbox->log;

    /* who takes up a log that was left wants what waits in memory */
    if (message->slice_count == 0 || !log->kept || mailbox->entry.ledger ||
        !store_is_crowded(&mailbox->shared->store))
        return;
    message_put_away(message);
    mailbox->away++;
}

bool mailbox_came(struct relay_mailbox *mailbox, struct relay_message *message)
{
    if (message->arrived < message->total)
        return false;
    if (message->matched)
        close_message(mailbox, message);
    else
        put_away(mailbox, message);
    return true;
}

void mailbox_abandon(struct relay_mailbox *mailbox, struct relay_message *message)
{
    if (message->matched)
        close_message(mailbox, message);
    else
        message->orphan = true;
}

/* The log may be given up meanwhile. */
static void deliver_read(struct relay_mailbox *mailbox, struct relay_message *message,
                         const struct log_piece *piece)
{
    uint8_t few[LOG_INLINE_MAX];

    if (piece->block) {
        piece->block->refs++;
        deliver(mailbox, message, piece->at, piece->size, piece->block);
        relay_block_release(piece->block);
    } else {
        assert(piece->size <= sizeof(few));
        memcpy(few, piece->at, piece->size);
        deliver(mailbox, message, few, piece->size, NULL);
    }
}

/* Returns whether all of it was delivered. */
static bool read_one(struct relay_mailbox *mailbox, struct relay_message *message)
{
    const struct feed *feed = &mailbox->feed;
    enum chain_found found = CHAIN_HERE;
    struct log_piece piece;

    while (found == CHAIN_HERE && message->reading.left > 0 && mailbox->log.kept) {
        if (feed->direct && feed->conn->out.bytes >= RELAY_REPLAY_AHEAD)
            return false;
        found = log_read_piece(&mailbox->log, &message->reading, &piece);
        if (found == CHAIN_HERE)
            deliver_read(mailbox, message, &piece);
    }
    if (found == CHAIN_AWAY)
        mailbox_stick(mailbox);
    else if (found != CHAIN_HERE)
        mailbox_log_failed(mailbox, MAILBOX_LOST);
    return message->reading.left == 0;
}

/* As far as their bytes can be had, and are wanted. */
static void read_away(struct relay_mailbox *mailbox)
{
    struct relay_message *next;

    for (struct relay_message *m = LIST_FIRST(&mailbox->open); m; m = next) {
        next = LIST_NEXT(m, in_open);
        if (!m->away)
            continue;
        if (message_wanted(m) == 0)
            deliver(mailbox, m, NULL, 0, NULL);
        if (!read_one(mailbox, m))
            return;
        mailbox->away--;
        close_message(mailbox, m);
    }
}

struct delivery {
    struct relay_mailbox *mailbox;
    struct relay_message *message;
};

static void deliver_piece(void *ctx, const uint8_t *at, uint32_t size, struct relay_block *block)
{
    const struct delivery *delivery = ctx;

    deliver(delivery->mailbox, delivery->message, at, size, block);
}

/* What is here of it, of which a rank that is not handed it at once gets nothing yet. */
static void deliver_held(struct relay_mailbox *mailbox, struct relay_message *message)
{
    struct delivery delivery = {mailbox, message};

    if (mailbox->feed.direct)
        message_pieces(message, &mailbox->log, deliver_piece, &delivery);
    else if (message->arrived > 0)
        deliver(mailbox, message, NULL, message->arrived, NULL);
    if (message_wanted(message) == 0)
        deliver(mailbox, message, NULL, 0, NULL);
}

static void give_receive(const struct relay_mailbox *mailbox, struct relay_message *message,
                         uint32_t req, uint64_t capacity)
{
    assert(!message->matched);
    message->matched = true;
    message->unmatched = mailbox->elsewhere && !message->offered;
    message->req = req;
    message->capacity = capacity;
}

void mailbox_bind(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t req,
                  uint64_t capacity)
{
    give_receive(mailbox, message, req, capacity);
    open_message(mailbox, message);
}

void mailbox_match(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t req,
                   uint64_t capacity)
{
    give_receive(mailbox, message, req, capacity);
    if (message->away) {
        message_read(message);
        open_message(mailbox, message);
        read_away(mailbox);
        return;
    }
    deliver_held(mailbox, message);
    if (message->arrived == message->total || message->orphan) {
        mailbox_message_free(mailbox, message);
        return;
    }
    open_message(mailbox, message);
    if (!mailbox->log.kept)
        message_forget(message);
}

/* --- its end -------------------------------------------------------------------------------------
 */

static void drop(struct relay_mailbox *mailbox, struct relay_message *message)
{
    /* a message whose sender still speaks was abandoned before: see job_free */
    assert(message->arrived == message->total || message->orphan);
    mailbox_message_free(mailbox, message);
}

static void release_posted(void *mailbox, struct match_posted *posted)
{
    mailbox_posted_free(mailbox, posted);
}

void mailbox_fini(struct relay_mailbox *mailbox)
{
    struct match_waiting *waiting;

    forget_due(mailbox);
    forget_unlogged(mailbox);
    forget_stuck(mailbox);
    ledger_leave(&mailbox->entry);
    log_free(&mailbox->log);
    while ((waiting = TAILQ_FIRST(&mailbox->index.all))) {
        match_unwait(&mailbox->index, waiting);
        drop(mailbox, (struct relay_message *)waiting);
    }
    while (mailbox->early) {
        struct relay_message *message = mailbox->early;

        mailbox->early = message->next_free;
        drop(mailbox, message);
    }
    while (!LIST_EMPTY(&mailbox->open)) /* they were being read; all others have been closed */
        close_message(mailbox, LIST_FIRST(&mailbox->open));
    for (uint32_t i = 0; i < mailbox->probed_size; i++)
        if (mailbox->probed[i])
            drop(mailbox, mailbox->probed[i]);
    relay_pool_free(mailbox->pool, mailbox->probed,
                    mailbox->probed_size * sizeof(*mailbox->probed));
    match_fini(&mailbox->index, release_posted, mailbox);
}
