/* CHECK: a rank that repeats what an earlier incarnation did says what it would send now.
 * Divergence is detected, not hoped away. */
#include "relay/core/recv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEND_TEXT 128
#define TEXT_ROOM (CW_TEXT_MAX - 76) /* job_diverged says more before it */

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
    enum chain_found found =
        log_find_send(&mailbox->log, &mailbox->feed.checked, &mailbox->feed.inputs);

    mailbox->feed.check_stuck = found == CHAIN_AWAY;
    if (found == CHAIN_AWAY)
        mailbox_stick(mailbox);
    if (found == CHAIN_LOST)
        mailbox_log_failed(mailbox, MAILBOX_LOST);
    return found == CHAIN_HERE || found == CHAIN_END;
}

/* Appends what the rank had from outside since the last send that carried the same, where the cause
 * is. */
static void append_inputs(char text[TEXT_ROOM], const struct feed *feed)
{
    char since[48] = "its start";
    size_t used;

    if (feed->agreed)
        snprintf(since, sizeof(since), "send %" PRIu64 ", which agreed", feed->agreed);
    used = strlen(text);
    used += (size_t)snprintf(text + used, TEXT_ROOM - used, "; since %s: ", since);
    inputs_describe(&feed->inputs, text + used, TEXT_ROOM - used);
}

static void note_agreed(struct feed *feed)
{
    feed->agreed = feed->checked.send;
    inputs_begin(&feed->inputs);
}

/* Bytes that no program sets, and what threads compute, may differ without harm; the rank says
 * whether it goes on. */
static void contents_differ(struct relay_mailbox *mailbox, const struct cw_send *expected,
                            const struct cw_send *seen)
{
    struct feed *feed = &mailbox->feed;
    char send_text[SEND_TEXT];
    char text[TEXT_ROOM];

    describe(send_text, seen);
    snprintf(text, sizeof(text),
             "send %" PRIu64 ", %s, has other contents: hash %016" PRIx64 ", it was %016" PRIx64,
             feed->checked.send, send_text, seen->contents, expected->contents);
    append_inputs(text, feed);
    if (!(seen->flags & CW_CHECK_BEARS))
        job_diverged(mailbox, "%s", text);
    else if (!mailbox->differs)
        job_notice(mailbox->job, CW_NOTICE_DIFFERS, mailbox->rank, "%s", text);
    mailbox->differs = true;
}

void recv_check(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_mailbox *mailbox = &conn->rank->mailbox;
    char expected_text[SEND_TEXT] = "nothing more";
    char seen_text[SEND_TEXT];
    char text[TEXT_ROOM];
    struct cw_send expected;
    struct cw_send seen;
    bool known;

    if (!cw_send_get(body, &seen)) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "CHECK frame that cannot be read");
        return;
    }
    known = log_next_send(&mailbox->log, &mailbox->feed.checked, &mailbox->feed.inputs,
                          &expected) == CHAIN_HERE;
    if (known && seen.dst == expected.dst && seen.kind == expected.kind &&
        seen.tag == expected.tag && seen.total == expected.total) {
        if (seen.contents == 0 || expected.contents == 0)
            return;
        if (seen.contents == expected.contents)
            note_agreed(&mailbox->feed);
        else
            contents_differ(mailbox, &expected, &seen);
        return;
    }
    if (known)
        describe(expected_text, &expected);
    describe(seen_text, &seen);
    snprintf(text, sizeof(text), "at send %" PRIu64 ", expected %s, saw %s",
             mailbox->feed.checked.send + !known, expected_text, seen_text);
    append_inputs(text, &mailbox->feed);
    job_diverged(mailbox, "%s", text);
}
