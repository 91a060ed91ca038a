/* What a rank says of itself, beside the messages that it sends and wants. */
#include "relay/core/apply.h"
#include "relay/core/recv.h"
#include "relay/core/snapshot.h"
#include "relay/core/trim.h"

#include <inttypes.h>

/* ACK: the other side says how much of our stream it has received. */
void recv_ack(struct relay_conn *conn, const uint8_t *body)
{
    if (!conn_acknowledge(conn, cw_ack_get(body)))
        conn_refuse(conn, CW_REFUSED_PROTOCOL, CONN_ACK_REFUSED);
}

/* READINGS: what the rank's clocks told it, as bytes that only its device understands. */
void recv_readings(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    uint32_t size = conn->payload_left;

    conn->start += size;
    conn->payload_left = 0;
    if (size == 0)
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "READINGS frame without readings");
    else if (mailbox->log.kept)
        mailbox_logged(mailbox, log_put(&mailbox->log, &(struct log_record){.type = LOG_READINGS,
                                                                            .size = size,
                                                                            .bytes = body}));
}

/* TAKEN: the rank says at which poll clock it took events. It is logged before anything that the
 * rank sends afterwards is acted on: the pessimistic rule. */
void recv_taken(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct relay_log *log = &mailbox->log;
    struct cw_taken taken;

    if (!log->kept)
        return;
    cw_taken_get(body, &taken);
    if (mailbox->elsewhere && taken.event == log->taken)
        return; /* an earlier incarnation said so */
    if (taken.event <= log->taken || taken.event > mailbox->event || taken.clock < log->clock) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "TAKEN frame that does not add up");
        return;
    }
    mailbox_logged(mailbox, log_taken(log, taken.event, taken.clock));
}

/* UNLOGGED: the rank does something that a log cannot repeat. */
void recv_unlogged(struct relay_conn *conn, const uint8_t *body)
{
    static const char *const reasons[] = {
        [CW_UNLOGGED_THREADS] =
            "it calls MPI from more than one thread, and the order of their calls is not logged",
        [CW_UNLOGGED_READINGS] = "it asked for the time too often before MPI_Init",
        [CW_UNLOGGED_ADDRESSES] = "its memory would lie elsewhere: personality(ADDR_NO_RANDOMIZE) "
                                  "is not allowed here (causeway doctor)",
        [CW_UNLOGGED_MEMORY] =
            "there is no room for its log in channel memory (--log-memory, --log-disk)",
    };
    uint32_t why = cw_word_get(body);

    if (why >= CW_UNLOGGED_THREADS && why <= CW_UNLOGGED_MEMORY)
        job_unlog(&conn->rank->mailbox, "%s", reasons[why]);
    else
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "UNLOGGED frame that cannot be read");
}

/* POINT: an image of the rank's process is being taken; the rank may be started again from there.
 * All that it did before is logged already. */
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

/* COUNTED: what a rank counts that takes messages from channel memory. */
void recv_counted(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    uint64_t before = mailbox->counted.log_bytes;

    if (!mailbox->elsewhere) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "COUNTED of a rank whose messages come here");
        return;
    }
    memcpy(&mailbox->counted, body, sizeof(mailbox->counted));
    if (mailbox->counted.log_bytes != before)
        trim_tell_bytes(mailbox);
}

/* One that is its own mailbox has come at least to the poll at which it took of us what it says. */
static bool has_repeated(const struct relay_mailbox *mailbox, const struct cw_taken *live)
{
    return mailbox->elsewhere ? live->clock >= mailbox->log.clock
                              : mailbox->feed.repeated && live->event == mailbox->log.taken;
}

/* LIVE: a rank has repeated all that its predecessor did. */
void recv_live(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct cw_taken live;

    cw_taken_get(body, &live);
    if (!has_repeated(mailbox, &live)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "LIVE before all was repeated");
        return;
    }
    if (mailbox->elsewhere)
        mailbox->elsewhere_events = live.event;
    mailbox->lost = false;
    log_points_forget(&mailbox->log, live.clock);
    ledger_change(&mailbox->entry);
    conn->state = CONN_RANK;
    mailbox_let_trim(mailbox);
    job_notice(conn->job, CW_NOTICE_RANK_LIVE, mailbox->rank, "repeated %" PRIu64 " events",
               live.event - mailbox->feed.skip);
    mailbox_pump(mailbox);
}

/* MATCHED: a rank that is its own mailbox has matched a synchronous send. */
void recv_matched(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct cw_forward_ref ref;

    cw_forward_ref_get(body, &ref);
    if (!mailbox->elsewhere) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "MATCHED frame is not allowed here");
        return;
    }
    if (ref.rank >= conn->job->ranks || !apply_matched(mailbox, &ref)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "MATCHED frame that does not add up");
        return;
    }
    mailbox_act(mailbox, mailbox->act_clock);
}

/* ROOM: a rank that is its own mailbox has room for so much more; it is said again by those after
 * it. */
void recv_room(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct cw_room room;

    cw_room_get(body, &room);
    if (!mailbox->elsewhere) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "ROOM frame is not allowed here");
        return;
    }
    if (room.bytes < mailbox->room) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "ROOM frame that does not add up");
        return;
    }
    mailbox->room = room.bytes;
    mailbox_act(mailbox, mailbox->act_clock);
}

/* CANCEL: takes a posted receive back. */
void recv_cancel(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    struct cw_recv cancel;

    cw_recv_get(body, &cancel);
    mailbox_act(mailbox, cancel.clock);
    apply_act(mailbox,
              &(struct log_record){
                  .type = LOG_CANCEL, .req = cancel.req, .tag = cancel.tag, .mask = cancel.mask});
}

/* BYE: the rank has sent everything and wants nothing more. Its messages to others stay. */
void recv_bye(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;

    if (conn->rank->transfer.left) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "BYE in the middle of a message");
        return;
    }
    cw_bye_get(body, &mailbox->stats);
    conn_frame(conn, CW_FRAME_FAREWELL, NULL, 0);
    conn->state = CONN_CLOSING;
    conn->told = true;
    job_detach(conn);
    job_notice(conn->job, CW_NOTICE_RANK_BYE, mailbox->rank, "done");
}
