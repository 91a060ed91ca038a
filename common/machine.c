#include "common/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BOOT_BYTES 36 /* of the text of a UUID */

static bool read_link(const char *path, char text[48])
{
    ssize_t n = readlink(path, text, 47);

    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

void cw_machine_read(char text[CW_MACHINE_MAX])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    char boot[BOOT_BYTES + 1] = "";
    char files[48], network[48];
    bool known = fd >= 0 && read(fd, boot, BOOT_BYTES) == BOOT_BYTES;

    if (fd >= 0)
        close(fd);
    text[0] = '\0';
    if (known && read_link("/proc/self/ns/mnt", files) && read_link("/proc/self/ns/net", network))
        snprintf(text, CW_MACHINE_MAX, "%s %s %s", boot, files, network);
}

bool cw_machine_is_same(const char *a, const char *b)
{
    return a[0] && strcmp(a, b) == 0;
}

bool cw_machine_is_one_kernel(const char *a, const char *b)
{
    size_t size = strcspn(a, " ");

    return size > 0 && strncmp(a, b, size) == 0 && b[size] == ' ';
}

bool cw_machine_limits_memory(void)
{
    static const int limits[] = {RLIMIT_AS, RLIMIT_FSIZE};
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits) && limit.rlim_cur == RLIM_INFINITY; i++)
        getrlimit(limits[i], &limit);
    return limit.rlim_cur != RLIM_INFINITY;
}
