/* Opening a file that the user named for output. */
#ifndef DISPATCHER_OUTPUT_FILE_H
#define DISPATCHER_OUTPUT_FILE_H

#define OUTPUT_FILE_OWN_MAX 256 /* the lowest descriptors, which are looked at */

/* Makes or empties the file, and returns a descriptor for writing, or -1 with errno set. `flags`:
 * further ones of open(2). A file or socket that is open here already (/dev/stderr, or what
 * standard output goes to) is not emptied: both write on in turn, the descriptor being a copy. */
int output_file_open(const char *path, int flags);

#endif
