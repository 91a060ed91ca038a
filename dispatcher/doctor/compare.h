/* What hosts that are there are different in, and should not be. Pure. */
#ifndef DISPATCHER_COMPARE_H
#define DISPATCHER_COMPARE_H

#include "dispatcher/doctor/host_check.h"

/* Hosts on which ranks cannot go on from images of other hosts: a processor of the former lacks
 * what one of the latter has; and versions of MPICH. */
void compare_hosts(const struct host_check *hosts, uint32_t count, struct findings *findings);

#endif
