/* The near end's way to the far end of a striped tunnel: a command on the last gateway of a chain,
 * which is greeted there. */
#ifndef TUNNELS_SSH_MERGE_H
#define TUNNELS_SSH_MERGE_H

#include "tunnels/ssh_link.h"
#include "tunnels/stripe_frame.h"

#define SSH_MERGE_ANSWER_MS 5000u /* for the command to start, connect, and answer */

/* On a channel of ssh_channel_session: what comes and goes there are chunks from then on. Errors
 * say why there is no far end there (no Causeway, another version, no commands, nobody listens):
 * ssh_channel_drop, and another channel may be opened. */
int ssh_merge_open(struct ssh_link *link, const struct stripe_greeting *greeting,
                   struct cw_err *err);

#endif
