/* Connections that have not proven who they are: a bounded number of them. One more takes the place
 * of the one that came first, which had the most time. */
#ifndef RELAY_STRANGER_H
#define RELAY_STRANGER_H

#include "relay/core/bounds.h"
#include "relay/core/conn.h"

/* Refuses the one that has waited longest where there is no room for one more. A rank that is
 * expected never has to go: there is a place for each of the `ranks`. */
void stranger_make_room(struct conn_set *set, uint32_t ranks);
void stranger_enter(struct relay_conn *conn);
/* It has proven who it is, or ends. Nothing happens where it is no stranger. */
void stranger_leave(struct relay_conn *conn);

#endif
