/* The dispatcher: the job core's orders are carried out, and what is told reaches it late.
 */
#ifndef SIM_DISPATCH_H
#define SIM_DISPATCH_H

#include "common/frame.h"

#include <stdbool.h>
#include <stdint.h>

/* It begins: the job is to be opened at the relays, which are linked then. */
void dispatch_open(void);
bool dispatch_can(void);
void dispatch_step(void);
uint64_t dispatch_deadline_ns(void);

/* A drill: a relay is told to break the connection of a rank, its links, or ours. */
void dispatch_cut(void);

/* A rank is asked for an image; its log is to begin at this point. */
void dispatch_checkpoint(uint32_t rank, uint32_t number);
void dispatch_trim(uint32_t rank, const struct cw_point *point);

/* The job has ended: what the relays had still said is heard. */
void dispatch_close(void);
void dispatch_fini(void);

#endif
