/* What the dispatcher does with hosts that are lost, as dispatcher/run/copies.h: relays have copies
 * of their logs at others, and are started again there. */
#ifndef SIM_COPIES_H
#define SIM_COPIES_H

#include "common/frame.h"
#include "dispatcher/job/job.h"
#include "dispatcher/servers/relays.h"

/* For relays_config: those are the job's own, each on a host. */
extern const struct relays_own copies_own;
/* Borrowed. With sim.plan.copies of 0 nothing happens in what follows. */
void copies_open(struct relays *relays, struct job *job);

/* The relays are linked. The copies are made; once they are, the job is ready. */
void copies_begin(void);

/* --- what is heard --- */
void copies_notice(uint32_t relay, const struct cw_notice_body *notice);
void copies_closed(uint32_t at, const struct cw_copy_closed *closed);
/* Those at home there are not to be started before their relay is elsewhere. */
void copies_host_lost(uint32_t host);
void copies_back(uint32_t relay);
/* A rank of this relay can be started where it is. */
bool copies_has_place(uint32_t relay);

/* Processes of relays whose time has come are started. */
void copies_step(void);
uint64_t copies_deadline_ns(void);

#endif
