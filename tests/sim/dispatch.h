/* The dispatcher: the job core's orders are carried out, and what is told reaches it late.
 */
#ifndef SIM_DISPATCH_H
#define SIM_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

/* It begins: the job is to be opened at the relays, which are linked then. */
void dispatch_open(void);
bool dispatch_can(void);
void dispatch_step(void);
uint64_t dispatch_deadline_ns(void);

/* A drill: a relay is told to break the connection of a rank, its links, or ours. */
void dispatch_cut(void);

/* The job has ended: what the relays had still said is heard. */
void dispatch_close(void);
void dispatch_fini(void);

#endif
