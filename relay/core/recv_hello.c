/* HELLO: who is there, and may it come in? */
#include "relay/core/bounds.h"
#include "relay/core/copy_in.h"
#include "relay/core/copy_out.h"
#include "relay/core/link.h"
#include "relay/core/recv.h"
#include "relay/core/resume.h"
#include "relay/core/saved.h"

#include <string.h>

static void welcome(struct relay_conn *conn, const struct cw_hello *hello, const uint8_t *key,
                    struct cw_welcome *answer)
{
    cw_cred_mac_welcome(answer->mac, key, answer, hello, conn->stranger.nonce);
    conn_frame(conn, CW_FRAME_WELCOME, answer, sizeof(*answer));
}

/* [MPICH-V] 3.2: the channel memory handles a restarting task by "sending the number of messages
 * sent by the failed execution", and by sending again what was sent to it. */
static struct cw_welcome welcome_of(const struct relay_rank *rank)
{
    const struct relay_mailbox *mailbox = &rank->mailbox;

    return (struct cw_welcome){
        .acts = mailbox->acts,
        .event = mailbox->event,
        .missing = rank->transfer.left,
        .clock = mailbox->act_clock,
        .flags = (mailbox->log.kept ? CW_WELCOME_LOG : 0) |
                 (mailbox_has_past(mailbox) ? CW_WELCOME_REPLAY : 0) |
                 (mailbox->lost ? CW_WELCOME_DECIDED : 0),
    };
}

static uint64_t resume_ns_of(const struct cw_hello *hello)
{
    uint32_t ms = hello->resume_ms < CW_RESUME_MAX_MS ? hello->resume_ms : CW_RESUME_MAX_MS;

    return ms * 1000000ull;
}

/* Nobody else needs so long to come back: what is left to a successor is of the dispatcher alone.
 */
static uint64_t orphan_ns_of(const struct cw_hello *hello)
{
    uint64_t ms = hello->event < CW_RESUME_MAX_MS ? hello->event : CW_RESUME_MAX_MS;
    uint64_t resume_ns = resume_ns_of(hello);

    return ms * 1000000ull > resume_ns ? ms * 1000000ull : resume_ns;
}

/* Nobody will resume the session of the dispatcher before: its queue, and what of its frames has
 * not come whole, go with it. */
static void take_over(struct relay_job *job, struct relay_conn *conn)
{
    struct relay_conn *old = job->dispatcher;

    job->dispatcher = conn;
    old->job = NULL;
    conn_forget(old);
}

/* Another process goes on as the job's dispatcher, with a session of its own. */
static void hello_successor(struct relay_job *job, struct relay_conn *conn,
                            const struct cw_hello *hello, const uint8_t *key)
{
    struct cw_welcome answer = {0};

    if (!job || !job->dispatcher || job->dispatcher->state != CONN_DISPATCHER ||
        job->resume_ns == 0) {
        conn_refuse(conn, CW_REFUSED_JOB, "the relay has no such job (it may have ended)");
        return;
    }
    if (hello->rank != job->ranks) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "the job has %u ranks, not %u", job->ranks,
                    hello->rank);
        return;
    }
    if (!job->dispatcher->suspended) {
        conn_break(job->dispatcher);
        conn_refuse(conn, CW_REFUSED_BUSY, "the old connection of the dispatcher is being ended");
        return;
    }
    take_over(job, conn);
    welcome(conn, hello, key, &answer);
    job_join(job, conn);
    if (out_make_vital(&conn->out) < 0) {
        conn_out_of_memory(conn, "taking over a job");
        return;
    }
    conn->state = CONN_DISPATCHER;
    if (job->entry.ledger)
        conn_outlive(conn, true, saved_conn);
}

static void hello_dispatcher(struct job_set *jobs, struct relay_conn *conn,
                             const struct cw_hello *hello)
{
    struct cw_welcome answer = {0};
    uint8_t key[CW_KEY_SIZE];
    struct relay_job *job;

    cw_cred_job_key(key, jobs->key, hello->job);
    if (!cw_stranger_proves(&conn->stranger, hello, key)) {
        conn_refuse(conn, CW_REFUSED_CREDENTIAL,
                    "wrong credential for a dispatcher: use this relay's key file");
        return;
    }
    job = job_find(jobs, hello->job);
    if (job)
        job_set_images(job, hello->flags & CW_HELLO_IMAGES);
    if (hello->flags & CW_HELLO_RESUME) {
        if (job && jobs->shared->store.commit.copies && hello->incarnation == jobs->incarnation)
            copy_out_sent(job, hello->event);
        resume_hello(conn, job ? job->dispatcher : NULL, hello, key);
        return;
    }
    if (hello->flags & CW_HELLO_TAKE) {
        hello_successor(job, conn, hello, key);
        return;
    }
    if (hello->rank == 0 || hello->rank > CW_RANKS_MAX) {
        conn_refuse(conn, CW_REFUSED_LIMIT, "a job of %u ranks: 1 to %u are possible", hello->rank,
                    CW_RANKS_MAX);
        return;
    }
    if (job) {
        conn_refuse(conn, CW_REFUSED_DUPLICATE, "this job has a dispatcher already");
        return;
    }
    if (jobs->count > 0 && jobs->shared->store.commit.copies) {
        conn_refuse(conn, CW_REFUSED_LIMIT, "a relay with --log-safety copy has one job");
        return;
    }
    if (jobs->count == RELAY_JOBS_MAX) {
        conn_refuse(conn, CW_REFUSED_LIMIT, "the relay has its %d jobs; try again later",
                    RELAY_JOBS_MAX);
        return;
    }
    job = job_new(jobs, hello->job, hello->rank);
    if (job) {
        job->dispatcher = conn;
        job->log = hello->flags & CW_HELLO_LOG;
        job->channel = hello->flags & CW_HELLO_CHANNEL;
        job_set_images(job, hello->flags & CW_HELLO_IMAGES);
        job->resume_ns = resume_ns_of(hello);
        job->orphan_ns = orphan_ns_of(hello);
        welcome(conn, hello, key, &answer);
        job_join(job, conn);
        if (job->log && !saved_enter_job(job)) {
            conn_refuse(conn, CW_REFUSED_LIMIT, LEDGER_FULL);
            return;
        }
    }
    if (!job || out_make_vital(&conn->out) < 0) {
        conn_out_of_memory(conn, "opening a job");
        return;
    }
    conn->state = CONN_DISPATCHER;
    if (job->entry.ledger)
        conn_outlive(conn, true, saved_conn);
}

/* A rank from its beginning, or from an image. */
static bool begins(const struct cw_hello *hello)
{
    return hello->event == 0 && hello->poll_clock == 0 && hello->acts == 0;
}

/* Where the image was taken; NULL: there was none. */
static const struct log_point *point_of(const struct relay_mailbox *mailbox,
                                        const struct cw_hello *hello)
{
    return log_point_find(
        &mailbox->log,
        &(struct cw_point){.event = hello->event, .clock = hello->poll_clock, .acts = hello->acts});
}

/* Section "Credentials" of docs/protocol.md: a newer incarnation replaces an older one; an older
 * one is refused for ever. Returns false after refusing. */
static bool fence(struct relay_conn *conn, const struct cw_hello *hello,
                  struct relay_mailbox *mailbox)
{
    if (hello->incarnation < mailbox->incarnation) {
        conn_refuse(conn, CW_REFUSED_FENCED,
                    "rank %u, incarnation %u: incarnation %u took its place", hello->rank,
                    hello->incarnation, mailbox->incarnation);
        return false;
    }
    if (hello->incarnation == mailbox->incarnation) {
        conn_refuse(conn, CW_REFUSED_DUPLICATE, "rank %u, incarnation %u, has connected already",
                    hello->rank, hello->incarnation);
        job_notice(mailbox->job, CW_NOTICE_REFUSED, hello->rank,
                   "a second connection for rank %u was refused", hello->rank);
        return false;
    }
    /* with its log go also the events of a rank that nobody has played yet */
    if ((mailbox->incarnation > 0 || mailbox->event > 0) && !mailbox->log.kept) {
        conn_refuse(conn, CW_REFUSED_LIMIT,
                    "rank %u cannot be started again: nothing was kept of what it did",
                    hello->rank);
        return false;
    }
    if (!begins(hello) && !point_of(mailbox, hello)) {
        conn_refuse(conn, CW_REFUSED_LIMIT,
                    "rank %u cannot go on from event %llu: the relay knows of no image there",
                    hello->rank, (unsigned long long)hello->event);
        return false;
    }
    if (!begins(hello) && mailbox->lost) {
        conn_refuse(conn, CW_REFUSED_LIMIT,
                    "rank %u cannot go on from an image: what its host's ranks had said to each "
                    "other since was lost with their channel memory",
                    hello->rank);
        return false;
    }
    if (begins(hello) && !log_is_whole(&mailbox->log)) {
        conn_refuse(conn, CW_REFUSED_LIMIT,
                    "rank %u cannot be started from its beginning: its log begins at an image",
                    hello->rank);
        return false;
    }
    if (mailbox->feed.conn) {
        struct relay_conn *old = mailbox->feed.conn;

        old->told = true;
        conn_refuse(old, CW_REFUSED_FENCED, "rank %u: incarnation %u takes its place", hello->rank,
                    hello->incarnation);
        job_detach(old);
        old->rank = NULL;
    }
    return true;
}

/* The link to that relay, if it opened it; NULL: we did, or there is none. */
static struct relay_conn *link_that_came(const struct relay_job *job, uint32_t relay)
{
    return relay < job->relays && !job->links[relay].dial ? job->links[relay].conn : NULL;
}

/* A process in whose place another one is gets nowhere. Returns false after refusing. */
static bool fence_relay(struct relay_conn *conn, struct relay_job *job,
                        const struct cw_hello *hello)
{
    struct job_link *link = hello->rank < job->relays ? &job->links[hello->rank] : NULL;

    if (link && hello->incarnation < link->incarnation) {
        conn_refuse(conn, CW_REFUSED_FENCED,
                    "relay %u, incarnation %u: incarnation %u took its place", hello->rank,
                    hello->incarnation, link->incarnation);
        return false;
    }
    if (link)
        link->incarnation = hello->incarnation;
    return true;
}

/* Another relay of the job wants a copy of its log to be kept here. */
static void hello_copy(struct relay_conn *conn, struct relay_job *job, const struct cw_hello *hello,
                       const uint8_t *key)
{
    struct cw_welcome answer = {0};
    struct cw_err err = {0};
    int refused;

    if (hello->flags & CW_HELLO_RESUME) {
        resume_hello(conn, copy_in_session(job, hello->rank), hello, key);
        return;
    }
    if (hello->rank >= job->relays || hello->rank == job->self) {
        conn_refuse(conn, CW_REFUSED_LIMIT, "relay %u of a job of %u relays is not expected",
                    hello->rank, job->relays);
        return;
    }
    refused = copy_in_hello(job, hello, &err);
    if (refused) {
        conn_refuse(conn, (enum cw_refusal)refused, "%s", err.text);
        return;
    }
    welcome(conn, hello, key, &answer);
    copy_in_up(conn, job, hello);
}

/* Another relay of the job connects: it forwards what its ranks send to ours, and the other way
 * round. */
static void hello_relay(struct job_set *jobs, struct relay_conn *conn, const struct cw_hello *hello)
{
    struct relay_job *job = job_find(jobs, hello->job);
    struct cw_welcome answer = {0};
    uint8_t key[CW_KEY_SIZE];

    if (!job) {
        conn_refuse(conn, CW_REFUSED_JOB, "the relay has no such job (it may have ended)");
        return;
    }
    cw_cred_link_key(key, job->key, hello->rank);
    if (!cw_stranger_proves(&conn->stranger, hello, key)) {
        conn_refuse(conn, CW_REFUSED_CREDENTIAL, "wrong credential for relay %u of the job",
                    hello->rank);
        return;
    }
    if (!fence_relay(conn, job, hello))
        return;
    if (hello->flags & CW_HELLO_COPY) {
        hello_copy(conn, job, hello, key);
        return;
    }
    if (hello->flags & CW_HELLO_RESUME) {
        resume_hello(conn, link_that_came(job, hello->rank), hello, key);
        return;
    }
    if (!link_may_come(job, hello->rank)) {
        conn_refuse(conn, CW_REFUSED_LIMIT,
                    "relay %u of a job of %u relays is not expected: it has been linked already, "
                    "or the dispatcher has not spoken of it yet",
                    hello->rank, job->relays);
        return;
    }
    welcome(conn, hello, key, &answer);
    link_up(conn, job, hello->rank);
}

static void hello_rank(struct job_set *jobs, struct relay_conn *conn, const struct cw_hello *hello)
{
    struct relay_job *job = job_find(jobs, hello->job);
    struct relay_mailbox *mailbox;
    struct relay_rank *rank;
    struct cw_welcome answer;
    uint8_t key[CW_KEY_SIZE];

    if (!job) {
        conn_refuse(conn, CW_REFUSED_JOB, "the relay has no such job (it may have ended)");
        return;
    }
    cw_cred_rank_key(key, job->key, hello->rank, hello->incarnation);
    if (!cw_stranger_proves(&conn->stranger, hello, key)) {
        conn_refuse(conn, CW_REFUSED_CREDENTIAL, "wrong credential for rank %u, incarnation %u",
                    hello->rank, hello->incarnation);
        job_notice(job, CW_NOTICE_REFUSED, hello->rank,
                   "a connection for rank %u with a wrong credential was refused", hello->rank);
        return;
    }
    if (hello->rank >= job->ranks || hello->incarnation == 0) {
        conn_refuse(conn, CW_REFUSED_LIMIT, "rank %u, incarnation %u, in a job of %u ranks",
                    hello->rank, hello->incarnation, job->ranks);
        return;
    }
    if (!job_is_home(job, hello->rank)) {
        conn_refuse(conn, CW_REFUSED_JOB,
                    "the home of rank %u is relay %u of the job, not this one", hello->rank,
                    job_home(job, hello->rank));
        return;
    }
    if (job->channel != !!(hello->flags & CW_HELLO_CHANNEL)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL,
                    "rank %u has %s channel memory, which is not what its dispatcher said",
                    hello->rank, job->channel ? "no" : "a");
        return;
    }
    rank = job_rank(job, hello->rank);
    if (!rank) {
        conn_out_of_memory(conn, "making a mailbox");
        return;
    }
    mailbox = &rank->mailbox;
    if (hello->flags & CW_HELLO_RESUME && hello->incarnation >= mailbox->incarnation) {
        resume_hello(conn, hello->incarnation == mailbox->incarnation ? mailbox->feed.conn : NULL,
                     hello, key);
        return;
    }
    if (!fence(conn, hello, mailbox))
        return;
    job->settled = true;
    mailbox->elsewhere_events = 0;
    answer = welcome_of(rank);
    welcome(conn, hello, key, &answer);
    job_join(job, conn);
    conn->rank = rank;
    conn->rank_number = hello->rank;
    conn->state = mailbox_has_past(mailbox) ? CONN_REPEATING : CONN_RANK;
    if (conn->state == CONN_RANK)
        log_points_forget(&mailbox->log, hello->poll_clock);
    mailbox->incarnation = hello->incarnation;
    ledger_change(&mailbox->entry);
    if (job->entry.ledger && !conn_outlive(conn, false, saved_conn))
        return;
    job_notice(job, CW_NOTICE_RANK_UP, hello->rank, "connected");
    mailbox_attach(mailbox, conn, point_of(mailbox, hello));
}

void recv_hello(struct job_set *jobs, struct relay_conn *conn, const uint8_t *body)
{
    struct cw_hello hello;
    struct cw_err err;
    int refused = cw_stranger_hello(body, "relay", &hello, &err);

    if (refused)
        conn_refuse(conn, (enum cw_refusal)refused, "%s", err.text);
    else if (conn->rings && hello.role != CW_ROLE_RANK)
        /* what is told to all others may have to outlive us, and a ring does not */
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "rings are for ranks: decline them");
    else if (hello.role == CW_ROLE_DISPATCHER)
        hello_dispatcher(jobs, conn, &hello);
    else if (hello.role == CW_ROLE_RELAY)
        hello_relay(jobs, conn, &hello);
    else if (hello.role == CW_ROLE_RANK)
        hello_rank(jobs, conn, &hello);
    else
        conn_refuse(conn, CW_REFUSED_PROTOCOL,
                    "this is a relay, not a checkpoint server: look at the addresses");
}
