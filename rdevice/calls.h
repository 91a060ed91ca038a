/* Which call of MPI a call for progress belongs to: MPI_Test asks once and returns, MPI_Wait asks
 * until something has come. The library stands in front of every function of MPI, under both names
 * (MPI_, and PMPI_: tools that profile may come between), counts the call and passes it on. */
#ifndef RDEVICE_CALLS_H
#define RDEVICE_CALLS_H

#include <stdint.h>

/* Calls of MPI that this thread has made. */
extern _Thread_local uint64_t calls_made __attribute__((tls_model("initial-exec")));

/* The function of this name that comes after ours; NULL: there is none. */
void *calls_find(const char *name);

#endif
