/* Connections: from bytes to frames, from frames to their handlers, and back. */
#include "relay/core/state.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define READ_MIN                                                                                   \
    (66u << 10) /* free bytes of a block that are still worth a read: 64 KiB and headers */

/* What may be asked of the relay, and in which states of the connection. */
static const struct {
    void (*receive)(struct relay_conn *conn, const uint8_t *body);
    unsigned states;
    bool whole; /* the variable part is wanted with the fixed one; the handler consumes it */
} handlers[CW_FRAME_TYPES] = {
    [CW_FRAME_HELLO] = {recv_hello, CONN_NEW},
    [CW_FRAME_ACK] = {recv_ack, CONN_RANK | CONN_REPEATING | CONN_DISPATCHER | CONN_LINK},
    [CW_FRAME_SEND] = {recv_send, CONN_RANK},
    [CW_FRAME_SEND_DATA] = {recv_send_data, CONN_RANK},
    [CW_FRAME_RECV] = {recv_recv, CONN_RANK},
    [CW_FRAME_MRECV] = {recv_mrecv, CONN_RANK},
    [CW_FRAME_PROBE] = {recv_probe, CONN_RANK},
    [CW_FRAME_CANCEL] = {recv_cancel, CONN_RANK},
    [CW_FRAME_BYE] = {recv_bye, CONN_RANK},
    [CW_FRAME_TAKEN] = {recv_taken, CONN_RANK},
    [CW_FRAME_READINGS] = {recv_readings, CONN_RANK, true},
    [CW_FRAME_CHECK] = {recv_check, CONN_REPEATING},
    [CW_FRAME_LIVE] = {recv_live, CONN_REPEATING},
    [CW_FRAME_UNLOGGED] = {recv_unlogged, CONN_RANK | CONN_REPEATING},
    [CW_FRAME_STATS_ASK] = {recv_stats_ask, CONN_DISPATCHER},
    [CW_FRAME_ROUTE] = {recv_route, CONN_DISPATCHER},
    [CW_FRAME_LINK] = {recv_link, CONN_DISPATCHER, true},
    [CW_FRAME_FORWARD] = {recv_forward, CONN_LINK},
    [CW_FRAME_FORWARD_DATA] = {recv_forward_data, CONN_LINK},
    [CW_FRAME_FORWARD_END] = {recv_forward_end, CONN_LINK},
    [CW_FRAME_FORWARD_SENT] = {recv_forward_sent, CONN_LINK},
};

struct relay_core *relay_core_new(const struct relay_core_config *config)
{
    struct relay_core *core = calloc(1, sizeof(*core));

    if (!core)
        return NULL;
    core->config = *config;
    if (relay_pool_init(&core->pool, config->memory_max, &config->supply, &core->stats) < 0) {
        free(core);
        return NULL;
    }
    copies_init(&core->copies, &core->pool);
    core->ready_tail = &core->ready;
    return core;
}

void relay_core_free(struct relay_core *core)
{
    while (core->conns)
        relay_conn_close(core->conns, "the relay ends");
    while (core->jobs)
        job_free(core->jobs);
    copies_pay_all(&core->copies);
    while (core->free_messages) {
        struct relay_message *message = core->free_messages;

        core->free_messages = message->next_free;
        relay_pool_free(&core->pool, message, sizeof(*message) + message->inline_size);
    }
    while (core->free_posted) {
        struct relay_posted *posted = core->free_posted;

        core->free_posted = posted->next_free;
        relay_pool_free(&core->pool, posted, sizeof(*posted));
    }
    relay_pool_fini(&core->pool);
    assert(core->stats.memory_now == 0);
    free(core);
}

struct cw_relay_stats *relay_core_stats(struct relay_core *core)
{
    return &core->stats;
}

void conn_ready(struct relay_conn *conn)
{
    struct relay_core *core = conn->core;

    if (conn->is_ready)
        return;
    conn->is_ready = true;
    conn->next_ready = NULL;
    *core->ready_tail = conn;
    core->ready_tail = &conn->next_ready;
}

struct relay_conn *relay_core_next_ready(struct relay_core *core)
{
    struct relay_conn *conn = core->ready;

    if (!conn)
        return NULL;
    core->ready = conn->next_ready;
    if (!core->ready)
        core->ready_tail = &core->ready;
    conn->is_ready = false;
    return conn;
}

static void ready_remove(struct relay_conn *conn)
{
    struct relay_core *core = conn->core;
    struct relay_conn **at = &core->ready;

    if (!conn->is_ready)
        return;
    while (*at != conn)
        at = &(*at)->next_ready;
    *at = conn->next_ready;
    if (core->ready_tail == &conn->next_ready)
        core->ready_tail = at;
    conn->is_ready = false;
}

uint8_t *conn_frame_of(struct relay_conn *conn, uint8_t type, size_t fixed, uint32_t size)
{
    uint8_t *at = out_reserve(&conn->out, CW_FRAME_HEADER + fixed);

    if (!at) {
        conn_out_of_memory(conn, "queueing a frame");
        return NULL;
    }
    cw_frame_begin(&conn->session, at, type, (uint32_t)fixed + size);
    conn->core->stats.frames_out++;
    conn_ready(conn);
    return at + CW_FRAME_HEADER;
}

uint8_t *conn_frame(struct relay_conn *conn, uint8_t type, size_t size)
{
    return conn_frame_of(conn, type, size, 0);
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
    conn->core->stats.frames_out++;
    if (copy && size)
        memcpy(to + CW_FRAME_HEADER + fixed, at, size);
    else if (!copy && out_append(&conn->out, at, size, block) < 0) {
        conn_out_of_memory(conn, "passing a message on");
        return NULL;
    }
    conn_ready(conn);
    return to + CW_FRAME_HEADER;
}

void conn_end(struct relay_conn *conn)
{
    conn->state = CONN_CLOSING;
    conn_ready(conn);
}

void conn_notice(struct relay_conn *conn, uint8_t type, const struct cw_notice_body *notice)
{
    uint8_t body[CW_NOTICE_SIZE + CW_TEXT_MAX];
    size_t size = cw_notice_put(body, notice);
    uint8_t *to = conn_frame(conn, type, size);

    if (to)
        memcpy(to, body, size);
}

void conn_refuse(struct relay_conn *conn, uint32_t code, const char *fmt, ...)
{
    struct cw_notice_body body = {.code = code,
                                  .rank = conn->mailbox ? conn->mailbox->rank : UINT32_MAX};
    va_list ap;

    if (conn->state == CONN_CLOSING)
        return;
    va_start(ap, fmt);
    vsnprintf(body.text, sizeof(body.text), fmt, ap);
    va_end(ap);
    conn_notice(conn, CW_FRAME_REFUSED, &body);
    if (conn->state == CONN_LINK && !conn->fenced)
        job_notice(conn->job, CW_NOTICE_FATAL, UINT32_MAX, "relay %u of the job was refused: %s",
                   conn->peer, body.text);
    conn_end(conn);
    if (conn->mailbox && !conn->fenced)
        job_notice(conn->job, CW_NOTICE_RANK_LOST, body.rank, "refused by its relay: %s",
                   body.text);
    conn->fenced = true;
}

/* What is queued is not written any more. */
static void conn_discard(struct relay_conn *conn)
{
    conn->discarded = conn->writing;
    if (!conn->writing)
        out_consume(&conn->out, conn->out.bytes);
}

void conn_out_of_memory(struct relay_conn *conn, const char *doing)
{
    struct relay_core *core = conn->core;

    if (conn->state == CONN_CLOSING)
        return;
    conn_discard(conn);
    conn_end(conn);
    if (conn->job && conn->job->dispatcher != conn)
        job_notice(
            conn->job, CW_NOTICE_FATAL, conn->mailbox ? conn->mailbox->rank : UINT32_MAX,
            "the relay's memory is spent (%llu of %llu bytes held, while %s); receive messages "
            "earlier, or raise --memory-max",
            (unsigned long long)core->stats.memory_now, (unsigned long long)core->config.memory_max,
            doing);
    conn->fenced = true;
}

static void conn_challenge(struct relay_conn *conn)
{
    struct cw_challenge challenge = {.magic = CW_PROTOCOL_MAGIC, .version = CW_PROTOCOL_VERSION};
    uint8_t *to = conn_frame(conn, CW_FRAME_CHALLENGE, CW_CHALLENGE_SIZE);

    memcpy(challenge.nonce, conn->nonce, sizeof(challenge.nonce));
    if (to)
        cw_challenge_put(to, &challenge);
}

struct relay_conn *conn_new(struct relay_core *core, uint64_t now_ns, void *owner)
{
    struct relay_conn *conn = relay_pool_alloc(&core->pool, sizeof(*conn));

    if (!conn)
        return NULL;
    *conn = (struct relay_conn){
        .core = core, .owner = owner, .state = CONN_NEW, .opened_ns = now_ns, .next = core->conns};
    out_init(&conn->out, &core->pool);
    if (core->conns)
        core->conns->prev = conn;
    core->conns = conn;
    return conn;
}

struct relay_conn *relay_conn_open(struct relay_core *core, const uint8_t nonce[CW_NONCE_SIZE],
                                   uint64_t now_ns, void *owner)
{
    struct relay_conn *conn = conn_new(core, now_ns, owner);

    if (!conn)
        return NULL;
    memcpy(conn->nonce, nonce, sizeof(conn->nonce));
    conn_challenge(conn);
    return conn;
}

void *relay_conn_owner(const struct relay_conn *conn)
{
    return conn->owner;
}

static void conn_unlink(struct relay_conn *conn)
{
    struct relay_core *core = conn->core;

    ready_remove(conn);
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        core->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
}

void relay_conn_close(struct relay_conn *conn, const char *why)
{
    struct relay_core *core = conn->core;
    struct relay_mailbox *mailbox = conn->mailbox;

    mailbox_detach(conn);
    if (conn->job && conn->job->links[conn->peer] == conn)
        link_down(conn, why);
    if (mailbox && !conn->fenced)
        job_notice(conn->job, CW_NOTICE_RANK_LOST, mailbox->rank, "%s", why);
    if (conn->job && conn->job->dispatcher == conn) {
        conn->job->dispatcher = NULL;
        job_free(conn->job);
    }
    conn_unlink(conn);
    out_fini(&conn->out);
    if (conn->block)
        relay_block_release(&core->pool, conn->block);
    relay_pool_free(&core->pool, conn, sizeof(*conn));
}

/* Moves what is not acted on yet, less than a frame's fixed part, to the start of a block. */
static int block_renew(struct relay_conn *conn)
{
    struct relay_block *old = conn->block;
    struct relay_block *block = old;
    uint32_t rest = conn->end - conn->start;

    if (!old || old->refs > 1)
        block = relay_block_new(&conn->core->pool, false);
    if (!block) {
        /* what is owed holds blocks, perhaps just this one */
        copies_pay_all(&conn->core->copies);
        block = old && old->refs == 1 ? old : relay_block_new(&conn->core->pool, false);
    }
    if (!block)
        return CW_ENOMEM;
    assert(rest < CW_FRAME_HEADER + CW_FRAME_BODY_MAX + CW_READINGS_MAX);
    if (rest)
        memmove(block->bytes, old->bytes + conn->start, rest);
    if (old && block != old)
        relay_block_release(&conn->core->pool, old);
    conn->block = block;
    conn->start = 0;
    conn->end = rest;
    return CW_OK;
}

int relay_conn_space(struct relay_conn *conn, void **at, size_t *size)
{
    bool full = !conn->block || RELAY_BLOCK_BYTES - conn->end < READ_MIN;
    bool idle = conn->block && conn->block->refs == 1 && conn->start == conn->end;

    if ((full || idle) && block_renew(conn) < 0) {
        conn_out_of_memory(conn, "reading from a rank");
        return CW_ENOMEM;
    }
    *at = conn->block->bytes + conn->end;
    *size = RELAY_BLOCK_BYTES - conn->end;
    return CW_OK;
}

/* Acts on the frame at the start of what is there. Returns false when it is not complete. */
static bool conn_take_frame(struct relay_conn *conn)
{
    const uint8_t *at = conn->block->bytes + conn->start;
    uint32_t there = conn->end - conn->start;
    struct cw_header header;
    struct cw_err err;
    uint32_t fixed;
    uint32_t needed;

    if (there < CW_FRAME_HEADER)
        return false;
    fixed = needed = cw_frame_fixed(at[4]);
    if (at[4] < CW_FRAME_TYPES && handlers[at[4]].whole)
        needed = cw_frame_length(at);
    if (there < CW_FRAME_HEADER + needed) {
        /* what can never be a frame is refused before the rest of it is waited for */
        if (cw_frame_check(at, &header, &err) < 0)
            conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s", err.text);
        return false;
    }
    if (cw_frame_accept(&conn->session, at, &header, &err) < 0) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s", err.text);
        return false;
    }
    if (!handlers[header.type].receive || !(handlers[header.type].states & conn->state)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s frame is not allowed here",
                    cw_frame_name(header.type));
        return false;
    }
    conn->core->stats.frames_in++;
    conn->start += CW_FRAME_HEADER + fixed;
    conn->payload_left = header.length - fixed;
    handlers[header.type].receive(conn, at + CW_FRAME_HEADER);
    return true;
}

uint32_t conn_take(struct relay_conn *conn)
{
    uint32_t there = conn->end - conn->start;
    uint32_t size = there < conn->payload_left ? there : conn->payload_left;

    conn->payload_left -= size;
    conn->start += size;
    return size;
}

static bool conn_take_payload(struct relay_conn *conn)
{
    uint32_t size = conn_take(conn);

    if (size == 0)
        return false;
    message_input(conn, conn->block->bytes + conn->start - size, size);
    return true;
}

void relay_core_settle(struct relay_core *core)
{
    copies_pay_all(&core->copies);
}

void relay_conn_input(struct relay_conn *conn, size_t size)
{
    bool more = true;

    assert(conn->block && size <= RELAY_BLOCK_BYTES - conn->end);
    conn->end += (uint32_t)size;
    while (more && conn->state != CONN_CLOSING)
        more = conn->payload_left ? conn_take_payload(conn) : conn_take_frame(conn);
    if (conn->state == CONN_CLOSING)
        conn->start = conn->end;
    else if (cw_session_owes_ack(&conn->session))
        conn_frame(conn, CW_FRAME_ACK, 0);
    if (conn->start == conn->end && conn->block->refs == 1) {
        relay_block_release(&conn->core->pool, conn->block);
        conn->block = NULL;
        conn->start = conn->end = 0;
    }
}

bool relay_conn_wants_input(struct relay_conn *conn, uint64_t now_ns)
{
    struct relay_sending *sending = conn->mailbox ? &conn->mailbox->sending : NULL;
    struct relay_conn *to;

    if (conn->state == CONN_CLOSING)
        return false;
    if (sending && sending->forwarded && sending->left)
        return forward_wants_input(conn->mailbox);
    if (!sending || !sending->message || !sending->message->matched || sending->cut_spent)
        return true;
    to = sending->to->conn;
    if (!to || to->out.bytes < RELAY_CUT_BACKLOG_MAX) {
        sending->cut_deadline_ns = 0;
        return true;
    }
    if (sending->cut_deadline_ns == 0)
        sending->cut_deadline_ns = now_ns + RELAY_CUT_WAIT_NS;
    sending->cut_spent = now_ns >= sending->cut_deadline_ns;
    return sending->cut_spent;
}

int relay_conn_output(struct relay_conn *conn, struct iovec *iov, int max)
{
    conn->writing = true;
    return out_peek(&conn->out, iov, max);
}

void relay_conn_written(struct relay_conn *conn, size_t size)
{
    assert(conn->writing);
    conn->writing = false;
    out_consume(&conn->out, conn->discarded ? conn->out.bytes : size);
    conn->discarded = false;
    recovery_pump(conn);
    if (conn->state == CONN_CLOSING && conn->out.bytes == 0)
        conn_ready(conn);
}

bool relay_conn_has_output(const struct relay_conn *conn)
{
    return conn->out.bytes > 0;
}

bool relay_conn_done(const struct relay_conn *conn)
{
    return conn->state == CONN_CLOSING && conn->out.bytes == 0;
}

void relay_core_tick(struct relay_core *core, uint64_t now_ns)
{
    for (struct relay_conn *conn = core->conns; conn; conn = conn->next) {
        bool waits = conn->state == CONN_NEW || conn->state == CONN_CLOSING;

        if (!waits)
            conn->opened_ns = now_ns;
        if (now_ns - conn->opened_ns <= RELAY_HANDSHAKE_NS)
            continue;
        if (conn->state == CONN_NEW)
            conn_refuse(conn, CW_REFUSED_PROTOCOL, "no HELLO for %llu s",
                        RELAY_HANDSHAKE_NS / 1000000000ull);
        else
            conn_discard(conn);
        conn->opened_ns = now_ns;
        conn_ready(conn);
    }
}

void recv_ack(struct relay_conn *conn, const uint8_t *body)
{
    (void)conn;
    (void)body;
}
