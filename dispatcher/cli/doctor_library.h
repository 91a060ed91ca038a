/* The checks of the MPI library and of our device below it. */
#ifndef DISPATCHER_DOCTOR_LIBRARY_H
#define DISPATCHER_DOCTOR_LIBRARY_H

#include "dispatcher/cli/doctor.h"

/* Notes in `d` which library and which device were found. */
void doctor_check_library(struct doctor *d);

#endif
