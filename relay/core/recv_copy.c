/* Copies of logs: what another relay says of its own, and who keeps one of ours that it does not
 * any more. */
#include "relay/core/copy_in.h"
#include "relay/core/copy_out.h"
#include "relay/core/recv.h"

void recv_copy_part(struct relay_conn *conn, const uint8_t *body)
{
    struct cw_copy_ref ref;

    cw_copy_ref_get(body, &ref);
    if (conn->payload_left == 0)
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "COPY_PART frame of no bytes");
    else
        copy_in_part(conn, ref.commit);
}

void recv_copy_ack(struct relay_conn *conn, const uint8_t *body)
{
    const struct commit *commit = &conn->set->store->commit;
    struct cw_copy_ref ref;

    cw_copy_ref_get(body, &ref);
    if (ref.commit > commit->number)
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "COPY_ACK of what was not sent");
    else if (copy_out_acked(conn, ref.commit))
        conn_set_free(conn->set, commit->acked);
}

/* REFUSED: the session ends there, so it does here. */
void recv_copy_refused(struct relay_conn *conn, const uint8_t *body)
{
    uint32_t size = conn->payload_left;
    struct cw_notice_body notice;

    conn->start += size;
    conn->payload_left = 0;
    if (!cw_notice_get(body, CW_NOTICE_SIZE + size, &notice))
        notice.text[0] = '\0';
    conn_refuse(conn, CW_REFUSED_PROTOCOL, "%s", notice.text);
}
