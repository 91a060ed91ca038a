#include "rdevice/image/renamed.h"

#include "rdevice/image/remark.h"
#include "rdevice/image/system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NAMES_BYTES 8192u
#define RENAMED_LOOKS_MAX 1048576u /* names in its directory */

struct directory_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

static bool is_file(const struct file *file, int directory, const char *name)
{
    struct stat st;

    return system_call(SYS_newfstatat, directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_ino == file->inode && st.st_dev == file->device;
}

/* Returns 0, or -ENOENT. */
static int find(const struct file *file, int directory, char *found, size_t size)
{
    static char names[NAMES_BYTES] __attribute__((aligned(8)));
    uint32_t looks = 0;
    long n;

    while ((n = system_call(SYS_getdents64, directory, names, sizeof(names))) > 0)
        for (long at = 0; at < n && looks < RENAMED_LOOKS_MAX; looks++) {
            const struct directory_entry *e = (const void *)(names + at);

            at += e->size;
            if (e->inode == file->inode && strlen(e->name) < size &&
                is_file(file, directory, e->name)) {
                strcpy(found, e->name);
                return 0;
            }
        }
    return -ENOENT;
}

/* Nothing is overwritten: the two change names, if its former name is taken. */
static long give_back(int directory, const char *now, const char *former)
{
    long status = system_call(SYS_renameat2, directory, now, directory, former, RENAME_NOREPLACE);

    if (status == -EEXIST)
        return system_call(SYS_renameat2, directory, now, directory, former, RENAME_EXCHANGE);
    return status;
}

static int open_found(const struct file *file, int directory, int flags)
{
    const char *former = strrchr(file->path, '/') + 1;
    char now[CW_IMAGE_PATH_MAX];
    long status = find(file, directory, now, sizeof(now));

    if (status < 0)
        return (int)status;
    if ((file->flags & O_ACCMODE) == O_RDONLY)
        return (int)system_call(SYS_openat, directory, now, flags, 0);
    status = give_back(directory, now, former);
    if (status < 0)
        return (int)status;
    remark_add("%.150s was renamed to %.60s since, and has its name again", file->path, now);
    return (int)system_call(SYS_openat, directory, former, flags, 0);
}

int renamed_open(const struct file *file, int flags)
{
    char path[CW_IMAGE_PATH_MAX];
    char *slash;
    int directory, fd;

    strcpy(path, file->path);
    slash = strrchr(path, '/');
    if (!slash)
        return -ENOENT;
    slash[slash == path] = '\0';
    directory = system_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory < 0)
        return directory;
    fd = open_found(file, directory, flags);
    system_close(directory);
    return fd;
}
