/* What one relay of a job tells another: frames over a link. [Relay] 3.1: "For load-balancing
 * usage, multiple relays may be used in a single cluster." */
#ifndef RELAY_FORWARD_H
#define RELAY_FORWARD_H

#include "relay/core/conn.h"

/* A message of rank `src` begins, with `size` bytes of its payload, which lie in `block`. */
void forward_send(struct relay_conn *link, uint32_t src, const struct cw_send *send,
                  const uint8_t *at, uint32_t size, struct relay_block *block);
/* More of it. */
void forward_data(struct relay_conn *link, uint32_t src, const uint8_t *at, uint32_t size,
                  struct relay_block *block);
/* The rest of it never comes. */
void forward_end(struct relay_conn *link, uint32_t src);
/* The synchronous message `req` of rank `src`, which is at home there, was matched. */
void forward_sent(struct relay_conn *link, uint32_t src, uint32_t req);

#endif
