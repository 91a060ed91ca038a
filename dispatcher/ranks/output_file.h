/* Files that the user named for output. */
#ifndef DISPATCHER_OUTPUT_FILE_H
#define DISPATCHER_OUTPUT_FILE_H

#include <stdint.h>

#define OUTPUT_FILE_OWN_MAX 256 /* the lowest descriptors, which are looked at */

/* Makes or empties the file, and returns a descriptor for writing, or -1 with errno set. `flags`:
 * further ones of open(2). A file or socket that is open here already (/dev/stderr, or what
 * standard output goes to) is not emptied: both write on in turn, the descriptor being a copy. */
int output_file_open(const char *path, int flags);

/* Cuts a regular file off behind so many lines, and so many bytes of the next one if there are any,
 * before which stand `prefix` bytes more. Returns lines that are not there, of which nothing is
 * cut, or -1 with errno set. */
int64_t output_file_cut(int fd, uint64_t lines, uint64_t prefix, uint64_t bytes);

/* Errors: -1 with errno set; a file that nothing keeps on disk, such as a pipe, needs no sync. */
int output_file_sync(int fd);
int output_dir_sync(const char *path);

#endif
