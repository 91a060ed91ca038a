#include "common/whole_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cw_file_read(const char *path, size_t max, char **text, size_t *size, struct cw_err *err)
{
    FILE *file = fopen(path, "re");
    bool failed;

    if (!file)
        return cw_err_set(err, errno == ENOENT ? CW_ENOTFOUND : CW_ESYS, "%s: %s", path,
                          strerror(errno));
    *text = malloc(max + 1);
    *size = *text ? fread(*text, 1, max + 1, file) : 0;
    failed = ferror(file);
    if (!*text)
        cw_err_set(err, CW_ENOMEM, "%s: no memory for it", path);
    else if (failed)
        cw_err_set(err, CW_ESYS, "%s: %s", path, strerror(errno));
    else if (*size > max)
        cw_err_set(err, CW_EINVAL, "%s: more than %zu bytes", path, max);
    fclose(file);
    if (*text && !failed && *size <= max) {
        (*text)[*size] = '\0';
        return CW_OK;
    }
    free(*text);
    *text = NULL;
    return err->code;
}
