/* One rank's mailbox: what is handed to it, as numbered events. */
#include "relay/core/state.h"

#include <assert.h>

struct relay_posted *posted_new(struct relay_core *core)
{
    struct relay_posted *posted = core->free_posted;

    if (posted)
        core->free_posted = posted->next_free;
    else
        posted = relay_pool_alloc(&core->pool, sizeof(*posted));
    return posted;
}

void posted_free(struct relay_core *core, struct relay_posted *posted)
{
    posted->next_free = core->free_posted;
    core->free_posted = posted;
}

void mailbox_emit(struct relay_mailbox *mailbox, const struct cw_message *header, const uint8_t *at,
                  uint32_t size, struct relay_block *block)
{
    uint8_t *to;

    if (mailbox->conn->state == CONN_CLOSING)
        return;
    to = conn_data_frame(mailbox->conn, CW_FRAME_MESSAGE, CW_MESSAGE_SIZE, at, size, block);
    if (to)
        cw_message_put(to, header);
}

void mailbox_emit_done(struct relay_mailbox *mailbox, uint8_t type, uint32_t req, uint64_t event)
{
    struct cw_done done = {.req = req, .event = event};
    uint8_t *to;

    if (mailbox->conn->state == CONN_CLOSING)
        return;
    to = conn_frame(mailbox->conn, type, CW_DONE_SIZE);
    if (to)
        cw_done_put(to, &done);
}

void mailbox_done(struct relay_mailbox *mailbox, uint8_t type, uint32_t req)
{
    uint64_t before = mailbox->log.bytes;

    mailbox->event++;
    if (mailbox->direct)
        mailbox_emit_done(mailbox, type, req, mailbox->event);
    if (mailbox->log.kept)
        mailbox_logged(
            mailbox, before,
            log_done(&mailbox->log, type == CW_FRAME_SENT ? LOG_SENT : LOG_CANCELED, req));
}

void mailbox_pass(struct relay_mailbox *mailbox, struct cw_message *header, const uint8_t *at,
                  uint32_t size, struct relay_block *block)
{
    uint64_t before = mailbox->log.bytes;

    header->flags |= CW_MESSAGE_FIRST | CW_MESSAGE_LAST;
    header->event = ++mailbox->event;
    mailbox->stats.received++;
    mailbox->stats.received_bytes += size;
    if (mailbox->direct)
        mailbox_emit(mailbox, header, at, size, block);
    if (mailbox->log.kept)
        mailbox_logged(mailbox, before, log_message(&mailbox->log, header, at, size, block));
}

void mailbox_acknowledge(struct relay_job *job, uint32_t src, uint32_t kind, uint32_t req)
{
    if (kind == CW_SEND_SYNC && !job_is_home(job, src))
        forward_sent(job, src, req);
    else if (kind == CW_SEND_SYNC)
        mailbox_done(job->mailboxes[src], CW_FRAME_SENT, req);
}

uint64_t message_wanted(const struct relay_message *message)
{
    return message->total < message->capacity ? message->total : message->capacity;
}

bool message_delivered(const struct relay_message *message)
{
    return message->begun && message->delivered == message_wanted(message);
}

struct cw_message message_header(const struct relay_message *message, bool last)
{
    return (struct cw_message){
        .req = message->req,
        .tag = message->waiting.tag,
        .total = message->total,
        .flags = (message->begun ? 0 : CW_MESSAGE_FIRST) | (last ? CW_MESSAGE_LAST : 0) |
                 (message->capacity < message->total ? CW_MESSAGE_TRUNC : 0) |
                 (message->kind == CW_SEND_AM ? CW_MESSAGE_ACTIVE : 0)};
}

/* All that the receive has room for is here: an event. */
static void message_happened(struct relay_mailbox *mailbox, const struct relay_message *message,
                             struct cw_message *header)
{
    uint64_t before = mailbox->log.bytes;
    uint64_t size = message_wanted(message);
    int result;

    header->event = ++mailbox->event;
    mailbox->stats.received++;
    if (!mailbox->log.kept)
        return;
    result = message->slice_count ? log_message_slices(&mailbox->log, header, message->slices, size)
                                  : log_message(&mailbox->log, header, message->bytes, size, NULL);
    mailbox_logged(mailbox, before, result);
}

/* The next `size` bytes of what the receive has room for go out under this header. */
static struct cw_message deliver_next(struct relay_mailbox *mailbox, struct relay_message *message,
                                      uint32_t size)
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

void mailbox_deliver(struct relay_mailbox *mailbox, struct relay_message *message,
                     const uint8_t *at, uint32_t size, struct relay_block *block)
{
    uint64_t left = message_wanted(message) - message->delivered;
    struct cw_message header;

    if (message_delivered(message))
        return;
    if (size > left)
        size = (uint32_t)left;
    header = deliver_next(mailbox, message, size);
    if (mailbox->direct)
        mailbox_emit(mailbox, &header, at, size, block);
}

struct relay_conn *mailbox_deliver_cut(struct relay_mailbox *mailbox, struct relay_message *message,
                                       uint32_t size)
{
    struct cw_message header = deliver_next(mailbox, message, size);
    uint8_t *to;

    if (mailbox->conn->state == CONN_CLOSING)
        return NULL;
    to = conn_frame_of(mailbox->conn, CW_FRAME_MESSAGE, CW_MESSAGE_SIZE, size);
    if (!to)
        return NULL;
    cw_message_put(to, &header);
    return mailbox->conn;
}

struct delivery {
    struct relay_mailbox *mailbox;
    struct relay_message *message;
};

static void deliver_piece(void *ctx, const uint8_t *at, uint32_t size, struct relay_block *block)
{
    const struct delivery *delivery = ctx;

    mailbox_deliver(delivery->mailbox, delivery->message, at, size, block);
}

void mailbox_match(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t req,
                   uint64_t capacity)
{
    struct delivery delivery = {mailbox, message};

    assert(!message->matched);
    message->matched = true;
    message->req = req;
    message->capacity = capacity;
    mailbox_acknowledge(mailbox->job, message->src, message->kind, message->sender_req);
    message_pieces(mailbox->job->core, message, deliver_piece, &delivery);
    if (message_wanted(message) == 0)
        mailbox_deliver(mailbox, message, NULL, 0, NULL);
    if (message->arrived == message->total || message->orphan) {
        message_free(mailbox->job->core, message);
        return;
    }
    message_open(mailbox, message);
    if (!mailbox->log.kept)
        message_forget(mailbox->job->core, message);
}

static void drop(struct relay_core *core, struct relay_message *message)
{
    /* a message whose sender still speaks was abandoned before: see job_free */
    assert(message->arrived == message->total || message->orphan);
    message_free(core, message);
}

static void release_posted(void *core, struct relay_posted *posted)
{
    posted_free(core, posted);
}

void mailbox_fini(struct relay_mailbox *mailbox)
{
    struct relay_core *core = mailbox->job->core;

    core->log_bytes -= mailbox->log.bytes;
    log_free(&mailbox->log);
    while (mailbox->index.first) {
        struct match_waiting *waiting = mailbox->index.first;

        match_unwait(&mailbox->index, waiting);
        drop(core, (struct relay_message *)waiting);
    }
    while (mailbox->early) {
        struct relay_message *message = mailbox->early;

        mailbox->early = message->next_free;
        drop(core, message);
    }
    for (uint32_t i = 0; i < mailbox->probed_size; i++)
        if (mailbox->probed[i])
            drop(core, mailbox->probed[i]);
    relay_pool_free(&core->pool, mailbox->probed, mailbox->probed_size * sizeof(*mailbox->probed));
    match_fini(&mailbox->index, release_posted, core);
}
