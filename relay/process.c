#include "relay/process.h"
#include "common/fd.h"
#include "relay/disk.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int relay_kept_make(struct relay_kept *kept, const char *log_dir, struct cw_err *err)
{
    if (kept->state_fd >= 0)
        return CW_OK;
    kept->state_fd = memfd_create("causeway-log", MFD_CLOEXEC);
    if (kept->state_fd < 0)
        return cw_err_set(err, CW_ESYS, "starting the relay: memfd_create: %s", strerror(errno));
    if (log_dir)
        kept->disk_fd = disk_make_file(log_dir);
    return CW_OK;
}

void relay_kept_take(struct relay_kept *kept, int state_fd, const char *log_dir)
{
    kept->state_fd = state_fd;
    if (log_dir)
        kept->disk_fd = disk_make_file(log_dir);
}

void relay_kept_close(struct relay_kept *kept)
{
    cw_close(&kept->state_fd);
    cw_close(&kept->disk_fd);
}
