/* Programs that a rank's program starts: its own environment is not theirs. One that uses MPI, be
 * it alone, below mpiexec or below another causeway run, is no process of the rank's job: it runs
 * without us (nested.c). */
#ifndef RDEVICE_NESTED_H
#define RDEVICE_NESTED_H

#include <stdbool.h>

/* This process is the rank: it has read its setup from `control_fd`. What it starts from now on is
 * none, and does not get its PMI. */
void nested_begin(int control_fd);

/* Whether this process was started by one that is the rank. */
bool nested_is(void);

#endif
