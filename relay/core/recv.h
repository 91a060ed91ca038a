/* One handler a frame; `body` has the type's fixed size. Payload follows by
 * transfer_input. */
#ifndef RELAY_RECV_H
#define RELAY_RECV_H

#include "relay/core/job.h"

/* The only one that may come before the connection belongs to a job. */
void recv_hello(struct job_set *jobs, struct relay_conn *conn, const uint8_t *body);

void recv_ack(struct relay_conn *conn, const uint8_t *body);
void recv_send(struct relay_conn *conn, const uint8_t *body);
void recv_send_data(struct relay_conn *conn, const uint8_t *body);
void recv_recv(struct relay_conn *conn, const uint8_t *body);
void recv_mrecv(struct relay_conn *conn, const uint8_t *body);
void recv_probe(struct relay_conn *conn, const uint8_t *body);
void recv_cancel(struct relay_conn *conn, const uint8_t *body);
void recv_bye(struct relay_conn *conn, const uint8_t *body);
void recv_taken(struct relay_conn *conn, const uint8_t *body);
void recv_point(struct relay_conn *conn, const uint8_t *body);
void recv_readings(struct relay_conn *conn, const uint8_t *body);
void recv_counted(struct relay_conn *conn, const uint8_t *body);
void recv_live(struct relay_conn *conn, const uint8_t *body);
void recv_matched(struct relay_conn *conn, const uint8_t *body);
void recv_room(struct relay_conn *conn, const uint8_t *body);
void recv_unlogged(struct relay_conn *conn, const uint8_t *body);
void recv_stats_ask(struct relay_conn *conn, const uint8_t *body);
void recv_route(struct relay_conn *conn, const uint8_t *body);
void recv_link(struct relay_conn *conn, const uint8_t *body);
void recv_checkpoint(struct relay_conn *conn, const uint8_t *body);
void recv_trim(struct relay_conn *conn, const uint8_t *body);
void recv_cut(struct relay_conn *conn, const uint8_t *body);
void recv_rank_end(struct relay_conn *conn, const uint8_t *body);
void recv_job_end(struct relay_conn *conn, const uint8_t *body);
void recv_forward(struct relay_conn *conn, const uint8_t *body);
void recv_forward_data(struct relay_conn *conn, const uint8_t *body);
void recv_forward_end(struct relay_conn *conn, const uint8_t *body);
void recv_forward_sent(struct relay_conn *conn, const uint8_t *body);

void recv_copy(struct relay_conn *conn, const uint8_t *body);
void recv_cover(struct relay_conn *conn, const uint8_t *body);
void recv_copy_ack(struct relay_conn *conn, const uint8_t *body);
void recv_copy_close(struct relay_conn *conn, const uint8_t *body);
void recv_copy_part(struct relay_conn *conn, const uint8_t *body);
void recv_copy_refused(struct relay_conn *conn, const uint8_t *body);

/* Each further one would make all matching of the rank slower, and the relay is others' as well. */
#define RECV_MASKS_REFUSED                                                                         \
    "receives and probes with more than %d masks of tags: that is the bound of a rank; MPICH "     \
    "uses 4"

#endif
