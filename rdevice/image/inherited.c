#include "rdevice/image/inherited.h"

#include "rdevice/image/system.h"

#include <sys/stat.h>

#define INHERITED_MAX 256 /* numbers below this are looked at */

static struct {
    uint64_t device, inode; /* 0: it was not open */
} known[INHERITED_MAX];

/* When the library is loaded, before the program opens anything. */
__attribute__((constructor)) static void look(void)
{
    struct stat st;

    for (int fd = 3; fd < INHERITED_MAX; fd++)
        if (system_call(SYS_fstat, fd, &st) == 0) {
            known[fd].device = st.st_dev;
            known[fd].inode = st.st_ino;
        }
}

bool inherited_has(int fd, uint64_t device, uint64_t inode)
{
    return fd >= 0 && fd < INHERITED_MAX && known[fd].inode != 0 && known[fd].inode == inode &&
           known[fd].device == device;
}
