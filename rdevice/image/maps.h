/* All regions of this process, from /proc/self/maps and smaps. */
#ifndef RDEVICE_IMAGE_MAPS_H
#define RDEVICE_IMAGE_MAPS_H

#include "common/err.h"
#include "rdevice/image/maps_line.h"

#include <sys/stat.h>

#define MAPS_BUFFER_BYTES 90112u

/* Calls `each` for the regions of this process in the order of their addresses, with the flags if
 * `smaps`, until it returns other than 0, which is returned. Returns 0, or CW_ESYS with *err set
 * when the file cannot be read. The memory must not change meanwhile. `buffer`
 * has MAPS_BUFFER_BYTES. */
int maps_each(bool smaps, void *buffer, int (*each)(void *ctx, const struct maps_region *region),
              void *ctx, struct cw_err *err);

/* Whether this is the file that is mapped. `type`: of its file system, as statfs(2) has it: some
 * show programs another number of a device than the kernel's own. */
bool maps_is_file(const struct maps_region *region, const struct stat *st, uint64_t type);

#endif
