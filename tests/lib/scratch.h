/* The directory of the test that runs, or of its suite: one at a time. TMPDIR names it meanwhile.
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stddef.h>
#include <sys/types.h>

extern char scratch_dir[64];

/* 0, as CUnit wants it of what sets up a suite. */
int scratch_make(void);

/* Not 0 where anything is left in it. */
int scratch_end(void);

/* With all that is in it. */
int scratch_remove(void);

/* The path of a file there; of the last two that were asked for. */
const char *scratch_path(const char *name);

/* Writes a file there anew. */
void scratch_put(const char *name, const void *bytes, size_t size, mode_t mode);

#endif
