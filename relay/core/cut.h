/* Cut-through: large payload passes from its sender's connection to its receiver's without a block
 * of ours between; the engine moves it, and then makes the log's copy. */
#ifndef RELAY_CUT_H
#define RELAY_CUT_H

#include "relay/core/conn.h"
#include "relay/core/requests.h"

/* As relay_conn_before_cut and relay_conn_cut_to. */
size_t cut_before(const struct relay_conn *conn, size_t there, relay_peek *peek, void *ctx);
struct relay_conn *cut_to(const struct relay_conn *conn);

/* As relay_conn_cut. */
struct relay_cut cut_begin(struct relay_conn *conn, size_t size);

#endif
