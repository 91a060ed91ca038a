#include "relay/core/apply.h"
#include "relay/core/forward.h"

/* That its synchronous message was matched. */
static void tell_sender(const struct relay_job *job, uint32_t src, uint32_t req)
{
    struct relay_conn *link = job->links[job_home(job, src)].conn;

    if (job_is_home(job, src))
        mailbox_done(&job->ranked[src]->mailbox, CW_FRAME_SENT, req);
    else if (link && link->state == CONN_LINK)
        forward_sent(link, src, req);
}

/* Tells the sender of a synchronous message that it was matched. The log of its mailbox, or another
 * relay, has that already where this is read back. */
static void acknowledge(const struct relay_mailbox *mailbox, uint32_t src, uint32_t kind,
                        uint32_t req)
{
    const struct relay_job *job = mailbox->job;

    if (kind != CW_SEND_SYNC || mailbox->log.due)
        return;
    tell_sender(job, src, req);
}

bool apply_matched(struct relay_mailbox *mailbox, const struct cw_forward_ref *of)
{
    const struct relay_job *job = mailbox->job;

    if (job_is_home(job, of->rank) && !job->ranked[of->rank])
        return false;
    tell_sender(job, of->rank, of->req);
    return true;
}

/* --- receives ------------------------------------------------------------------------------------
 */

static void unpost(struct relay_mailbox *mailbox, struct match_posted *posted)
{
    match_unpost(&mailbox->index, posted);
    mailbox_posted_free(mailbox, posted);
}

static int post(struct relay_mailbox *mailbox, const struct log_record *recv)
{
    struct match_posted *posted = mailbox_posted_new(mailbox);

    if (!posted)
        return CW_ENOMEM;
    posted->req = (uint32_t)recv->req;
    posted->tag = recv->tag;
    posted->mask = recv->mask;
    posted->capacity = recv->total;
    if (match_post(&mailbox->index, posted) == CW_OK)
        return CW_OK;
    mailbox_posted_free(mailbox, posted);
    return CW_ENOMEM;
}

/* The receive of a record and a message that waited have found each other. */
static void match(struct relay_mailbox *mailbox, struct relay_message *message,
                  const struct log_record *recv)
{
    uint32_t src = message->src;
    uint32_t kind = message->kind;
    uint32_t sender_req = message->sender_req;

    mailbox_match(mailbox, message, (uint32_t)recv->req, recv->total);
    acknowledge(mailbox, src, kind, sender_req);
}

static int receive(struct relay_mailbox *mailbox, const struct log_record *recv)
{
    struct match_waiting *waiting = match_find_waiting(&mailbox->index, recv->tag, recv->mask);

    if (!waiting)
        return post(mailbox, recv);
    match_unwait(&mailbox->index, waiting);
    match(mailbox, (struct relay_message *)waiting, recv);
    return CW_OK;
}

/* One that was taken out. */
static int receive_out(struct relay_mailbox *mailbox, const struct log_record *mrecv)
{
    if (!mailbox_is_out(mailbox, mrecv->msg))
        return CW_EPROTO;
    match(mailbox, mailbox_taken_out(mailbox, (uint32_t)mrecv->msg), mrecv);
    return CW_OK;
}

/* When its message is on the way already, the message wins and nothing is answered. */
static int cancel(struct relay_mailbox *mailbox, const struct log_record *cancel)
{
    uint32_t req = (uint32_t)cancel->req;
    struct match_posted *posted =
        match_find_request(&mailbox->index, req, cancel->tag, cancel->mask);

    if (!posted)
        return CW_OK;
    unpost(mailbox, posted);
    mailbox_done(mailbox, CW_FRAME_CANCELED, req);
    return CW_OK;
}

/* A probe found a message, and took it out if that is removed. */
static int answer(struct relay_mailbox *mailbox, const struct log_record *answer)
{
    struct match_waiting *waiting;

    mailbox->found = (struct cw_probed){.clock = mailbox->log.clock,
                                        .found = 1,
                                        .msg = (uint32_t)answer->msg,
                                        .tag = answer->tag,
                                        .total = answer->total};
    if (!(answer->flags & LOG_REMOVED))
        return CW_OK;
    waiting = match_find_waiting(&mailbox->index, answer->tag, answer->mask);
    if (!waiting || mailbox_next_out(mailbox) != (int64_t)answer->msg)
        return CW_EPROTO;
    match_unwait(&mailbox->index, waiting);
    return mailbox_put_out(mailbox, (struct relay_message *)waiting, (uint32_t)answer->msg);
}

/* --- messages ------------------------------------------------------------------------------------
 */

/* It is here whole, and `posted` is its receive, or it is an active one: an event at once. */
static void pass(struct relay_mailbox *mailbox, const struct log_record *message,
                 struct match_posted *posted, const uint8_t *at, struct relay_block *block)
{
    struct cw_message header = {.tag = message->tag, .total = message->total};
    uint64_t size = message->total;

    if (!posted) {
        header.flags = (message->kind == CW_SEND_AM ? CW_MESSAGE_ACTIVE : 0) |
                       (mailbox->elsewhere ? CW_MESSAGE_UNMATCHED : 0);
        header.req = mailbox_stream(mailbox, (uint32_t)message->src);
    } else {
        header.req = posted->req;
        if (posted->capacity < size) {
            size = posted->capacity;
            header.flags = CW_MESSAGE_TRUNC;
        }
        unpost(mailbox, posted);
    }
    mailbox_pass(mailbox, &header, at, (uint32_t)size, block);
}

/* It is offered to its rank, by the number of the record, which is the next one. */
static int offer(struct relay_mailbox *mailbox, const struct log_record *record,
                 struct relay_message *message)
{
    int64_t number = mailbox_next_out(mailbox);

    if (number < 0 || (uint64_t)number != record->msg)
        return CW_EPROTO;
    return mailbox_offer(mailbox, message, (uint32_t)number);
}

/* It begins, and gets a record of its own, for as long as its bytes or its receive are to come. */
static int begin(struct relay_mailbox *mailbox, const struct log_record *record,
                 struct match_posted *posted, struct relay_message **arriving)
{
    struct relay_message *message =
        message_new(&mailbox->shared->messages, mailbox->pool, record, !posted);
    bool offered = record->type == LOG_OFFERED;

    if (!message)
        return CW_ENOMEM;
    *arriving = record->total > 0 ? message : NULL;
    if (posted && !offered) {
        const struct log_record recv = {.req = posted->req, .total = posted->capacity};

        unpost(mailbox, posted);
        match(mailbox, message, &recv);
    } else if (offered || (record->kind != CW_SEND_AM && !mailbox->elsewhere)) {
        int failed = offered ? offer(mailbox, record, message) : mailbox_wait(mailbox, message);

        if (failed) {
            *arriving = NULL;
            mailbox_message_free(mailbox, message);
        }
        return failed;
    } else if (mailbox->feed.direct || mailbox->log.kept) {
        mailbox_match(mailbox, message, mailbox_stream(mailbox, message->src), UINT64_MAX);
    } else {
        mailbox_queue_early(mailbox, message);
    }
    return CW_OK;
}

/* The receive of a MESSAGE; NULL: there is none yet, or it is an active one. */
static struct match_posted *posted_for(struct relay_mailbox *mailbox,
                                       const struct log_record *record)
{
    return record->kind == CW_SEND_AM ? NULL : match_find_posted(&mailbox->index, record->tag);
}

static int passed(struct relay_mailbox *mailbox, const struct log_record *record)
{
    const struct log_record message = {.src = record->req,
                                       .kind = record->flags & CW_MESSAGE_ACTIVE ? CW_SEND_AM
                                                                                 : CW_SEND_TAG,
                                       .tag = record->tag,
                                       .total = record->total};
    bool matched = !(record->flags & (CW_MESSAGE_ACTIVE | CW_MESSAGE_UNMATCHED));
    struct match_posted *posted = matched ? match_find_posted(&mailbox->index, record->tag) : NULL;

    if (matched && !posted)
        return CW_EPROTO;
    pass(mailbox, &message, posted, NULL, NULL);
    return CW_OK;
}

/* --- all of them ---------------------------------------------------------------------------------
 */

int apply_record(struct relay_mailbox *mailbox, const struct log_record *record,
                 struct relay_message **arriving)
{
    *arriving = NULL;
    switch (record->type) {
    case LOG_RECV:
        return receive(mailbox, record);
    case LOG_MRECV:
        return receive_out(mailbox, record);
    case LOG_CANCEL:
        return cancel(mailbox, record);
    case LOG_POSTED:
        return post(mailbox, record);
    case LOG_ANSWER:
        return answer(mailbox, record);
    case LOG_MESSAGE:
    case LOG_OFFERED:
        return begin(mailbox, record, posted_for(mailbox, record), arriving);
    case LOG_PASSED:
        return passed(mailbox, record);
    case LOG_SENT:
        mailbox_done(mailbox, CW_FRAME_SENT, (uint32_t)record->req);
        return CW_OK;
    case LOG_SEND:
        mailbox->stats.sent++;
        mailbox->stats.sent_bytes += record->total;
        return CW_OK;
    default: /* the log counts it */
        return CW_OK;
    }
}

int apply_act(struct relay_mailbox *mailbox, const struct log_record *record)
{
    struct relay_message *arriving;

    if (mailbox->log.kept)
        mailbox_logged(mailbox, log_put(&mailbox->log, record));
    return apply_record(mailbox, record, &arriving);
}

/* Whether a message needs no receive here: an active one, or one that its rank matches, unless that
 * is to say so: then its sender's request is kept in a record of its own. */
static bool goes_unmatched(const struct relay_mailbox *mailbox, uint64_t kind)
{
    return kind == CW_SEND_AM || (mailbox->elsewhere && kind == CW_SEND_TAG);
}

/* All of it is here, and goes straight through. False: not so. */
static bool pass_through(struct relay_conn *conn, const struct log_record *message,
                         struct relay_mailbox *mailbox, struct match_posted *posted)
{
    const uint8_t *at = conn_input(conn);

    if (message->total != conn->payload_left || conn->end - conn->start < conn->payload_left ||
        (!posted && !goes_unmatched(mailbox, message->kind)) ||
        (!mailbox->feed.direct && !mailbox->log.kept))
        return false;
    conn_take(conn);
    pass(mailbox, message, posted, at, conn->block);
    return true;
}

/* What becomes of a message for a rank that is its own mailbox stands in its record. One for which
 * there is no number goes the way of those for which there is no memory. */
static void choose(struct relay_mailbox *mailbox, struct log_record *record)
{
    bool goes = mailbox->feed.direct || mailbox->log.kept; /* else it is early */

    if (goes && mailbox_offers(mailbox, (uint32_t)record->kind, record->total)) {
        record->type = LOG_OFFERED;
        record->msg = (uint64_t)mailbox_next_out(mailbox);
    } else if (goes) {
        mailbox_hands(mailbox, (uint32_t)record->kind, record->total);
    }
}

void apply_send(struct relay_conn *conn, struct transfer *transfer, const struct cw_send *send)
{
    struct log_record record = {.type = LOG_MESSAGE,
                                .src = transfer->src,
                                .kind = send->kind,
                                .req = send->req,
                                .tag = send->tag,
                                .total = send->total};
    struct relay_rank *rank = job_rank(conn->job, send->dst);
    struct relay_mailbox *mailbox;
    struct match_posted *posted;

    if (!rank) {
        conn_out_of_memory(conn, "making a mailbox");
        return;
    }
    mailbox = &rank->mailbox;
    posted = posted_for(mailbox, &record);
    choose(mailbox, &record);
    if (record.type == LOG_MESSAGE && pass_through(conn, &record, mailbox, posted)) {
        if (posted)
            acknowledge(mailbox, transfer->src, send->kind, send->req);
        return;
    }
    if (mailbox->log.kept && record.type == LOG_MESSAGE)
        mailbox_logged(mailbox, log_append(&mailbox->log, &record, &record.message));
    record.at = chain_next(&mailbox->log.payload);
    transfer->to = mailbox;
    if (begin(mailbox, &record, posted, &transfer->message) < 0)
        conn_out_of_memory(conn, "keeping a message until it is received");
}
