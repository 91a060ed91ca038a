/* CHECK: a rank that repeats what an earlier incarnation did says what it would send now.
 * Divergence is detected, not hoped away. */
#include "relay/core/recv.h"

#include <inttypes.h>
#include <stdio.h>

#define SEND_TEXT 128

static void describe(char *to, const struct cw_send *send)
{
    static const char *const kinds[] = {
        [CW_SEND_TAG] = "a message",
        [CW_SEND_SYNC] = "a synchronous message",
        [CW_SEND_AM] = "an active message",
    };

    snprintf(to, SEND_TEXT, "%s of %" PRIu64 " bytes to rank %u with tag %#" PRIx64,
             kinds[send->kind], send->total, send->dst, send->tag);
}

bool check_is_ready(struct relay_conn *conn)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    enum chain_found found = log_find_send(&mailbox->log, &mailbox->feed.checked);

    mailbox->feed.check_stuck = found == CHAIN_AWAY;
    if (found == CHAIN_AWAY)
        mailbox_stick(mailbox);
    if (found == CHAIN_LOST)
        mailbox_log_failed(mailbox, MAILBOX_LOST);
    return found == CHAIN_HERE || found == CHAIN_END;
}

void recv_check(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    char expected_text[SEND_TEXT] = "nothing more";
    char seen_text[SEND_TEXT];
    struct cw_send expected;
    struct cw_send seen;
    bool known;

    if (!cw_send_get(body, &seen)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "CHECK frame that cannot be read");
        return;
    }
    known = log_next_send(&mailbox->log, &mailbox->feed.checked, &expected) == CHAIN_HERE;
    if (known && seen.dst == expected.dst && seen.kind == expected.kind &&
        seen.tag == expected.tag && seen.total == expected.total)
        return;
    if (known)
        describe(expected_text, &expected);
    describe(seen_text, &seen);
    job_diverged(mailbox, "at send %" PRIu64 ", expected %s, saw %s",
                 mailbox->feed.checked.send + !known, expected_text, seen_text);
}
