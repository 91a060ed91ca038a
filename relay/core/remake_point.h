/* The points of a mailbox that is made again. What it held at the last one stands in its log's
 * snapshot: there it begins, and what came later is matched again. */
#ifndef RELAY_REMAKE_POINT_H
#define RELAY_REMAKE_POINT_H

#include "relay/core/remake_mailbox.h"

/* Reads on: CHAIN_END: all were, and r->position is behind the last one; else as
 * remake_mailbox_step. */
enum chain_found remake_points(struct remake_mailbox *r);

/* More bytes of a message are to come. */
void remake_arrives(struct remake_mailbox *r, struct relay_message *message);

#endif
