/* What comes to a mailbox, as records of its log: logged first, applied second. Here alone receives
 * and messages find each other; what comes of that are events, which the mailbox numbers, logs and
 * hands to its rank. A relay that comes back applies the records that were left: then nothing is
 * said to anybody, and events are compared with those of the log. */
#ifndef RELAY_APPLY_H
#define RELAY_APPLY_H

#include "relay/core/job.h"

/* A record that was logged, or read. *arriving: NULL, or what a MESSAGE began, of which bytes are
 * to come; its `message` and `at` are filled: where it is, and where the payload ended then.
 * Returns 0, CW_ENOMEM, or CW_EPROTO: it makes no sense; nothing has come of it then. */
int apply_record(struct relay_mailbox *mailbox, const struct log_record *record,
                 struct relay_message **arriving);
/* What a rank does: RECV, MRECV, CANCEL, ANSWER or SEND. Logs it, and applies it. */
int apply_act(struct relay_mailbox *mailbox, const struct log_record *record);
/* The rank of this mailbox, which matches itself, has matched the synchronous send `of->req` of
 * rank `of->rank`, which is told. False: there is no such rank. */
bool apply_matched(struct relay_mailbox *mailbox, const struct cw_forward_ref *of);
/* A message for a rank of ours begins, from the transfer's rank; its payload follows. The
 * connection ends where there is no memory. */
void apply_send(struct relay_conn *conn, struct transfer *transfer, const struct cw_send *send);

#endif
