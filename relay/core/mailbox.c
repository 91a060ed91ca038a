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
    struct relay_conn *conn = mailbox->conn;
    struct cw_message numbered = *header;
    bool copy = !block || size <= RELAY_OUT_COPY_MAX;
    uint8_t *to;

    if (header->flags & CW_MESSAGE_LAST)
        numbered.event = ++mailbox->event;
    if (!conn || conn->state != CONN_RANK)
        return;
    to = out_reserve(&conn->out, CW_FRAME_HEADER + CW_MESSAGE_SIZE + (copy ? size : 0));
    if (!to) {
        conn_out_of_memory(conn, "handing a message to its receiver");
        return;
    }
    cw_frame_begin(&conn->session, to, CW_FRAME_MESSAGE, CW_MESSAGE_SIZE + size);
    conn->core->stats.frames_out++;
    cw_message_put(to + CW_FRAME_HEADER, &numbered);
    if (copy && size)
        memcpy(to + CW_FRAME_HEADER + CW_MESSAGE_SIZE, at, size);
    else if (!copy && out_append(&conn->out, at, size, block) < 0)
        conn_out_of_memory(conn, "handing a message to its receiver");
    conn_ready(conn);
}

void mailbox_done(struct relay_mailbox *mailbox, uint8_t type, uint32_t req)
{
    struct cw_done done = {.req = req, .event = ++mailbox->event};
    uint8_t *to;

    if (!mailbox->conn || mailbox->conn->state != CONN_RANK)
        return;
    to = conn_frame(mailbox->conn, type, CW_DONE_SIZE);
    if (to)
        cw_done_put(to, &done);
}

void mailbox_acknowledge(struct relay_job *job, uint32_t src, uint32_t kind, uint32_t req)
{
    if (kind == CW_SEND_SYNC)
        mailbox_done(job->mailboxes[src], CW_FRAME_SENT, req);
}

static uint64_t wanted(const struct relay_message *message)
{
    return message->total < message->capacity ? message->total : message->capacity;
}

bool message_delivered(const struct relay_message *message)
{
    return message->begun && message->delivered == wanted(message);
}

void mailbox_deliver(struct relay_mailbox *mailbox, struct relay_message *message,
                     const uint8_t *at, uint32_t size, struct relay_block *block)
{
    uint64_t left = wanted(message) - message->delivered;
    struct cw_message header = {
        .req = message->req, .tag = message->waiting.tag, .total = message->total};

    if (message_delivered(message))
        return;
    if (size > left)
        size = (uint32_t)left;
    header.flags = (message->begun ? 0 : CW_MESSAGE_FIRST) | (size == left ? CW_MESSAGE_LAST : 0) |
                   (message->capacity < message->total ? CW_MESSAGE_TRUNC : 0) |
                   (message->kind == CW_SEND_AM ? CW_MESSAGE_ACTIVE : 0);
    message->begun = true;
    message->delivered += size;
    if (size == left)
        mailbox->stats.received++;
    mailbox->stats.received_bytes += size;
    mailbox_emit(mailbox, &header, at, size, block);
}

void mailbox_match(struct relay_mailbox *mailbox, struct relay_message *message, uint32_t req,
                   uint64_t capacity)
{
    assert(!message->matched);
    message->matched = true;
    message->req = req;
    message->capacity = capacity;
    mailbox_acknowledge(mailbox->job, message->src, message->kind, message->sender_req);
    if (message->inline_used)
        mailbox_deliver(mailbox, message, message->bytes, message->inline_used, NULL);
    for (uint32_t i = 0; i < message->slice_count; i++) {
        const struct message_slice *slice = &message->slices[i];

        for (uint32_t done = 0, n; done < slice->size; done += n) {
            n = slice->size - done < CW_FRAME_DATA_MAX ? slice->size - done : CW_FRAME_DATA_MAX;
            mailbox_deliver(mailbox, message, slice->at + done, n, slice->block);
        }
    }
    if (wanted(message) == 0)
        mailbox_deliver(mailbox, message, NULL, 0, NULL);
    if (message->arrived == message->total || message->orphan) {
        message_free(mailbox->job->core, message);
        return;
    }
    for (uint32_t i = 0; i < message->slice_count; i++)
        relay_block_release(&mailbox->job->core->pool, message->slices[i].block);
    message->slice_count = 0;
    message->inline_used = 0;
}

void mailbox_attach(struct relay_mailbox *mailbox, struct relay_conn *conn)
{
    mailbox->conn = conn;
    while (mailbox->early) {
        struct relay_message *message = mailbox->early;

        mailbox->early = message->next_free;
        mailbox_match(mailbox, message, mailbox->streams++, UINT64_MAX);
    }
    mailbox->early_tail = &mailbox->early;
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
