/* SEND and SEND_DATA: a message comes in; it goes to the receive that waits for it, or waits for
 * one. */
#include "relay/core/state.h"

#include <assert.h>

/* The whole message is here and its receive is posted: it goes straight through. */
static bool send_through(struct relay_conn *conn, struct relay_mailbox *sender,
                         const struct cw_send *send, struct relay_mailbox *mailbox)
{
    const uint8_t *at = conn->block->bytes + conn->start;
    uint32_t size = conn->payload_left;
    struct cw_message header = {.tag = send->tag, .total = size};
    struct relay_posted *posted;

    if (send->total != size || conn->end - conn->start < size ||
        (!mailbox->direct && !mailbox->log.kept))
        return false;
    conn->start += size;
    conn->payload_left = 0;
    if (send->kind == CW_SEND_AM) {
        header.flags |= CW_MESSAGE_ACTIVE;
        header.req = mailbox->streams++;
    } else {
        posted = match_find_posted(&mailbox->index, send->tag);
        assert(posted);
        header.req = posted->req;
        if (posted->capacity < size) {
            size = (uint32_t)posted->capacity;
            header.flags |= CW_MESSAGE_TRUNC;
        }
        match_unpost(&mailbox->index, posted);
        posted_free(conn->core, posted);
    }
    mailbox_acknowledge(conn->job, sender->rank, send->kind, send->req);
    mailbox_pass(mailbox, &header, at, size, conn->block);
    return true;
}

static void queue_early(struct relay_mailbox *mailbox, struct relay_message *message)
{
    message->next_free = NULL;
    *mailbox->early_tail = message;
    mailbox->early_tail = &message->next_free;
}

/* Nobody asked for this message yet. Returns 0 or CW_ENOMEM. */
static int send_wait(struct relay_mailbox *mailbox, struct relay_message *message)
{
    if (match_wait(&mailbox->index, &message->waiting) < 0)
        return CW_ENOMEM;
    mailbox->stats.unexpected++;
    if (mailbox->hint_armed && mailbox->conn && mailbox->conn->state == CONN_RANK) {
        mailbox->hint_armed = false;
        conn_frame(mailbox->conn, CW_FRAME_HINT, 0);
    }
    return CW_OK;
}

/* The message gets a record of its own, for as long as its bytes or its receive are to come.
 * Returns 0 or CW_ENOMEM. */
static int send_begin(struct relay_conn *conn, struct relay_mailbox *sender,
                      const struct cw_send *send, struct relay_mailbox *mailbox,
                      struct relay_posted *posted)
{
    struct relay_message *message = message_new(conn->core, send, sender->rank, !posted);

    if (!message)
        return CW_ENOMEM;
    if (send->total > 0) {
        sender->sending.message = message;
        sender->sending.to = mailbox;
    }
    if (posted) {
        uint32_t req = posted->req;
        uint64_t capacity = posted->capacity;

        match_unpost(&mailbox->index, posted);
        posted_free(conn->core, posted);
        mailbox_match(mailbox, message, req, capacity);
    } else if (send->kind != CW_SEND_AM) {
        if (send_wait(mailbox, message) == CW_OK)
            return CW_OK;
        sender->sending.message = NULL;
        message_free(conn->core, message);
        return CW_ENOMEM;
    } else if (mailbox->direct || mailbox->log.kept) {
        mailbox_match(mailbox, message, mailbox->streams++, UINT64_MAX);
    } else {
        queue_early(mailbox, message);
    }
    return CW_OK;
}

static void send_count(struct relay_mailbox *sender, const struct cw_send *send)
{
    uint64_t before = sender->log.bytes;

    sender->stats.sent++;
    sender->stats.sent_bytes += send->total;
    mailbox_act(sender, send->clock);
    if (sender->log.kept)
        mailbox_logged(sender, before, log_send(&sender->log, send));
}

static bool send_adds_up(const struct relay_conn *conn, const struct cw_send *send)
{
    return send->total >= conn->payload_left && (send->total == 0 || conn->payload_left > 0);
}

void send_arrives(struct relay_conn *conn, struct relay_mailbox *sender, const struct cw_send *send)
{
    struct relay_mailbox *mailbox = job_mailbox(conn->job, send->dst);
    struct relay_posted *posted = NULL;

    if (!mailbox) {
        conn_out_of_memory(conn, "making a mailbox");
        return;
    }
    if (send->kind != CW_SEND_AM)
        posted = match_find_posted(&mailbox->index, send->tag);
    if ((posted || send->kind == CW_SEND_AM) && send_through(conn, sender, send, mailbox))
        return;
    if (send_begin(conn, sender, send, mailbox, posted) < 0)
        conn_out_of_memory(conn, "keeping a message until it is received");
}

void recv_send(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *sender = conn->mailbox;
    struct cw_send send;

    if (!cw_send_get(body, &send) || !send_adds_up(conn, &send) || sender->sending.left) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "SEND frame that does not add up");
        return;
    }
    if (send.dst >= conn->job->ranks) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "SEND to rank %u in a job of %u ranks", send.dst,
                    conn->job->ranks);
        return;
    }
    send_count(sender, &send);
    conn->source = sender;
    sender->sending = (struct relay_sending){.left = send.total - conn->payload_left};
    if (job_is_home(conn->job, send.dst))
        send_arrives(conn, sender, &send);
    else
        forward_send(conn, &send);
}

bool data_fits(struct relay_conn *conn, struct relay_mailbox *sender)
{
    if (conn->payload_left == 0 || conn->payload_left > sender->sending.left) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "%u bytes of a message of which %llu are missing",
                    conn->payload_left, (unsigned long long)sender->sending.left);
        return false;
    }
    sender->sending.left -= conn->payload_left;
    conn->source = sender;
    return true;
}

void recv_send_data(struct relay_conn *conn, const uint8_t *body)
{
    (void)body;
    data_fits(conn, conn->mailbox);
}

void message_arrived(struct relay_sending *sending)
{
    struct relay_message *message = sending->message;

    if (message->arrived < message->total)
        return;
    sending->message = NULL;
    if (message->matched) {
        message_close(sending->to, message);
        message_free(sending->to->job->core, message);
    }
}

void message_input(struct relay_conn *conn, const uint8_t *at, uint32_t size)
{
    struct relay_sending *sending = &conn->source->sending;
    struct relay_message *message = sending->message;
    struct relay_mailbox *mailbox = sending->to;
    bool keep;

    if (sending->forwarded)
        forward_data(conn, at, size);
    if (!message)
        return;
    keep = !message->matched || (mailbox->log.kept && !message_delivered(message));
    message->arrived += size;
    assert(message->arrived <= message->total);
    if (keep && message_store(conn->core, message, &mailbox->log, at, size, conn->block) < 0) {
        /* what did not fit never arrived */
        message->arrived -= size;
        conn_out_of_memory(conn, "keeping a message until it is received");
        return;
    }
    if (message->matched)
        mailbox_deliver(mailbox, message, at, size, conn->block);
    message_arrived(sending);
}

void message_suspend(struct relay_conn *conn)
{
    struct relay_mailbox *sender = conn->mailbox;
    struct relay_sending *sending = &sender->sending;

    if (sending->message)
        sending->left = sending->message->total - sending->message->arrived;
    else if (conn->source == sender)
        sending->left += conn->payload_left;
    conn->source = NULL;
    conn->payload_left = 0;
    sending->cut_deadline_ns = 0;
    sending->cut_spent = false;
    if (!sender->log.kept)
        message_abandon(sender);
}

void message_abandon(struct relay_mailbox *sender)
{
    struct relay_message *message = sender->sending.message;
    struct relay_mailbox *to = sender->sending.to;

    if (sender->sending.forwarded && sender->sending.left)
        forward_end(sender);
    sender->sending = (struct relay_sending){0};
    if (!message)
        return;
    if (message->matched) {
        message_close(to, message);
        message_free(sender->job->core, message);
    } else {
        message->orphan = true;
    }
}
