/* The roof: drives connections for the engine, gives each frame to its handler, and tells those
 * concerned of connections that ended and logs that were given up. */
#include "relay/core/core.h"
#include "relay/core/copy_in.h"
#include "relay/core/copy_out.h"
#include "relay/core/cover.h"
#include "relay/core/cut.h"
#include "relay/core/decisions.h"
#include "relay/core/link.h"
#include "relay/core/recv.h"
#include "relay/core/remake.h"
#include "relay/core/resume.h"
#include "relay/core/share.h"
#include "relay/core/trim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct relay_core {
    struct relay_memory memory;
    struct relay_pool pool; /* of what is kept for any job */
    struct cw_relay_stats stats;
    struct conn_set conns;
    struct mailbox_shared shared;
    struct job_set jobs;
    struct decisions decisions;
    struct ledger ledger;  /* where something outlives the process */
    struct remake *remake; /* NULL: nothing was left, or all is taken up */
    bool suspends;         /* there may be sessions that are suspended */
};

static void receive_hello(struct relay_conn *conn, const uint8_t *body)
{
    recv_hello(&conn->set->core->jobs, conn, body);
}

/* What may be asked of the relay, and in which states of the connection. */
static const struct {
    void (*receive)(struct relay_conn *conn, const uint8_t *body);
    unsigned states;
    bool whole; /* the variable part is wanted with the fixed one; the handler consumes it */
} handlers[CW_FRAME_TYPES] = {
    [CW_FRAME_HELLO] = {receive_hello, CONN_NEW},
    [CW_FRAME_ACK] = {recv_ack, CONN_RANK | CONN_REPEATING | CONN_DISPATCHER | CONN_LINK |
                                    CONN_COPY | CONN_COPIED},
    [CW_FRAME_REFUSED] = {recv_copy_refused, CONN_COPIED, true},
    [CW_FRAME_SEND] = {recv_send, CONN_RANK | CONN_REPEATING},
    [CW_FRAME_SEND_DATA] = {recv_send_data, CONN_RANK | CONN_REPEATING},
    [CW_FRAME_RECV] = {recv_recv, CONN_RANK},
    [CW_FRAME_MRECV] = {recv_mrecv, CONN_RANK | CONN_REPEATING},
    [CW_FRAME_PROBE] = {recv_probe, CONN_RANK},
    [CW_FRAME_CANCEL] = {recv_cancel, CONN_RANK},
    [CW_FRAME_BYE] = {recv_bye, CONN_RANK},
    [CW_FRAME_TAKEN] = {recv_taken, CONN_RANK},
    [CW_FRAME_READINGS] = {recv_readings, CONN_RANK, true},
    [CW_FRAME_POINT] = {recv_point, CONN_RANK},
    [CW_FRAME_LIVE] = {recv_live, CONN_REPEATING},
    [CW_FRAME_MATCHED] = {recv_matched, CONN_RANK | CONN_REPEATING},
    [CW_FRAME_ROOM] = {recv_room, CONN_RANK | CONN_REPEATING},
    [CW_FRAME_COUNTED] = {recv_counted, CONN_RANK},
    [CW_FRAME_UNLOGGED] = {recv_unlogged, CONN_RANK | CONN_REPEATING},
    [CW_FRAME_STATS_ASK] = {recv_stats_ask, CONN_DISPATCHER},
    [CW_FRAME_ROUTE] = {recv_route, CONN_DISPATCHER},
    [CW_FRAME_LINK] = {recv_link, CONN_DISPATCHER, true},
    [CW_FRAME_CHECKPOINT] = {recv_checkpoint, CONN_DISPATCHER},
    [CW_FRAME_TRIM] = {recv_trim, CONN_DISPATCHER},
    [CW_FRAME_CUT] = {recv_cut, CONN_DISPATCHER},
    [CW_FRAME_RANK_END] = {recv_rank_end, CONN_DISPATCHER},
    [CW_FRAME_JOB_END] = {recv_job_end, CONN_DISPATCHER},
    [CW_FRAME_FORWARD] = {recv_forward, CONN_LINK},
    [CW_FRAME_FORWARD_DATA] = {recv_forward_data, CONN_LINK},
    [CW_FRAME_FORWARD_END] = {recv_forward_end, CONN_LINK},
    [CW_FRAME_FORWARD_SENT] = {recv_forward_sent, CONN_LINK},
    [CW_FRAME_COPY] = {recv_copy, CONN_DISPATCHER},
    [CW_FRAME_COVER] = {recv_cover, CONN_DISPATCHER},
    [CW_FRAME_COPY_CLOSE] = {recv_copy_close, CONN_DISPATCHER},
    [CW_FRAME_COPY_PART] = {recv_copy_part, CONN_COPY},
    [CW_FRAME_COPY_ACK] = {recv_copy_ack, CONN_COPIED},
};

/* Takes over the memory that outlives the process. False: no memory to read what was left there. */
static bool open_ledger(struct relay_core *core, const struct relay_core_config *config)
{
    struct ledger_memory *memory = config->ledger;
    bool left = ledger_open(&core->ledger, memory, config->region.size);

    core->memory.supply.carved_note = &memory->header.carved;
    if (config->journal.number > 0 || config->journal.copies) {
        if (store_keep_journal(&core->shared.store, &config->journal) < 0)
            return false;
        core->ledger.commit = &core->shared.store.commit;
    }
    if (!left)
        return true;
    store_return_begin(&core->shared.store);
    core->remake = remake_new(&core->jobs);
    return core->remake != NULL;
}

static void job_ends(struct relay_job *job)
{
    copy_out_end(job);
    copy_in_end(job);
}

struct relay_core *relay_core_new(const struct relay_core_config *config)
{
    struct relay_core *core = calloc(1, sizeof(*core));

    if (!core)
        return NULL;
    if (relay_memory_init(&core->memory, config->memory_max, &config->region, &core->stats) < 0) {
        free(core);
        return NULL;
    }
    core->pool = (struct relay_pool){.memory = &core->memory, .modest = true};
    conn_set_init(&core->conns, core, &core->pool, &core->stats);
    mailbox_shared_init(&core->shared, &core->pool, config->ledger ? &core->ledger : NULL,
                        config->log_memory, config->log_disk);
    core->conns.store = &core->shared.store;
    core->jobs = (struct job_set){.memory = &core->memory,
                                  .conns = &core->conns,
                                  .shared = &core->shared,
                                  .decisions = &core->decisions,
                                  .key = config->key,
                                  .incarnation = config->incarnation ? config->incarnation : 1,
                                  .on_end = job_ends};
    decisions_init(&core->decisions, &config->channel);
    core->memory.relieve = share_relieve;
    core->memory.ctx = &core->jobs;
    if (!copy_in_open(&core->jobs, config->copies) ||
        (config->ledger && !open_ledger(core, config))) {
        relay_core_free(core);
        return NULL;
    }
    return core;
}

void relay_core_free(struct relay_core *core)
{
    if (core->remake)
        remake_free(core->remake);
    ledger_forget_left(&core->ledger, &core->memory.supply);
    while (!LIST_EMPTY(&core->conns.all))
        relay_conn_close(LIST_FIRST(&core->conns.all), "the relay ends");
    while (!LIST_EMPTY(&core->jobs.all))
        job_free(LIST_FIRST(&core->jobs.all));
    mailbox_shared_fini(&core->shared);
    free(core->jobs.copies);
    relay_memory_fini(&core->memory);
    assert(core->stats.memory_now == 0);
    free(core);
}

uint32_t relay_core_jobs(const struct relay_core *core)
{
    return core->jobs.count;
}

struct cw_relay_stats *relay_core_stats(struct relay_core *core)
{
    return &core->stats;
}

/* --- what ends -----------------------------------------------------------------------------------
 */

/* Nothing more is said or heard on it, now or later: its session ends. */
static void close_conn(struct relay_conn *conn, const char *why)
{
    struct relay_job *job = conn->job;

    job_detach(conn);
    if (job && job->links[conn->peer].conn == conn) {
        link_down(conn);
        if (!conn->told)
            job_notice(job, CW_NOTICE_UNLINKED, UINT32_MAX,
                       "the link to relay %u of the job broke: %s", conn->peer, why);
    }
    if (job && job->copies[conn->peer].conn == conn) {
        job->copies[conn->peer].conn = NULL;
        copy_out_down(job, conn->peer, conn->told ? NULL : why);
    }
    if (job)
        copy_in_down(conn, conn->told ? NULL : why);
    if (conn->rank && !conn->told)
        job_notice(job, CW_NOTICE_RANK_LOST, conn->rank_number, "%s", why);
    if (job && job->dispatcher == conn) {
        job->dispatcher = NULL;
        conn->job = NULL;
        job_free(job);
    }
    cw_stranger_leave(&conn->stranger);
    conn_forget(conn);
}

/* Its dispatcher is told, unless it was before. */
static void tell_refused(struct relay_conn *conn)
{
    if (conn->told || !conn->job)
        return;
    if (conn->job->links[conn->peer].conn == conn)
        job_notice(conn->job, CW_NOTICE_FATAL, UINT32_MAX, "relay %u of the job was refused: %s",
                   conn->peer, conn->why);
    if (conn->job->copies[conn->peer].conn == conn)
        copy_out_failed(conn->job, "the copy at relay %u of the job: %s", conn->peer, conn->why);
    copy_in_down(conn, conn->why);
    if (conn->rank)
        job_notice(conn->job, CW_NOTICE_RANK_LOST, conn->rank_number, "refused by its relay: %s",
                   conn->why);
}

/* It is of a copy, whose end ends no job. */
static bool is_copy(const struct relay_conn *conn)
{
    return conn->job && (conn->job->copies[conn->peer].conn == conn ||
                         copy_in_session(conn->job, conn->peer) == conn);
}

static void tell_ended(struct relay_conn *conn)
{
    if (conn->ended == CONN_REFUSED || (conn->ended == CONN_NO_MEMORY && is_copy(conn)))
        tell_refused(conn);
    else if (conn->ended == CONN_NO_MEMORY && conn->job && conn->job->dispatcher != conn)
        job_notice(conn->job, CW_NOTICE_FATAL, conn->rank_number, "%s", conn->why);
    conn->told |= conn->ended != CONN_LOST;
    conn->ended = CONN_NOT_ENDED;
    if (conn->suspended) /* no engine has it to close it */
        close_conn(conn, conn->why);
}

/* Follows everything by which a connection may have ended, or a log been given up. */
static void settle_ends(struct relay_core *core)
{
    struct relay_mailbox *mailbox;
    struct relay_conn *conn;

    store_trim(&core->shared.store);
    while (!core->remake && trim_is_hopeless(&core->shared) && share_logs(&core->jobs))
        ;
    while ((mailbox = mailbox_next_unlogged(&core->shared)))
        job_notice(mailbox->job, CW_NOTICE_UNLOGGED, mailbox->rank, "%s", mailbox->unlogged_why);
    while ((conn = conn_next_ended(&core->conns)))
        tell_ended(conn);
}

/* Follows everything that the engine has asked for: what came of it counts. */
static void finish(struct relay_core *core)
{
    settle_ends(core);
    if (trim_settle(&core->shared))
        settle_ends(core);
    if (!core->shared.store.ledger || core->remake)
        return;
    copies_pay_all(&core->shared.copies);
    ledger_step(&core->ledger);
    store_settle(&core->shared.store);
}

bool relay_core_covers(const struct relay_core *core)
{
    return cover_is_due(&core->jobs);
}

void relay_core_looked(struct relay_core *core)
{
    cover_answer(&core->jobs);
    finish(core);
}

bool relay_conn_is_rank(const struct relay_conn *conn)
{
    return conn->rank != NULL;
}

bool relay_core_return(struct relay_core *core, struct relay_returned *returned)
{
    struct log_store *store = &core->shared.store;

    if (!core->remake)
        return true;
    if (!remake_step(core->remake, returned)) {
        store_end_round(store);
        return false;
    }
    remake_free(core->remake);
    core->remake = NULL;
    core->suspends = true;
    ledger_forget_left(&core->ledger, &core->memory.supply);
    store_returned(store);
    store_end_round(store);
    commit_begin(&store->commit);
    finish(core);
    return true;
}

/* --- connections ---------------------------------------------------------------------------------
 */

struct relay_conn *relay_conn_open(struct relay_core *core, const uint8_t nonce[CW_NONCE_SIZE],
                                   uint64_t now_ns, void *owner)
{
    struct relay_conn *conn = conn_new(&core->conns, now_ns, owner);
    struct cw_challenge challenge;

    if (!conn)
        return NULL;
    conn_make_room(&core->conns, core->jobs.ranks);
    conn->hello.outside = true;
    challenge = cw_stranger_enter(&core->conns.strangers, &conn->stranger, conn, nonce);
    conn_frame(conn, CW_FRAME_CHALLENGE, &challenge, sizeof(challenge));
    finish(core);
    return conn;
}

/* It cannot be opened, or not again. */
static void give_up_link(struct relay_job *job, const struct relay_dialled *dialled,
                         const char *why)
{
    struct relay_conn *suspended = link_suspended(job, dialled);
    uint32_t relay = dialled->peer;

    if (dialled->copies && suspended)
        copy_out_again(job, relay); /* that relay may have been killed, and begun anew */
    else if (dialled->copies)
        copy_out_down(job, relay, why);
    else if (suspended)
        close_conn(suspended, why);
    else
        link_failed(job, relay, why);
}

static void act_on_input(struct relay_conn *conn);

struct relay_conn *relay_conn_dialled(struct relay_core *core, const struct relay_dialled *dialled,
                                      uint64_t now_ns, void *owner)
{
    struct relay_job *job = link_dialled(&core->jobs, dialled);
    struct relay_conn *conn = conn_new(&core->conns, now_ns, owner);

    if (!conn) {
        if (job)
            give_up_link(job, dialled, "no memory");
    } else if (!job) {
        conn_end(conn);
    } else if (dialled->resumed) {
        resume_dialled(conn, link_suspended(job, dialled), dialled->received);
    } else {
        conn->session = dialled->session;
        (dialled->copies ? copy_out_up : link_up)(conn, job, dialled->peer);
    }
    finish(core);
    if (conn)
        act_on_input(conn); /* what an earlier connection brought */
    finish(core);
    return conn;
}

void relay_core_undialled(struct relay_core *core, const struct relay_dialled *dialled)
{
    struct relay_job *job = link_dialled(&core->jobs, dialled);

    if (job)
        give_up_link(job, dialled, dialled->failure);
    finish(core);
}

bool relay_core_next_dial(struct relay_core *core, struct relay_dial *dial)
{
    return link_next_dial(&core->jobs, dial);
}

/* What waited for something to be read from disk goes on. */
static void go_on(struct relay_core *core)
{
    struct relay_mailbox *mailbox;

    mailbox_wake(&core->shared);
    while ((mailbox = mailbox_next_woken(&core->shared)))
        mailbox_pump(mailbox);
    store_end_round(&core->shared.store);
}

/* What is told to others once the commit has ended of which a part is to be made now may have come
 * of what ranks decided, until then, where we do not hear of it: each part has what changed since
 * the one before. */
static void before_commit(struct relay_core *core)
{
    if (core->remake || !commit_is_next(&core->shared.store.commit))
        return;
    decisions_take_all(&core->jobs);
    finish(core);
}

/* What has changed goes to the copies. Returns whether something was queued for them. */
static bool make_copies(struct relay_core *core)
{
    struct relay_job *job = LIST_FIRST(&core->jobs.all);
    bool any = core->shared.store.commit.copying && !core->remake && job;

    if (!any)
        return false;
    before_commit(core);
    assert(!core->ledger.changed); /* a commit is of whole steps */
    copies_pay_all(&core->shared.copies);
    any = copy_out_make(job);
    finish(core); /* there may have been no memory */
    return any;
}

bool relay_core_next_io(struct relay_core *core, struct relay_log_io *io)
{
    struct commit *commit = &core->shared.store.commit;
    bool wanted;

    before_commit(core);
    copies_pay_all(&core->shared.copies);
    assert(core->remake || !core->ledger.changed); /* a commit is of whole steps */
    if (!core->remake && commit_next(commit, io)) {
        if (commit->ends)
            conn_set_note(&core->conns, commit->number);
        return true;
    }
    wanted = store_next_io(&core->shared.store, io);
    if (core->ledger.changed) /* a log may have been given up for what is to be read */
        finish(core);
    return wanted;
}

static void tell_unsynced(struct relay_core *core, int error)
{
    struct relay_job *job;

    LIST_FOREACH (job, &core->jobs.all, of_set)
        job_notice(job, CW_NOTICE_UNSYNCED, UINT32_MAX, "writing the journal (--log-dir): %s",
                   strerror(error));
}

static void commit_came(struct relay_core *core, int error)
{
    if (!commit_done(&core->shared.store.commit, error))
        return;
    store_committed(&core->shared.store);
    conn_set_free(&core->conns, core->shared.store.commit.acked);
    if (error)
        tell_unsynced(core, error);
}

void relay_core_io_done(struct relay_core *core, const struct relay_log_done *done)
{
    if (done->segment)
        store_io_done(&core->shared.store, done);
    else
        commit_came(core, done->error);
    if (core->shared.store.arrived && !core->remake)
        go_on(core);
    finish(core);
}

bool relay_core_next_surplus(struct relay_core *core, struct relay_pages *pages)
{
    return supply_next_surplus(&core->memory.supply, pages) ||
           copy_in_next_surplus(&core->jobs, pages);
}

void *relay_conn_owner(const struct relay_conn *conn)
{
    return conn->owner;
}

void relay_conn_close(struct relay_conn *conn, const char *why)
{
    struct relay_core *core = conn->set->core;

    close_conn(conn, why);
    finish(core);
}

/* Whether its session can go on without it. */
static bool may_suspend(const struct relay_conn *conn)
{
    const unsigned open =
        CONN_RANK | CONN_REPEATING | CONN_DISPATCHER | CONN_LINK | CONN_COPY | CONN_COPIED;

    return conn->job && conn->job->resume_ns > 0 && (conn->state & open) &&
           !(conn->rank && mailbox_is_over(&conn->rank->mailbox));
}

void relay_conn_broken(struct relay_conn *conn, const char *why, const struct iovec *unread,
                       int count)
{
    struct relay_core *core = conn->set->core;

    if (count < 0 || !may_suspend(conn) || conn_suspend(conn, unread, count) < 0) {
        relay_conn_close(conn, why);
        return;
    }
    snprintf(conn->why, sizeof(conn->why), "%s", why);
    core->suspends = true;
    if (conn->state & (CONN_LINK | CONN_COPIED))
        link_want_again(conn);
    finish(core);
}

bool relay_core_outlives(const struct relay_core *core)
{
    return core->shared.store.ledger != NULL;
}

size_t relay_conn_held(const struct relay_conn *conn)
{
    return conn->end - conn->start;
}

void relay_conn_set_rings(struct relay_conn *conn)
{
    conn_set_rings(conn);
}

/* --- input ---------------------------------------------------------------------------------------
 */

int relay_conn_space(struct relay_conn *conn, void **at, size_t *size)
{
    struct relay_core *core = conn->set->core;
    int failed = conn_space(conn, at, size);

    if (failed || core->ledger.changed) /* a log may have been given up for it */
        finish(core);
    return failed;
}

static bool permitted(const struct relay_conn *conn, uint8_t type)
{
    return handlers[type].receive && (handlers[type].states & conn->state);
}

static void refuse_type(struct relay_conn *conn, uint8_t type)
{
    conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s frame is not allowed here", cw_frame_name(type));
}

/* Acts on the frame at the start of what is there. Returns false when it is not complete. */
static bool take_frame(struct relay_conn *conn)
{
    uint32_t there = conn->end - conn->start;
    const uint8_t *at;
    struct cw_header header;
    struct cw_err err;
    uint32_t fixed;
    uint32_t needed;

    if (there < CW_FRAME_HEADER)
        return false;
    at = conn_input(conn);
    fixed = needed = cw_frame_fixed(at[4]);
    if (at[4] < CW_FRAME_TYPES && handlers[at[4]].whole)
        needed = cw_frame_length(at);
    if (there < CW_FRAME_HEADER + needed) {
        /* what can never be a frame is refused before the rest of it is waited for */
        if (cw_frame_check(at, &header, &err) < 0)
            conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s", err.text);
        else if (!permitted(conn, header.type))
            refuse_type(conn, header.type);
        return false;
    }
    if (cw_frame_accept(&conn->session, at, &header, &err) < 0) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s", err.text);
        return false;
    }
    if (!permitted(conn, header.type)) {
        refuse_type(conn, header.type);
        return false;
    }
    conn->set->stats->frames_in++;
    conn->owes_ack |= header.type != CW_FRAME_ACK;
    conn->start += CW_FRAME_HEADER + fixed;
    conn->payload_left = header.length - fixed;
    handlers[header.type].receive(conn, at + CW_FRAME_HEADER);
    return true;
}

static bool take_payload(struct relay_conn *conn)
{
    uint32_t size = conn_take(conn);

    if (size == 0)
        return false;
    if (conn->state == CONN_COPY)
        copy_in_input(conn, conn_input(conn) - size, size);
    else
        transfer_input(conn->source, conn, conn_input(conn) - size, size);
    return true;
}

static void act_on_input(struct relay_conn *conn)
{
    struct relay_core *core = conn->set->core;
    bool more = true;

    ledger_change(&conn->entry);
    while (more && conn->state != CONN_CLOSING && !conn->broken) {
        more = conn->payload_left ? take_payload(conn) : take_frame(conn);
        settle_ends(core);
    }
    if (conn->state == CONN_CLOSING) {
        conn->start = conn->end;
    } else if (!conn->broken && cw_session_owes_ack(&conn->session, !conn->rings)) {
        conn_ack(conn);
        settle_ends(core);
    }
    conn_input_done(conn);
}

void relay_conn_input(struct relay_conn *conn, size_t size)
{
    conn_arrived(conn, conn->broken ? 0 : size); /* a network that fails loses it */
    act_on_input(conn);
    finish(conn->set->core);
}

/* What it says is logged, and there is no room now. A rank that repeats what it did adds nothing,
 * and its log cannot be trimmed before it is done. */
static bool waits_for_room(struct relay_conn *conn, uint64_t now_ns)
{
    struct mailbox_shared *shared = &conn->set->core->shared;

    if (!(conn->state & (CONN_RANK | CONN_LINK)) || !conn->job || !conn->job->log)
        return false;
    if (store_waits(&shared->store))
        return true;
    if (conn->rank && (!conn->rank->mailbox.feed.direct || conn->rank->mailbox.asked))
        return false;
    return trim_is_awaited(shared, now_ns);
}

bool relay_conn_wants_input(struct relay_conn *conn, uint64_t now_ns)
{
    if (conn->state == CONN_CLOSING || conn->broken || waits_for_room(conn, now_ns))
        return false;
    return !conn->rank || transfer_wants_input(&conn->rank->transfer, now_ns);
}

/* --- cut-through ---------------------------------------------------------------------------------
 */

size_t relay_conn_before_cut(const struct relay_conn *conn, size_t there, relay_peek *peek,
                             void *ctx)
{
    return cut_before(conn, there, peek, ctx);
}

struct relay_conn *relay_conn_cut_to(struct relay_conn *conn)
{
    return cut_to(conn);
}

struct relay_cut relay_conn_cut(struct relay_conn *conn, size_t size)
{
    struct relay_cut cut = cut_begin(conn, size);

    finish(conn->set->core);
    return cut;
}

void relay_cut_done(const struct relay_cut *cut)
{
    if (!cut->block)
        return;
    cut->block->filling--;
    relay_block_release(cut->block);
}

/* --- output --------------------------------------------------------------------------------------
 */

int relay_conn_output(struct relay_conn *conn, struct iovec *iov, int max)
{
    /* nothing is told to the world before its step is done */
    assert(!conn->set->core->ledger.changed);
    return conn_output(conn, iov, max);
}

void relay_conn_written(struct relay_conn *conn, size_t size)
{
    conn_written(conn, size);
    if (conn->rank && conn->rank->mailbox.feed.conn == conn)
        mailbox_pump(&conn->rank->mailbox);
    finish(conn->set->core);
    if (conn_done(conn))
        conn_ready(conn);
}

bool relay_conn_has_output(const struct relay_conn *conn)
{
    return conn_has_output(conn);
}

bool relay_conn_done(const struct relay_conn *conn)
{
    return conn_done(conn);
}

struct relay_conn *relay_core_next_ready(struct relay_core *core)
{
    struct relay_conn *conn = conn_next_ready(&core->conns);

    return conn || !make_copies(core) ? conn : conn_next_ready(&core->conns);
}

void relay_core_settle(struct relay_core *core)
{
    copies_pay_all(&core->shared.copies);
}

/* --- time ----------------------------------------------------------------------------------------
 */

/* A connection that waits for HELLO, or to be closed. */
static void tick_waiting(struct relay_conn *conn, uint64_t now_ns)
{
    if (now_ns - conn->opened_ns <= CW_STRANGER_NS)
        return;
    if (conn->state == CONN_NEW)
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "no HELLO for %llu s",
                    CW_STRANGER_NS / 1000000000ull);
    else
        conn_discard(conn);
    conn->opened_ns = now_ns;
    conn_ready(conn);
}

/* A session. An idle one keeps nothing. */
static void tick_open(struct relay_conn *conn, uint64_t now_ns)
{
    conn->opened_ns = now_ns;
    if (conn->owes_ack && conn->job->resume_ns > 0 && !conn->rings && !conn->broken)
        conn_ack(conn);
}

static uint64_t suspended_max_ns(const struct relay_conn *conn)
{
    return conn == conn->job->dispatcher ? conn->job->orphan_ns : conn->job->resume_ns;
}

/* Returns whether its time is up. */
static bool tick_suspended(struct relay_conn *conn, uint64_t now_ns)
{
    if (conn->suspended_ns == 0)
        conn->suspended_ns = now_ns;
    return now_ns - conn->suspended_ns > suspended_max_ns(conn);
}

static void give_up(struct relay_conn *conn)
{
    char why[CW_TEXT_MAX + 1];

    snprintf(why, sizeof(why), "%.*s; it was not resumed for %llu ms", CW_TEXT_MAX / 2, conn->why,
             (unsigned long long)(suspended_max_ns(conn) / 1000000));
    close_conn(conn, why);
}

/* The first session whose time is up; with it others may end. NULL: none. */
static struct relay_conn *tick_all(struct relay_core *core, uint64_t now_ns)
{
    struct relay_conn *conn;

    core->suspends = false;
    LIST_FOREACH (conn, &core->conns.all, of_set) {
        if (conn->suspended) {
            core->suspends = true;
            if (tick_suspended(conn, now_ns))
                return conn;
        } else if (conn->state == CONN_NEW || conn->state == CONN_CLOSING) {
            tick_waiting(conn, now_ns);
        } else {
            tick_open(conn, now_ns);
        }
    }
    return NULL;
}

void relay_core_tick(struct relay_core *core, uint64_t now_ns)
{
    struct relay_conn *late;

    while ((late = tick_all(core, now_ns)))
        give_up(late);
    commit_want(&core->shared.store.commit);
    finish(core);
}

int relay_core_tick_ms(const struct relay_core *core)
{
    return core->suspends ? RELAY_TICK_SUSPENDED_MS : RELAY_TICK_MS;
}
