/* PROBE: is there a message? With `remove` it is taken out, and only MRECV can receive it. */
#include "relay/core/state.h"

#define PROBED_MIN 16u

static int probed_grow(struct relay_mailbox *mailbox)
{
    struct relay_pool *pool = &mailbox->job->core->pool;
    uint32_t size = mailbox->probed_size ? mailbox->probed_size * 2 : PROBED_MIN;
    struct relay_message **probed;

    if (size > PROBED_MAX)
        return CW_ELIMIT;
    probed = relay_pool_alloc(pool, size * sizeof(*probed));
    if (!probed)
        return CW_ENOMEM;
    memset(probed, 0, size * sizeof(*probed));
    if (mailbox->probed_size)
        memcpy(probed, mailbox->probed, mailbox->probed_size * sizeof(*probed));
    relay_pool_free(pool, mailbox->probed, mailbox->probed_size * sizeof(*probed));
    mailbox->probed = probed;
    mailbox->probed_size = size;
    return CW_OK;
}

/* Returns the number that MRECV will give, or a negative code. */
static int64_t take_out(struct relay_mailbox *mailbox, struct match_waiting *waiting)
{
    uint32_t at = mailbox->probed_free_hint;
    int failed;

    while (at < mailbox->probed_size && mailbox->probed[at])
        at++;
    if (at == mailbox->probed_size && (failed = probed_grow(mailbox)) < 0)
        return failed;
    match_unwait(&mailbox->index, waiting);
    mailbox->probed[at] = (struct relay_message *)waiting;
    mailbox->probed_free_hint = at + 1;
    return at;
}

void recv_probe(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = conn->mailbox;
    struct match_waiting *waiting;
    struct cw_probed answer = {0};
    struct cw_probe probe;
    int64_t msg;
    uint8_t *to;

    if (!cw_probe_get(body, &probe)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "PROBE frame that cannot be read");
        return;
    }
    waiting = match_find_waiting(&mailbox->index, probe.tag, probe.mask);
    if (waiting) {
        answer.found = 1;
        answer.tag = waiting->tag;
        answer.total = ((struct relay_message *)waiting)->total;
        if (probe.remove) {
            msg = take_out(mailbox, waiting);
            if (msg == CW_ENOMEM) {
                conn_out_of_memory(conn, "taking a message out for MPI_Mprobe");
                return;
            }
            if (msg < 0) {
                conn_refuse(
                    conn, CW_REFUSED_LIMIT,
                    "%u messages taken out by MPI_Mprobe and not received: that is the bound",
                    mailbox->probed_size);
                return;
            }
            answer.msg = (uint32_t)msg;
        }
    }
    answer.event = ++mailbox->event;
    answer.unexpected = mailbox->index.waiting;
    mailbox->hint_armed = true;
    to = conn_frame(conn, CW_FRAME_PROBED, CW_PROBED_SIZE);
    if (to)
        cw_probed_put(to, &answer);
}
