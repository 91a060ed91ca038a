#include "relay/core/remake.h"
#include "relay/core/decisions.h"
#include "relay/core/link.h"
#include "relay/core/remake_mailbox.h"
#include "relay/core/route.h"

#include <stdio.h>
#include <stdlib.h>

/* A rank that was left. */
struct left_rank {
    struct remake_mailbox mailbox;
    struct relay_rank *rank; /* NULL: its job is lost */
    const struct saved_rank *saved;
    uint32_t payload_left; /* of the frame at hand, of the message that it is sending */
};

struct remake {
    struct job_set *set;
    struct ledger *ledger;
    bool *taken; /* for each cell: somebody has it */
    struct left_rank *ranks;
    uint32_t rank_count;
    uint32_t next;        /* whose mailbox is read */
    uint64_t memory_seen; /* of logs, when it was last waited for ... */
    uint64_t clean_seen;  /* ... as in the store */
    bool begun;
};

struct remake *remake_new(struct job_set *set)
{
    struct ledger *ledger = set->shared->store.ledger;
    uint32_t cells = ledger->memory->header.cells_used;
    struct remake *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    *r = (struct remake){.set = set,
                         .ledger = ledger,
                         .memory_seen = UINT64_MAX,
                         .taken = calloc(cells + 1, sizeof(*r->taken)),
                         .ranks = calloc(cells + 1, sizeof(*r->ranks))};
    set->relieving = true; /* no job gives way while all of them are being read */
    if (r->taken && r->ranks && ledger_find_left(ledger, &set->memory->supply) == CW_OK)
        return r;
    remake_free(r);
    return NULL;
}

/* What has been taken up of it stays. */
void remake_free(struct remake *r)
{
    for (uint32_t i = 0; i < r->rank_count; i++)
        if (r->ranks[i].rank)
            remake_mailbox_end(&r->ranks[i].mailbox);
    r->set->relieving = false;
    free(r->taken);
    free(r->ranks);
    free(r);
}

/* --- jobs ----------------------------------------------------------------------------------------
 */

static struct relay_job *job_of(const struct remake *r, uint32_t cell)
{
    struct relay_job *job;

    LIST_FOREACH (job, &r->set->all, of_set)
        if (job->entry.cell == cell)
            break;
    return job;
}

/* `rank`: the one for whose sake; SAVED_NONE: none. */
static void tell_lost(struct relay_returned *returned, uint32_t rank, const char *why)
{
    char who[32] = "";

    if (rank != SAVED_NONE)
        snprintf(who, sizeof(who), "rank %u: ", rank);
    returned->lost++;
    snprintf(returned->why, sizeof(returned->why), "%s%s", who, why);
}

/* Nobody could go on with it, whoever read what was left. */
static void drop(struct remake *r, struct relay_job *job, struct relay_returned *returned,
                 uint32_t rank, const char *why)
{
    tell_lost(returned, rank, why);
    for (uint32_t i = 0; i < r->rank_count; i++) {
        struct left_rank *left = &r->ranks[i];

        if (!left->rank || left->rank->mailbox.job != job)
            continue;
        remake_mailbox_end(&left->mailbox);
        left->rank = NULL;
    }
    job_free(job);
    store_settle(&r->set->shared->store); /* there is memory again for the others */
}

/* What was left of it cannot be read, or there is no memory for it: another time it may be. */
static void lose(struct remake *r, struct relay_job *job, struct relay_returned *returned,
                 uint32_t rank, const char *why)
{
    returned->unread++;
    drop(r, job, returned, rank, why);
}

static void return_job(struct remake *r, uint32_t cell, const struct saved_job *saved,
                       struct relay_returned *returned)
{
    bool fits = saved->ranks > 0 && saved->ranks <= CW_RANKS_MAX &&
                r->set->count < RELAY_JOBS_MAX && !job_find(r->set, saved->id);
    struct relay_job *job = fits ? job_new(r->set, saved->id, saved->ranks) : NULL;

    if (!job) {
        returned->unread++;
        tell_lost(returned, SAVED_NONE,
                  fits ? "there is no memory for it (--memory-max)" : "its state makes no sense");
        return;
    }
    job->log = true;
    job->channel = saved->channel;
    job->covers = saved->covers;
    job->cover = saved->cover;
    job->resume_ns = saved->resume_ns;
    job->orphan_ns = saved->orphan_ns;
    ledger_return(r->ledger, &job->entry, cell, job, saved_job);
    r->taken[cell] = true;
    if (route_return(job, saved->told) < 0)
        lose(r, job, returned, SAVED_NONE,
             "what its dispatcher told of other relays cannot be read");
}

static void return_jobs(struct remake *r, struct relay_returned *returned)
{
    for (uint32_t cell = 0; cell < r->ledger->memory->header.cells_used; cell++) {
        const struct saved_job *saved = ledger_find(r->ledger, cell, LEDGER_JOB);

        if (saved)
            return_job(r, cell, saved, returned);
    }
}

/* --- ranks ---------------------------------------------------------------------------------------
 */

static void return_rank(struct remake *r, uint32_t cell, const struct saved_rank *saved,
                        struct relay_returned *returned)
{
    struct relay_job *job = job_of(r, saved->job);
    struct left_rank *left = &r->ranks[r->rank_count];
    struct relay_mailbox *mailbox;

    if (!job || saved->rank >= job->ranks || job->ranked[saved->rank])
        return;
    left->rank = job_rank_return(job, saved->rank, cell);
    if (!left->rank) {
        lose(r, job, returned, saved->rank, "there is no memory for it (--memory-max)");
        return;
    }
    r->taken[cell] = true;
    r->rank_count++;
    left->saved = saved;
    mailbox = &left->rank->mailbox;
    remake_mailbox_begin(&left->mailbox, mailbox, &saved->points);
    mailbox->incarnation = saved->incarnation;
    mailbox->ended = saved->ended;
    mailbox->acts = saved->acts;
    mailbox->act_clock = saved->act_clock;
    mailbox->room = saved->room;
    mailbox->handed = saved->handed;
    mailbox->follow = saved->follow;
    mailbox->lost = saved->lost;
    mailbox->feed.away = true;
    job->settled = true;
    if (!saved->kept)
        drop(r, job, returned, saved->rank, "its log had been given up");
    else if (log_return(&mailbox->log, &mailbox->entry, saved->records, saved->payload,
                        saved->payload_solid, &saved->decided) < 0)
        lose(r, job, returned, saved->rank, "its log is not whole, or there is no memory for it");
}

static void return_ranks(struct remake *r, struct relay_returned *returned)
{
    for (uint32_t cell = 0; cell < r->ledger->memory->header.cells_used; cell++) {
        const struct saved_rank *saved = ledger_find(r->ledger, cell, LEDGER_RANK);

        if (saved)
            return_rank(r, cell, saved, returned);
    }
}

/* What is to be read has no memory to be read to: nothing has come of the last request, and none is
 * out. */
static bool waits_in_vain(struct remake *r)
{
    const struct log_store *store = &r->set->shared->store;
    bool same = store->memory_now == r->memory_seen && store->clean_now == r->clean_seen;

    r->memory_seen = store->memory_now;
    r->clean_seen = store->clean_now;
    return same && !store->arrived && store->out_count == 0;
}

/* False: something is being read from disk. */
static bool read_logs(struct remake *r, struct relay_returned *returned)
{
    for (; r->next < r->rank_count; r->next++) {
        struct left_rank *left = &r->ranks[r->next];
        enum chain_found found = left->rank ? remake_mailbox_step(&left->mailbox) : CHAIN_END;

        if (found == CHAIN_AWAY && !waits_in_vain(r))
            return false;
        if (found == CHAIN_AWAY)
            lose(r, left->rank->mailbox.job, returned, left->saved->rank,
                 "there is no memory to read its log from disk (--memory-max)");
        if (found == CHAIN_LOST)
            lose(r, left->rank->mailbox.job, returned, left->saved->rank, "its log cannot be read");
    }
    return true;
}

/* --- sessions ------------------------------------------------------------------------------------
 */

static struct left_rank *left_of(const struct remake *r, const struct relay_job *job,
                                 uint32_t number)
{
    for (uint32_t i = 0; i < r->rank_count && number != SAVED_NONE; i++) {
        struct left_rank *left = &r->ranks[i];

        if (left->rank && left->rank->mailbox.job == job && left->rank->mailbox.rank == number)
            return left;
    }
    return NULL;
}

/* The one whom the session speaks for. False: that makes no sense. */
static bool attach(struct relay_job *job, struct relay_conn *conn, const struct saved_conn *saved)
{
    struct relay_rank *rank = saved->rank < job->ranks ? job->ranked[saved->rank] : NULL;
    struct job_link *link = saved->peer < job->relays ? &job->links[saved->peer] : NULL;

    switch (saved->state) {
    case CONN_DISPATCHER:
        if (job->dispatcher)
            return false;
        job->dispatcher = conn;
        return true;
    case CONN_LINK:
        if (!link || link->conn || saved->peer == job->self)
            return false;
        link->conn = conn;
        link->linked = true;
        conn->peer = saved->peer;
        return true;
    default: /* RANK */
        if (!rank || rank->mailbox.feed.conn)
            return false;
        rank->mailbox.feed.conn = conn;
        conn->rank = rank;
        conn->rank_number = saved->rank;
        conn->anew = UINT64_MAX; /* until it is resumed */
        return true;
    }
}

static int return_out(struct relay_conn *conn, const struct saved_conn *saved)
{
    struct out_queue *out = &conn->out;

    if (saved->state != CONN_RANK)
        return out_return(out, conn->set->store, &conn->entry, &saved->out);
    out->front = out->acked = out->opened = out->reached = saved->out.end;
    return CW_OK;
}

/* The session waits to be resumed. Returns 0, CW_ENOMEM or CW_EPROTO. */
static int return_conn(struct remake *r, uint32_t cell, const struct saved_conn *saved,
                       struct relay_job *job)
{
    struct left_rank *source = left_of(r, job, saved->source);
    struct relay_conn *conn = conn_new(r->set->conns, 0, NULL);
    int failed;

    if (!conn)
        return CW_ENOMEM;
    conn->job = job;
    out_init(&conn->out, job->pool);
    ledger_return(r->ledger, &conn->entry, cell, conn, saved_conn);
    r->taken[cell] = true;
    conn->state = saved->state;
    conn->session = saved->session;
    conn->session.received = saved->acted;
    conn->payload_left = saved->payload_left;
    conn->source = source ? &source->rank->transfer : NULL;
    conn->owes_ack = saved->owes_ack;
    conn->suspended = true;
    snprintf(conn->why, sizeof(conn->why), "its relay was killed");
    failed = return_out(conn, saved);
    if (!failed && ((saved->payload_left > 0 && !source) || !attach(job, conn, saved)))
        failed = CW_EPROTO;
    if (!failed && saved->state == CONN_DISPATCHER)
        failed = out_make_vital(&conn->out);
    if (!failed && saved->state == CONN_LINK)
        link_want_again(conn);
    return failed;
}

static bool is_open(const struct saved_conn *saved)
{
    return saved->state == CONN_RANK || saved->state == CONN_DISPATCHER ||
           saved->state == CONN_LINK;
}

static void return_conns(struct remake *r, struct relay_returned *returned)
{
    for (uint32_t cell = 0; cell < r->ledger->memory->header.cells_used; cell++) {
        const struct saved_conn *saved = ledger_find(r->ledger, cell, LEDGER_CONN);
        struct relay_job *job = saved ? job_of(r, saved->job) : NULL;
        struct left_rank *source = job ? left_of(r, job, saved->source) : NULL;

        if (!job)
            continue;
        if (source)
            source->payload_left = saved->payload_left;
        if (is_open(saved) && return_conn(r, cell, saved, job) < 0)
            lose(r, job, returned, saved->rank, "a session cannot be taken up");
        else
            returned->sessions += is_open(saved);
    }
}

/* --- messages on their way -----------------------------------------------------------------------
 */

static bool return_transfer(struct remake *r, struct left_rank *sender)
{
    const struct saved_rank *saved = sender->saved;
    struct relay_job *job = sender->rank->mailbox.job;
    struct transfer *transfer = &sender->rank->transfer;
    struct left_rank *to = saved->to == SAVED_NONE ? NULL : left_of(r, job, saved->to);

    transfer->left = saved->left;
    if (saved->link < job->relays)
        transfer->link = &job->links[saved->link].conn;
    if (saved->to == SAVED_NONE)
        return true;
    if (!to)
        return false;
    transfer->to = &to->rank->mailbox;
    transfer->message =
        remake_mailbox_claim(&to->mailbox, saved->record, saved->left + sender->payload_left);
    return transfer->message != NULL;
}

/* A frame of a session that is not taken up will come again, or never. */
static void forget_frame(struct left_rank *sender)
{
    struct transfer *transfer = &sender->rank->transfer;
    const struct relay_job *job = sender->rank->mailbox.job;
    const struct relay_conn *conn;

    LIST_FOREACH (conn, &job->set->conns->all, of_set)
        if (conn->source == transfer)
            return;
    transfer->left += sender->payload_left;
}

static void return_transfers(struct remake *r, struct relay_returned *returned)
{
    for (uint32_t i = 0; i < r->rank_count; i++) {
        struct left_rank *left = &r->ranks[i];

        if (!left->rank)
            continue;
        if (!return_transfer(r, left))
            lose(r, left->rank->mailbox.job, returned, left->saved->rank,
                 "the message that it is sending cannot be found");
        else if (left->payload_left > 0)
            forget_frame(left);
    }
}

/* --- all of it -----------------------------------------------------------------------------------
 */

static void drop_others(const struct remake *r)
{
    for (uint32_t cell = 0; cell < r->ledger->memory->header.cells_used; cell++)
        if (!r->taken[cell])
            ledger_drop(r->ledger, cell);
}

static void lose_headless(struct remake *r, struct relay_returned *returned)
{
    struct relay_job *next;

    for (struct relay_job *job = LIST_FIRST(&r->set->all); job; job = next) {
        next = LIST_NEXT(job, of_set);
        if (!job->dispatcher)
            drop(r, job, returned, SAVED_NONE, "its dispatcher had gone");
    }
}

static void return_decisions(struct remake *r, struct relay_returned *returned)
{
    struct relay_job *next;

    for (struct relay_job *job = LIST_FIRST(&r->set->all); job; job = next) {
        next = LIST_NEXT(job, of_set);
        if (decisions_return(job) < 0)
            lose(r, job, returned, SAVED_NONE, "there is no memory for it (--memory-max)");
    }
}

bool remake_step(struct remake *r, struct relay_returned *returned)
{
    if (!r->begun) {
        return_jobs(r, returned);
        return_ranks(r, returned);
        r->begun = true;
    }
    if (!read_logs(r, returned))
        return false;
    return_conns(r, returned);
    return_transfers(r, returned);
    lose_headless(r, returned);
    return_decisions(r, returned);
    drop_others(r);
    returned->jobs = r->set->count;
    return true;
}
