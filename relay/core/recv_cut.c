/* CUT, a drill: a connection breaks, as if a network had failed. */
#include "relay/core/recv.h"

static void break_links(struct relay_job *job)
{
    for (uint32_t relay = 0; relay < job->relays; relay++)
        if (job->links[relay].conn)
            conn_break(job->links[relay].conn);
}

void recv_cut(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;
    uint32_t what = cw_word_get(body);

    if (what == CW_CUT_LINKS)
        break_links(job);
    else if (what == CW_CUT_DISPATCHER)
        conn_break(conn);
    else if (what >= job->ranks)
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "CUT of rank %u in a job of %u ranks", what,
                    job->ranks);
    else if (job->ranked[what] && job->ranked[what]->mailbox.feed.conn)
        conn_break(job->ranked[what]->mailbox.feed.conn);
}
