/* Files that are read as a whole. */
#ifndef CW_WHOLE_FILE_H
#define CW_WHOLE_FILE_H

#include "common/err.h"

#include <stddef.h>

/* The bytes of a file, at most `max` of them, and a zero byte behind. The caller frees *text.
 * Errors, naming the file: CW_ENOTFOUND, CW_ESYS, CW_ENOMEM, CW_EINVAL: it has more. */
int cw_file_read(const char *path, size_t max, char **text, size_t *size, struct cw_err *err);

#endif
