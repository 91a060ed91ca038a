/* POINT: an image of the rank's process is being taken; the rank may be started again from there.
 * All that it did before is logged already. */
#include "relay/core/recv.h"
#include "relay/core/snapshot.h"

static bool point_adds_up(const struct relay_mailbox *mailbox, const struct cw_point *point)
{
    const struct relay_log *log = &mailbox->log;
    const struct log_point *last = log_point_last(log);

    return point->event == log->taken && point->acts == mailbox->acts && point->clock > 0 &&
           point->clock >= log->clock && point->clock >= mailbox->act_clock &&
           (!last || point->clock > last->at.clock);
}

/* A message that is partly delivered is read from the log, at places that a snapshot changes: then
 * the rank cannot be started from there. */
static bool is_reading(const struct relay_mailbox *mailbox)
{
    const struct relay_message *message = mailbox->away > 0 ? LIST_FIRST(&mailbox->open) : NULL;

    while (message && !message->away)
        message = LIST_NEXT(message, in_open);
    return message;
}

void recv_point(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct cw_point point;

    if (!mailbox->log.kept || is_reading(mailbox))
        return;
    cw_point_get(body, &point);
    if (!point_adds_up(mailbox, &point)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "POINT frame that does not add up");
        return;
    }
    snapshot_take(mailbox, &point);
}
