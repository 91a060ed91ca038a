/* Directories with all that is in them. */
#ifndef CW_TREE_H
#define CW_TREE_H

#include <stdint.h>

/* Removes a file, or a directory and what is below it on the same file system. What cannot be
 * removed stays. */
void cw_tree_remove(const char *path);

/* Bytes on disk of the files below a directory; 0: there is none. */
uint64_t cw_tree_bytes(const char *path);

#endif
