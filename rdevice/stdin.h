/* Which descriptors are the rank's standard input, a pipe of the launcher's, under whatever number:
 * dup() and /dev/stdin give it further ones. Any thread. */
#ifndef RDEVICE_STDIN_H
#define RDEVICE_STDIN_H

#include <stdbool.h>
#include <stdint.h>

/* It is what descriptor 0 was when the library was loaded, if that is a pipe. */
bool stdin_any(void);
bool stdin_is(int fd);

/* The process goes on from an image, with this pipe (its inode); 0: none. */
void stdin_becomes(uint64_t inode);

#endif
