/* `causeway doctor -f`: looks at all sites of a grid, and at the ways between them. */
#ifndef DISPATCHER_DOCTOR_GRID_H
#define DISPATCHER_DOCTOR_GRID_H

#include <stdint.h>

#define DOCTOR_GRID_HOSTS_MAX 8u                /* hosts that are looked at at a time */
#define DOCTOR_GRID_OPEN_NS 22000000000ull      /* for a way from here, if the user says nothing */
#define DOCTOR_GRID_TIME_NS_MIN 100000000ull    /* a shorter one is refused ... */
#define DOCTOR_GRID_TIME_NS_MAX 600000000000ull /* ... and a longer one */

/* Prints what it finds, and keeps the round trips. `here`: the site of this machine, "-": none,
 * NULL: by its name; `time_ns`: for a connection, and for a host to report; 0: the user said
 * nothing. Returns the exit code. */
int doctor_grid(const char *file, const char *here, uint64_t time_ns);

#endif
