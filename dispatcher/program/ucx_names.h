/* The functions of UCX that an MPI library imports, beside those that the device has. */
#ifndef DISPATCHER_UCX_NAMES_H
#define DISPATCHER_UCX_NAMES_H

#include <stdbool.h>

/* For messages: what the device has all functions for. */
#define UCX_NAMES_CARRIED "the MPICH of Debian 12 (4.0) or 13 (4.2)"

/* Whether the file is a shared library whose names can be read. */
bool ucx_names_can_be_read(const char *library);

/* Calls `lacks` for each function of UCX that the MPI library imports and the device does not
 * define; returns how many. *imported: how many it imports; 0 also when a file cannot be read. */
int ucx_names_compare(const char *mpi_library, const char *device,
                      void (*lacks)(void *ctx, const char *name), void *ctx, int *imported);

#endif
