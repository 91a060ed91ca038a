/* The checks of the machine: its kernel, and what it has. */
#ifndef DISPATCHER_DOCTOR_MACHINE_H
#define DISPATCHER_DOCTOR_MACHINE_H

#include "dispatcher/cli/doctor.h"

void doctor_check_machine(struct doctor *d);

/* MiB that programs may still take; -1 when it is not to be had. */
long doctor_free_memory_mb(void);

#endif
