/* Files and directories that several processes want: locks that name who uses a directory, and
 * names that stay after the loss of power. */
#ifndef CW_LOCKFILE_H
#define CW_LOCKFILE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether an open file or directory is the one that others find: in `dir`, under that name. */
bool cw_has_name(int fd, int dir, const char *name);

/* Locks it (flock, LOCK_SH or LOCK_EX) without waiting, if it is that one. errno EWOULDBLOCK where
 * it is not, or another process holds it. */
bool cw_lock_named(int fd, int how, int dir, const char *name);

/* Opens a file of an open directory, makes it (`make`) where there is none, and locks it (flock)
 * once nobody else does, at most `wait_ms` later. What is locked has that name then: who held the
 * lock before may have removed it, and a third one made another. Returns its descriptor, or -1:
 * errno EWOULDBLOCK where another process holds it. */
int cw_lockfile_take(int dir, const char *name, bool make, uint32_t wait_ms);

/* The name of a file or directory is on disk when this has returned 0; else an errno. */
int cw_sync_name(const char *path);

#endif
