/* Connections between two relays of a test: each end is a client of its relay's fixture that does
 * not read by itself. */
#ifndef TRACE_ENDS_H
#define TRACE_ENDS_H

#include "tests/trace/fixture.h"

/* What `from` has to say comes to `to`, or some of it; false: nothing. */
bool ends_move(struct client *from, struct client *to);
/* Both ways, until nothing is left. */
void ends_pump(struct client *a, struct client *b);
/* What is queued is written, and gets lost on the way. */
void ends_lose(struct client *from);
/* What the dialler does that `from` has asked last: a handshake with `to`, and then the connection
 * is that of both ends. False: it was refused, which `from` knows then. */
bool ends_dial(struct fixture *from, struct client *near, struct fixture *to, struct client *far);
/* It breaks at both ends. */
void ends_break(struct client *near, struct client *far);

#endif
