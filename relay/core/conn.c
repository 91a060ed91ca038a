#include "relay/core/conn.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_MIN                                                                                   \
    (66u << 10) /* free bytes of a block that are still worth a read: 64 KiB and headers */

void conn_set_init(struct conn_set *set, struct relay_core *core, struct relay_pool *pool,
                   struct cw_relay_stats *stats)
{
    *set = (struct conn_set){.core = core, .pool = pool, .stats = stats};
    TAILQ_INIT(&set->ready);
    cw_strangers_init(&set->strangers);
}

struct relay_conn *conn_new(struct conn_set *set, uint64_t now_ns, void *owner)
{
    struct relay_conn *conn = calloc(1, sizeof(*conn));

    if (!conn)
        return NULL;
    conn->set = set;
    conn->owner = owner;
    conn->state = CONN_NEW;
    conn->opened_ns = now_ns;
    conn->rank_number = CONN_NOBODY;
    out_init(&conn->out, set->pool);
    LIST_INSERT_HEAD(&set->all, conn, of_set);
    return conn;
}

static void ready_remove(struct relay_conn *conn)
{
    if (conn->is_ready)
        TAILQ_REMOVE(&conn->set->ready, conn, in_ready);
    conn->is_ready = false;
}

void conn_free(struct relay_conn *conn)
{
    assert(!conn->stranger.of && conn->ended == CONN_NOT_ENDED);
    ready_remove(conn);
    ledger_leave(&conn->entry);
    LIST_REMOVE(conn, of_set);
    out_fini(&conn->out);
    if (conn->block)
        relay_block_release(conn->block);
    free(conn);
}

void conn_join(struct relay_conn *conn, struct relay_job *job, struct relay_pool *pool, bool keeps)
{
    assert(!conn->block && conn->out.size == 0);
    conn->hello.outside = false;
    conn->session.received = conn->end - conn->start; /* what came with the HELLO */
    out_init(&conn->out, pool);
    out_keep(&conn->out, keeps && !conn->rings);
    conn->owes_ack = false; /* the handshake is no part of it */
    conn->job = job;
}

/* --- a session that outlives its connection ------------------------------------------------------
 */

void conn_set_rings(struct relay_conn *conn)
{
    conn->rings = true;
    out_keep(&conn->out, false);
}

void conn_break(struct relay_conn *conn)
{
    if (conn->suspended || conn->state == CONN_CLOSING)
        return;
    conn->broken = true;
    conn_ready(conn);
}

int conn_suspend(struct relay_conn *conn, const struct iovec *unread, int count)
{
    assert(!conn->writing && !conn->stranger.of);
    if (out_restore(&conn->out, unread, count) < 0)
        return CW_ENOMEM;
    if (conn->entry.ledger) {
        /* what was not acted on does not outlive us, and is kept by the other side */
        conn->session.received = conn_acted(conn);
        conn->end = conn->start;
    }
    ready_remove(conn);
    conn->owner = NULL;
    conn->broken = false;
    conn->suspended = true;
    conn->suspended_ns = 0;
    return CW_OK;
}

/* Of what is queued on it nothing is sent before a commit. */
static void want_commit(const struct relay_conn *conn)
{
    if (conn->entry.ledger && !conn_is_inside(conn))
        commit_want(&conn->set->store->commit);
}

bool conn_resume(struct relay_conn *conn, struct relay_conn *old, uint64_t received)
{
    assert(old->suspended && !conn->block && conn->out.size == 0);
    if (!out_rewind(&old->out, received))
        return false;
    conn->hello.outside = false;
    conn->state = old->state;
    conn->session = old->session;
    conn->anew = old->anew;
    conn->job = old->job;
    conn->rank = old->rank;
    conn->rank_number = old->rank_number;
    conn->peer = old->peer;
    conn->source = old->source;
    conn->told = old->told;
    conn->owes_ack = old->owes_ack;
    conn->block = old->block;
    conn->start = old->start;
    conn->end = old->end;
    conn->payload_left = old->payload_left;
    conn->out = old->out;
    if (conn->out.chain.entry)
        conn->out.chain.entry = &conn->entry;
    ledger_move(&conn->entry, &old->entry, conn);
    out_keep(&conn->out, !conn->rings);
    old->block = NULL;
    out_init(&old->out, conn->set->pool);
    conn_free(old);
    want_commit(conn);
    conn_ready(conn);
    return true;
}

bool conn_outlive(struct relay_conn *conn, bool out, void (*save)(const void *conn, void *body))
{
    struct log_store *store = conn->set->store;

    if (!ledger_enter(store->ledger, &conn->entry, LEDGER_CONN, conn, save)) {
        conn_refuse(conn, CW_REFUSED_LIMIT, LEDGER_FULL);
        return false;
    }
    want_commit(conn);
    if (out && conn->entry.ledger)
        out_outlive(&conn->out, store, &conn->entry);
    return true;
}

/* --- frames out ----------------------------------------------------------------------------------
 */

void conn_ready(struct relay_conn *conn)
{
    if (conn->is_ready || conn->suspended)
        return;
    conn->is_ready = true;
    TAILQ_INSERT_TAIL(&conn->set->ready, conn, in_ready);
}

struct relay_conn *conn_next_ready(struct conn_set *set)
{
    struct relay_conn *conn = TAILQ_FIRST(&set->ready);

    if (conn)
        ready_remove(conn);
    return conn;
}

/* Room for `size` bytes, to be filled at once; NULL: it is full. */
static uint8_t *hello_reserve(struct hello_buffer *hello, size_t size)
{
    uint8_t *at = hello->out + hello->queued;

    if (sizeof(hello->out) - hello->queued < size)
        return NULL;
    hello->queued += (uint32_t)size;
    return at;
}

uint8_t *conn_frame_of(struct relay_conn *conn, uint8_t type, size_t fixed, uint32_t size)
{
    uint8_t *at = conn->hello.outside ? hello_reserve(&conn->hello, CW_FRAME_HEADER + fixed)
                                      : out_reserve(&conn->out, CW_FRAME_HEADER + fixed);

    if (!at) {
        conn_out_of_memory(conn, "queueing a frame");
        return NULL;
    }
    cw_frame_begin(&conn->session, at, type, (uint32_t)fixed + size);
    ledger_change(&conn->entry);
    want_commit(conn);
    conn->set->stats->frames_out++;
    conn_ready(conn);
    return at + CW_FRAME_HEADER;
}

bool conn_frame(struct relay_conn *conn, uint8_t type, const void *body, size_t size)
{
    uint8_t *to = conn_frame_of(conn, type, size, 0);

    if (to && size)
        memcpy(to, body, size);
    return to;
}

uint8_t *conn_data_frame(struct relay_conn *conn, uint8_t type, size_t fixed, const uint8_t *at,
                         uint32_t size, struct relay_block *block)
{
    bool copy = !block || size <= RELAY_OUT_COPY_MAX;
    uint8_t *to = out_reserve(&conn->out, CW_FRAME_HEADER + fixed + (copy ? size : 0));

    if (!to) {
        conn_out_of_memory(conn, "passing a message on");
        return NULL;
    }
    cw_frame_begin(&conn->session, to, type, (uint32_t)fixed + size);
    ledger_change(&conn->entry);
    want_commit(conn);
    conn->set->stats->frames_out++;
    if (copy && size)
        memcpy(to + CW_FRAME_HEADER + fixed, at, size);
    else if (!copy && out_append(&conn->out, at, size, block) < 0) {
        conn_out_of_memory(conn, "passing a message on");
        return NULL;
    }
    conn_ready(conn);
    return to + CW_FRAME_HEADER;
}

void conn_notice(struct relay_conn *conn, uint8_t type, const struct cw_notice_body *notice)
{
    uint8_t body[CW_NOTICE_SIZE + CW_TEXT_MAX];

    conn_frame(conn, type, body, cw_notice_put(body, notice));
}

/* What was not acted on does not outlive us, and the other side must keep it. */
void conn_ack(struct relay_conn *conn)
{
    uint64_t until = conn->entry.ledger ? conn_acted(conn) : conn->session.received;

    conn->owes_ack = until < conn->session.received;
    if (conn_frame(conn, CW_FRAME_ACK, &until, CW_ACK_SIZE))
        conn->session.received_told = until;
}

int conn_output(struct relay_conn *conn, struct iovec *iov, int max)
{
    struct hello_buffer *hello = &conn->hello;
    int n;

    conn->writing = true;
    conn->written = 0;
    if (!conn_has_output(conn))
        return 0;
    if (conn_hello_left(conn) > 0) {
        *iov = (struct iovec){hello->out + hello->written, conn_hello_left(conn)};
        return 1;
    }
    n = out_peek(&conn->out, iov, max,
                 conn_is_held(conn) ? out_stable(&conn->out) : conn->out.bytes);
    conn->written = (uint32_t)n;
    return n;
}

static void note_output(struct relay_conn *conn, uint64_t commit)
{
    conn->hello_noted[commit % COMMITS_OUT_MAX] = conn->hello.queued;
    conn->acted_noted[commit % COMMITS_OUT_MAX] = conn_acted(conn);
    out_note(&conn->out, commit);
}

static void free_output(struct relay_conn *conn, uint64_t commit)
{
    conn->hello_stable = conn->hello_noted[commit % COMMITS_OUT_MAX];
    conn->acted_stable = conn->acted_noted[commit % COMMITS_OUT_MAX];
    out_settle(&conn->out, commit);
    if (conn_has_output(conn))
        conn_ready(conn);
}

void conn_set_note(struct conn_set *set, uint64_t commit)
{
    struct relay_conn *conn;

    LIST_FOREACH (conn, &set->all, of_set)
        note_output(conn, commit);
}

void conn_set_free(struct conn_set *set, uint64_t commit)
{
    struct relay_conn *conn;

    LIST_FOREACH (conn, &set->all, of_set)
        free_output(conn, commit);
}

void conn_set_release(struct conn_set *set)
{
    struct relay_conn *conn;

    LIST_FOREACH (conn, &set->all, of_set)
        if (conn_has_output(conn))
            conn_ready(conn);
}

bool conn_acknowledge(struct relay_conn *conn, uint64_t position)
{
    const struct out_queue *out = &conn->out;

    if (!conn->writing || position <= out->front + out->kept)
        return out_acknowledge(&conn->out, position);
    conn->acked_early = position;
    return position <= out->front + out->kept + out->bytes;
}

void conn_written(struct relay_conn *conn, size_t size)
{
    uint64_t acked = conn->acked_early;

    assert(conn->writing);
    conn->writing = false;
    if (conn->discarded) {
        conn->hello.written = conn->hello.queued;
        out_sent(&conn->out, conn->out.bytes);
    } else if (conn_hello_left(conn) > 0) {
        conn->hello.written += (uint32_t)size;
    } else {
        out_sent(&conn->out, size);
    }
    assert(conn->hello.written <= conn->hello.queued);
    conn->discarded = false;
    conn->acked_early = 0;
    if (acked && !out_acknowledge(&conn->out, acked))
        conn_refuse(conn, CW_REFUSED_PROTOCOL, CONN_ACK_REFUSED);
}

/* --- its end -------------------------------------------------------------------------------------
 */

void conn_end(struct relay_conn *conn)
{
    conn->state = CONN_CLOSING;
    ledger_change(&conn->entry);
    out_keep(&conn->out, false);
    conn_ready(conn);
}

void conn_discard(struct relay_conn *conn)
{
    conn->discarded = conn->writing;
    if (!conn->writing)
        conn->hello.written = conn->hello.queued;
    out_cut(&conn->out, conn->writing ? conn->written : 0);
}

static void mark(struct relay_conn *conn, enum conn_ended how)
{
    conn->ended = how;
    conn->next_ended = conn->set->ended;
    conn->set->ended = conn;
}

struct relay_conn *conn_next_ended(struct conn_set *set)
{
    struct relay_conn *conn = set->ended;

    if (conn)
        set->ended = conn->next_ended;
    return conn;
}

void conn_refuse(struct relay_conn *conn, uint32_t code, const char *fmt, ...)
{
    struct cw_notice_body body = {.code = code, .rank = conn->rank_number};
    va_list ap;

    if (conn->state == CONN_CLOSING)
        return;
    va_start(ap, fmt);
    vsnprintf(body.text, sizeof(body.text), fmt, ap);
    va_end(ap);
    conn_notice(conn, CW_FRAME_REFUSED, &body);
    if (conn->state == CONN_CLOSING)
        return; /* there was no memory even for that */
    conn_end(conn);
    memcpy(conn->why, body.text, sizeof(conn->why));
    mark(conn, CONN_REFUSED);
}

void conn_out_of_memory(struct relay_conn *conn, const char *doing)
{
    const struct relay_pool *pool = conn->out.pool;
    const struct relay_memory *memory = pool->memory;

    if (conn->state == CONN_CLOSING)
        return;
    conn_discard(conn);
    conn_end(conn);
    snprintf(conn->why, sizeof(conn->why),
             "the relay's memory is spent (%llu of %llu bytes held, %llu of them by this job, "
             "whose share is %llu, while %s); receive messages earlier, or raise --memory-max",
             (unsigned long long)memory->stats->memory_now, (unsigned long long)memory->memory_max,
             (unsigned long long)pool->held, (unsigned long long)relay_memory_share(memory), doing);
    mark(conn, CONN_NO_MEMORY);
}

void conn_lose(struct relay_conn *conn)
{
    if (conn->suspended && conn->ended == CONN_NOT_ENDED)
        mark(conn, CONN_LOST);
}

void conn_forget(struct relay_conn *conn)
{
    struct relay_conn **at = &conn->set->ended;

    while (*at && *at != conn)
        at = &(*at)->next_ended;
    if (*at)
        *at = conn->next_ended;
    conn->ended = CONN_NOT_ENDED;
    conn_free(conn);
}

/* --- input ---------------------------------------------------------------------------------------
 */

/* Moves what is not acted on yet, less than a frame's fixed part, to the start of a block. */
static int block_renew(struct relay_conn *conn)
{
    struct relay_block *old = conn->block;
    struct relay_block *block = old;
    uint32_t rest = conn->end - conn->start;

    if (!old || old->refs > 1)
        block = relay_block_new(conn->out.pool, false);
    if (!block && old && old->refs == 1)
        block = old; /* what held it besides was let go of for lack of memory */
    if (!block)
        return CW_ENOMEM;
    assert(rest < CW_FRAME_HEADER + CW_FRAME_BODY_MAX + CW_READINGS_MAX);
    if (rest)
        memmove(block->bytes, old->bytes + conn->start, rest);
    if (old && block != old)
        relay_block_release(old);
    conn->block = block;
    conn->start = 0;
    conn->end = rest;
    return CW_OK;
}

int conn_space(struct relay_conn *conn, void **at, size_t *size)
{
    bool full = !conn->block || RELAY_BLOCK_BYTES - conn->end < READ_MIN;
    bool idle = conn->block && conn->block->refs == 1 && conn->start == conn->end;

    if (conn->hello.outside) {
        assert(conn->end < sizeof(conn->hello.in)); /* a frame of that size has been acted on */
        *at = conn->hello.in + conn->end;
        *size = sizeof(conn->hello.in) - conn->end;
        return CW_OK;
    }
    if ((full || idle) && block_renew(conn) < 0) {
        conn_out_of_memory(conn, "reading from a rank");
        return CW_ENOMEM;
    }
    *at = conn->block->bytes + conn->end;
    *size = RELAY_BLOCK_BYTES - conn->end;
    conn->lent = true;
    return CW_OK;
}

void conn_arrived(struct relay_conn *conn, size_t size)
{
    assert(size <= (conn->hello.outside ? sizeof(conn->hello.in) : RELAY_BLOCK_BYTES) - conn->end);
    assert(size == 0 || conn->block || conn->hello.outside);
    conn->lent = false;
    conn->end += (uint32_t)size;
    conn->session.received += size;
}

void conn_input_done(struct relay_conn *conn)
{
    if (conn->lent || conn->start != conn->end || (conn->block && conn->block->refs > 1))
        return;
    if (conn->block)
        relay_block_release(conn->block);
    conn->block = NULL;
    conn->start = conn->end = 0;
}

/* --- strangers */

void conn_make_room(struct conn_set *set, uint32_t ranks)
{
    struct relay_conn *first = cw_strangers_first(&set->strangers, CW_STRANGERS_MAX + ranks);

    if (!first)
        return;
    cw_stranger_leave(&first->stranger);
    if (first->state == CONN_CLOSING)
        conn_discard(first); /* it does not read why */
    else
        conn_refuse(first, CW_REFUSED_LIMIT, "%s", CW_STRANGER_GOES);
    conn_ready(first);
}
