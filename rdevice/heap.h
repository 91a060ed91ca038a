/* A heap for what MPI allocates. MPICH sends addresses of its requests, and gets them back: in a
 * re-execution they must be the same, although other threads of the program allocate and free
 * memory at other moments. */
#ifndef RDEVICE_HEAP_H
#define RDEVICE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* From now on: of the library that has this address in its text. */
void heap_begin(uintptr_t address);

/* Whether this is an address in that library. */
bool heap_is_of_mpi(uintptr_t address);

#endif
