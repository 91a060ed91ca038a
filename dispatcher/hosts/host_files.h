/* Reads hostfiles and rankfiles. */
#ifndef DISPATCHER_HOST_FILES_H
#define DISPATCHER_HOST_FILES_H

#include "dispatcher/hosts/rankfile.h"

#define HOST_FILE_BYTES_MAX (4u << 20) /* of a file */

/* As host_list_parse and rankfile_parse. Errors also: CW_ENOTFOUND, CW_ESYS, naming the file. */
int host_list_read(struct host_list *list, const char *path, struct cw_err *err);
int rankfile_read(struct rankfile *rankfile, const char *path, uint32_t ranks,
                  struct host_list *hosts, struct cw_err *err);

#endif
