/* Links: what one relay of a job tells another. A rank's sends go to its home relay, which forwards
 * them to the receiver's. [Relay] 3.1: "For load-balancing usage, multiple relays may be used in a
 * single cluster." */
#include "relay/core/state.h"

#include <assert.h>
#include <stdio.h>

static struct relay_conn *link_of(const struct relay_job *job, uint32_t relay)
{
    struct relay_conn *link = job->links[relay];

    return link && link->state == CONN_LINK ? link : NULL;
}

/* --- opening -------------------------------------------------------------------------------------
 */

void link_up(struct relay_conn *conn, struct relay_job *job, uint32_t relay)
{
    assert(relay != job->self && !job->links[relay]);
    conn->job = job;
    conn->peer = relay;
    conn->state = CONN_LINK;
    job->links[relay] = conn;
    job->links_up++;
    if (job->links_up == job->relays - 1)
        job_notice(job, CW_NOTICE_LINKED, UINT32_MAX, "linked to the %u other relays of the job",
                   job->links_up);
}

void link_down(struct relay_conn *conn, const char *why)
{
    struct relay_job *job = conn->job;

    job->links[conn->peer] = NULL;
    if (!conn->fenced)
        job_notice(job, CW_NOTICE_UNLINKED, UINT32_MAX, "the link to relay %u of the job broke: %s",
                   conn->peer, why);
}

struct relay_conn *relay_conn_dialled(struct relay_core *core, const struct relay_dialled *dialled,
                                      uint64_t now_ns, void *owner)
{
    struct relay_job *job = job_find(core, dialled->job);
    struct relay_conn *conn = conn_new(core, now_ns, owner);

    assert(dialled->peer < CW_RELAYS_MAX);
    if (!conn)
        return NULL;
    conn->session = dialled->session;
    if (!job || job->links[dialled->peer]) {
        conn_end(conn); /* the job ended in the meantime */
        return conn;
    }
    if (dialled->failure[0]) {
        job_notice(job, CW_NOTICE_FATAL, UINT32_MAX, "no link to relay %u of the job: %s",
                   dialled->peer, dialled->failure);
        conn_end(conn);
        return conn;
    }
    link_up(conn, job, dialled->peer);
    return conn;
}

/* --- sending -------------------------------------------------------------------------------------
 */

void forward_send(struct relay_conn *conn, const struct cw_send *send)
{
    struct relay_mailbox *sender = conn->mailbox;
    uint32_t home = job_home(conn->job, send->dst);
    struct relay_conn *link = link_of(conn->job, home);
    const uint8_t *at = conn->block->bytes + conn->start;
    uint32_t size;
    uint8_t *to;

    sender->sending.forwarded = true;
    sender->sending.relay = home;
    if (!link)
        return; /* the dispatcher was told */
    size = conn_take(conn);
    to = conn_data_frame(link, CW_FRAME_FORWARD, CW_FORWARD_SIZE, at, size, conn->block);
    if (to)
        cw_forward_put(to, &(struct cw_forward){.src = sender->rank, .send = *send});
}

void forward_data(struct relay_conn *conn, const uint8_t *at, uint32_t size)
{
    struct relay_mailbox *sender = conn->source;
    struct relay_conn *link = link_of(sender->job, sender->sending.relay);
    uint8_t *to;

    if (!link)
        return;
    to = conn_data_frame(link, CW_FRAME_FORWARD_DATA, CW_FORWARD_REF_SIZE, at, size, conn->block);
    if (to)
        cw_forward_ref_put(to, &(struct cw_forward_ref){.rank = sender->rank});
}

static void forward_ref(struct relay_job *job, uint32_t relay, uint8_t type,
                        const struct cw_forward_ref *ref)
{
    struct relay_conn *link = link_of(job, relay);
    uint8_t *to = link ? conn_frame(link, type, CW_FORWARD_REF_SIZE) : NULL;

    if (to)
        cw_forward_ref_put(to, ref);
}

void forward_end(struct relay_mailbox *sender)
{
    forward_ref(sender->job, sender->sending.relay, CW_FRAME_FORWARD_END,
                &(struct cw_forward_ref){.rank = sender->rank});
}

void forward_sent(struct relay_job *job, uint32_t src, uint32_t req)
{
    forward_ref(job, job_home(job, src), CW_FRAME_FORWARD_SENT,
                &(struct cw_forward_ref){.rank = src, .req = req});
}

bool forward_wants_input(const struct relay_mailbox *sender)
{
    const struct relay_conn *link = link_of(sender->job, sender->sending.relay);

    return !link || link->out.bytes < RELAY_CUT_BACKLOG_MAX;
}
