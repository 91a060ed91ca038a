/* What of libc_names.c files.c needs: files that are made new, whose openings it tells of. Any
 * thread. */
#ifndef RDEVICE_LIBC_NAMES_H
#define RDEVICE_LIBC_NAMES_H

#include <stdint.h>
#include <sys/types.h>

/* As openat() with O_CREAT and O_EXCL in `flags`. A rank that repeats it gets the file that an
 * earlier incarnation made, emptied, or the error that it got. `caller`: where the function of libc
 * returns to. */
int libc_names_create(int dir, const char *path, int flags, mode_t mode, uintptr_t caller);

/* As mkostemps(): the name is that of the first execution. */
int libc_names_temporary(char *template, int suffix, int flags, uintptr_t caller);

#endif
