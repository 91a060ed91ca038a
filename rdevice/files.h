/* Telling the dispatcher what the program shares with other processes: files, and what counts as
 * such. Any thread, and signal handlers. */
#ifndef RDEVICE_FILES_H
#define RDEVICE_FILES_H

#include <stdint.h>

/* A file is open under `fd`, with these flags of open(); -1: it is not. Returns `fd`. */
int files_told(int fd, const char *path, int flags);

/* What has an identifier in place of a file, and is written: `device` tells its kind. */
void files_tell_shared(uint64_t device, uint64_t number, const char *name);

#endif
