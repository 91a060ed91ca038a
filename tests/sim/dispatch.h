/* The dispatcher's part: the job core's orders are carried out, and what is told reaches it late.
 */
#ifndef SIM_DISPATCH_H
#define SIM_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

/* The job is opened at the relay. */
void dispatch_open(void);
bool dispatch_can(void);
void dispatch_step(void);
uint64_t dispatch_deadline_ns(void);

/* The job has ended: what the relay had still said is heard; then the connection is given up. */
void dispatch_close(void);

#endif
