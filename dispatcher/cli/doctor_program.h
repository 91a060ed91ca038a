/* The check of a program that is to run. */
#ifndef DISPATCHER_DOCTOR_PROGRAM_H
#define DISPATCHER_DOCTOR_PROGRAM_H

#include "dispatcher/cli/doctor.h"

/* After doctor_check_library. `name`: as a shell would find it. */
void doctor_check_program(struct doctor *d, const char *name);

#endif
