#include "dispatcher/hosts/host_files.h"
#include "common/whole_file.h"

#include <stdlib.h>

int host_list_read(struct host_list *list, const char *path, struct cw_err *err)
{
    char *text;
    size_t size;
    int result;

    if (cw_file_read(path, HOST_FILE_BYTES_MAX, &text, &size, err) < 0)
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

    if (cw_file_read(path, HOST_FILE_BYTES_MAX, &text, &size, err) < 0)
        return err->code;
    result = rankfile_parse(rankfile, path, text, size, ranks, hosts, err);
    free(text);
    return result;
}
