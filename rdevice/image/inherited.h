/* Descriptors that the process was started with: a shell, make and others leave theirs open in all
 * that they start. The program does not know of them. */
#ifndef RDEVICE_IMAGE_INHERITED_H
#define RDEVICE_IMAGE_INHERITED_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the descriptor is one of them, and still the same file. */
bool inherited_has(int fd, uint64_t device, uint64_t inode);

#endif
