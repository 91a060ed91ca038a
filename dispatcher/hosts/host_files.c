#include "dispatcher/hosts/host_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole file. The caller frees *text. */
static int read_whole(const char *path, char **text, size_t *size, struct cw_err *err)
{
    FILE *file = fopen(path, "re");
    bool failed;

    if (!file)
        return cw_err_set(err, errno == ENOENT ? CW_ENOTFOUND : CW_ESYS, "%s: %s", path,
                          strerror(errno));
    *text = malloc(HOST_FILE_BYTES_MAX + 1);
    *size = *text ? fread(*text, 1, HOST_FILE_BYTES_MAX + 1, file) : 0;
    failed = ferror(file);
    if (!*text)
        cw_err_set(err, CW_ENOMEM, "%s: no memory for it", path);
    else if (failed)
        cw_err_set(err, CW_ESYS, "%s: %s", path, strerror(errno));
    else if (*size > HOST_FILE_BYTES_MAX)
        cw_err_set(err, CW_EINVAL, "%s: more than %u bytes", path, HOST_FILE_BYTES_MAX);
    fclose(file);
    if (*text && !failed && *size <= HOST_FILE_BYTES_MAX)
        return CW_OK;
    free(*text);
    return err->code;
}

int host_list_read(struct host_list *list, const char *path, struct cw_err *err)
{
    char *text;
    size_t size;
    int result;

    if (read_whole(path, &text, &size, err) < 0)
        return err->code;
    result = host_list_parse(list, path, text, size, err);
    free(text);
    return result;
}

int rankfile_read(struct rankfile *rankfile, const char *path, uint32_t ranks,
                  struct host_list *hosts, struct cw_err *err)
{
    char *text;
    size_t size;
    int result;

    if (read_whole(path, &text, &size, err) < 0)
        return err->code;
    result = rankfile_parse(rankfile, path, text, size, ranks, hosts, err);
    free(text);
    return result;
}
