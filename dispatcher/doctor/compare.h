/* What hosts are different in, and should not be. Pure. */
#ifndef DISPATCHER_COMPARE_H
#define DISPATCHER_COMPARE_H

#include "dispatcher/doctor/host_report.h"

#include <stdint.h>

struct compared {
    const char *name;
    const struct host_report *report; /* NULL: there is none */
};

/* Hosts on which ranks cannot go on from images of other hosts: a processor of the former lacks
 * what one of the latter has. */
void compare_features(const struct compared *hosts, uint32_t count, struct findings *findings);

/* Versions of MPICH. */
void compare_mpich(const struct compared *hosts, uint32_t count, struct findings *findings);

#endif
