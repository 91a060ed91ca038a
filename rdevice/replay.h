/* A restarted rank's exchange with its relay until it is live: reads the log as far as the program
 * has come, and tells the relay what was repeated. The rules are journal.h's. For the thread that
 * calls MPI; ends the process when the re-execution does something else. */
#ifndef RDEVICE_REPLAY_H
#define RDEVICE_REPLAY_H

#include "rdevice/exchange.h"

/* The program makes an act: true when it was made before. */
bool replay_act(struct exchange *x);

/* The act is to send a message: true when it was sent before, with *has the bytes that the relay
 * has. Fills the flags. */
bool replay_send(struct exchange *x, struct cw_send *send, uint64_t *has);

/* While the journal is active: a call for progress at the poll clock of now. Returns true when
 * events happened then. */
bool replay_poll(struct exchange *x);

/* While the journal is active: a probe at the poll clock of now. Returns true when it found
 * something then, as *answer says. */
bool replay_probe(struct exchange *x, struct cw_probed *answer);

/* A reading is wanted. True: the log's next readings have come (clock_repeat). False: the rank is
 * live, the answer is a new one. */
bool replay_readings(struct exchange *x);
/* All that clock_repeat() was given is used up: the rank is live, if that was the last of its log.
 */
void replay_readings_used(struct exchange *x);

/* The program ends its use of MPI: all must have been repeated. */
void replay_finish(struct exchange *x);

#endif
