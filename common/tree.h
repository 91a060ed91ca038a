/* Directories with all that is in them. */
#ifndef CW_TREE_H
#define CW_TREE_H

/* Removes a file, or a directory and what is below it on the same file system. What cannot be
 * removed stays. */
void cw_tree_remove(const char *path);

#endif
