/* Directories with all that is in them. */
#ifndef CW_TREE_H
#define CW_TREE_H

#include <dirent.h>
#include <stdint.h>

/* Removes a file, or a directory and what is below it on the same file system. What cannot be
 * removed stays. */
void cw_tree_remove(const char *path);

/* Bytes on disk of the files below a directory; 0: there is none. */
uint64_t cw_tree_bytes(const char *path);

#define TREE_NAMES_MAX (1u << 20) /* in a directory that is walked */

/* Walks the names in a directory that begin with `prefix`, which stays, but for "." and "..": to be
 * called until NULL comes, then it is closed. One that cannot be read has none. */
struct cw_names {
    DIR *dir;
    const char *prefix;
    uint32_t seen;
};
struct cw_names cw_names(const char *path, const char *prefix);
const char *cw_names_next(struct cw_names *names);

#endif
