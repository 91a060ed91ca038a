/* Private directories that processes hold (flock) while they use them, so that those which killed
 * processes have left are told from others, and are removed by the next one. */
#ifndef CW_HELD_DIR_H
#define CW_HELD_DIR_H

#include <stdbool.h>

#define HELD_DIR_TRIES 100   /* to hold one that another process looks at, or removes */
#define HELD_DIR_STEP_MS 10  /* between two of them */
#define HELD_DIR_LOCK "lock" /* a file in it that one process has locked */

/* Holds a directory together with others; `make`: it is made where there is none, of this user
 * alone. Until it is held another process may take it for one that was left, and removes it, which
 * takes no time. Returns its descriptor, or -1 with errno set: EWOULDBLOCK, one holds it alone. */
int cw_held_dir_open(const char *path, bool make);

/* Holds it no more, and removes it with all in it if nobody else holds it; only one of this user's
 * that has this path still. `with_lock`: nor has anybody its file HELD_DIR_LOCK; one without that
 * file may be one that is being made, and stays for some seconds. */
void cw_held_dir_leave(int dir, const char *path, bool with_lock);
/* The same of one that others have left, if there is one; a symbolic link is none. */
void cw_held_dir_remove_left(const char *path, bool with_lock);
/* Of all that are in `above` and whose names begin so. */
void cw_held_dir_remove_all_left(const char *above, const char *prefix, bool with_lock);

#endif
