/* Files and directories that several processes want: locks that name who uses a directory, and
 * names that stay after the loss of power. */
#ifndef CW_LOCKFILE_H
#define CW_LOCKFILE_H

#include <stdint.h>

/* Opens a file of an open directory, makes it where there is none, and locks it (flock) once nobody
 * else does, at most `wait_ms` later. What is locked has that name then: who held the lock before
 * may have removed it, and a third one made another. Returns its descriptor, or -1: errno
 * EWOULDBLOCK where another process holds it. */
int cw_lockfile_take(int dir, const char *name, uint32_t wait_ms);

/* The name of a file or directory is on disk when this has returned 0; else an errno. */
int cw_sync_name(const char *path);

#endif
