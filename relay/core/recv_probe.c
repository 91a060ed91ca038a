/* PROBE: is there a message? With `remove` it is taken out, and only MRECV can receive it. */
#include "relay/core/apply.h"
#include "relay/core/recv.h"

/* A probe that found something is an act, and its answer a determinant: [MPICH-V] 3.5,
 * "non-deterministic events are receptions and probes". One that found nothing leaves no trace. */
static void probe_found(struct relay_mailbox *mailbox, const struct cw_probe *probe,
                        const struct cw_probed *answer)
{
    mailbox_act(mailbox, answer->clock);
    apply_act(mailbox, &(struct log_record){.type = LOG_ANSWER,
                                            .flags = probe->remove ? LOG_REMOVED : 0,
                                            .clock = answer->clock - mailbox->log.clock,
                                            .msg = answer->msg,
                                            .tag = answer->tag,
                                            .mask = probe->mask,
                                            .total = answer->total});
}

/* Fills the answer. Returns false when the connection had to be ended. */
static bool probe_answer(struct relay_conn *conn, const struct cw_probe *probe,
                         struct cw_probed *answer)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct match_waiting *waiting = match_find_waiting(&mailbox->index, probe->tag, probe->mask);
    int64_t msg = 0;

    if (!waiting)
        return true;
    answer->found = 1;
    answer->tag = waiting->tag;
    answer->total = ((struct relay_message *)waiting)->total;
    if (probe->remove)
        msg = mailbox_next_out(mailbox);
    if (msg == CW_ENOMEM)
        conn_out_of_memory(conn, "taking a message out for MPI_Mprobe");
    else if (msg < 0)
        conn_refuse(conn, CW_REFUSED_LIMIT,
                    "%u messages taken out by MPI_Mprobe and not received: that is the bound",
                    mailbox->probed_size);
    answer->msg = (uint32_t)msg;
    return msg >= 0;
}

void recv_probe(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct cw_probe probe;
    struct cw_probed answer = {0};

    if (!cw_probe_get(body, &probe) || (mailbox->log.kept && probe.clock < mailbox->log.clock)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "PROBE frame that cannot be read");
        return;
    }
    if (!match_takes(&mailbox->index, probe.mask)) {
        conn_refuse(conn, CW_REFUSED_LIMIT, RECV_MASKS_REFUSED, MATCH_CLASSES);
        return;
    }
    answer.clock = probe.clock;
    if (!probe_answer(conn, &probe, &answer))
        return;
    if (answer.found)
        probe_found(mailbox, &probe, &answer);
    if (conn->state == CONN_CLOSING)
        return; /* its log was given up, and it needed it */
    answer.unexpected = mailbox->index.waiting;
    mailbox->feed.hint_armed = true;
    conn_frame(conn, CW_FRAME_PROBED, &answer, sizeof(answer));
}
