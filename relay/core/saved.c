#include "relay/core/saved.h"

#include <string.h>

_Static_assert(sizeof(struct saved_job) <= LEDGER_BODY, "a state fits a cell");
_Static_assert(sizeof(struct saved_rank) <= LEDGER_BODY, "a state fits a cell");
_Static_assert(sizeof(struct saved_conn) <= LEDGER_BODY, "a state fits a cell");

void saved_job(const void *owner, void *body)
{
    const struct relay_job *job = owner;
    struct saved_job saved = {.resume_ns = job->resume_ns,
                              .orphan_ns = job->orphan_ns,
                              .ranks = job->ranks,
                              .channel = job->channel,
                              .covers = job->covers,
                              .cover = job->cover,
                              .told = chain_end(&job->told)};

    memcpy(saved.id, job->id, CW_ID_SIZE);
    memcpy(body, &saved, sizeof(saved));
}

/* The number of the relay that a message is forwarded to. */
static uint32_t link_number(const struct relay_job *job, const struct transfer *transfer)
{
    for (uint32_t relay = 0; transfer->link && relay < job->relays; relay++)
        if (transfer->link == &job->links[relay].conn)
            return relay;
    return SAVED_NONE;
}

void saved_rank(const void *owner, void *body)
{
    const struct relay_rank *rank = owner;
    const struct relay_mailbox *mailbox = &rank->mailbox;
    const struct transfer *transfer = &rank->transfer;
    struct saved_rank saved = {.job = mailbox->job->entry.cell,
                               .rank = mailbox->rank,
                               .incarnation = mailbox->incarnation,
                               .ended = mailbox->ended,
                               .acts = mailbox->acts,
                               .act_clock = mailbox->act_clock,
                               .room = mailbox->room,
                               .handed = mailbox->handed,
                               .records = chain_end(&mailbox->log.records),
                               .payload = chain_end(&mailbox->log.payload),
                               .payload_solid = mailbox->log.payload.solid,
                               .kept = mailbox->log.kept,
                               .points = log_points_left(&mailbox->log),
                               .decided = log_decided_left(&mailbox->log),
                               .follow = mailbox->follow,
                               .lost = mailbox->lost,
                               .to = SAVED_NONE,
                               .link = link_number(mailbox->job, transfer),
                               .left = transfer->left};

    if (transfer->message) {
        saved.to = transfer->to->rank;
        saved.record = transfer->message->record;
    }
    memcpy(body, &saved, sizeof(saved));
}

void saved_conn(const void *owner, void *body)
{
    const struct relay_conn *conn = owner;
    struct saved_conn saved = {.job = conn->job ? conn->job->entry.cell : SAVED_NONE,
                               .state = conn->state,
                               .rank = conn->rank ? conn->rank_number : SAVED_NONE,
                               .peer = conn->peer,
                               .source = conn->source ? conn->source->src : SAVED_NONE,
                               .payload_left = conn->payload_left,
                               .session = conn->session,
                               .acted = conn_acted(conn),
                               .out = out_save(&conn->out),
                               .owes_ack = conn->owes_ack};

    memcpy(body, &saved, sizeof(saved));
}

bool saved_enter_job(struct relay_job *job)
{
    struct log_store *store = &job->set->shared->store;

    if (!ledger_enter(store->ledger, &job->entry, LEDGER_JOB, job, saved_job))
        return false;
    chain_keep(&job->told, &job->entry, 0);
    return true;
}

bool saved_enter_rank(struct relay_rank *rank)
{
    struct relay_mailbox *mailbox = &rank->mailbox;

    if (!mailbox->job->entry.ledger)
        return true;
    if (!ledger_enter(mailbox->job->entry.ledger, &mailbox->entry, LEDGER_RANK, rank, saved_rank))
        return false;
    log_outlive(&mailbox->log, &mailbox->entry);
    return true;
}
