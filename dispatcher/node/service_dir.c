#include "dispatcher/node/service_dir.h"
#include "common/lockfile.h"
#include "common/tree.h"
#include "dispatcher/hosts/grid_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME "lock"
#define INFO_NAME "info"
#define LOG_PREFIX "log"

static int fail(const char *path, const char *doing, struct cw_err *err)
{
    return cw_err_set(err, CW_ESYS, "the directory of the service: %s: %s: %s", path, doing,
                      strerror(errno));
}

int service_dir_path(const json_t *request, char path[PATH_MAX], struct cw_err *err)
{
    char name[2 * SERVICE_NAME_MAX + 2];
    struct grid grid = {0};

    snprintf(grid.name, sizeof(grid.name), "%s", service_text(request, "grid"));
    snprintf(name, sizeof(name), "%s.%s", service_text(request, "site"),
             service_text(request, "service"));
    return grid_state_path(&grid, name, path, err);
}

static void in_dir(const char *path, const char *file, char whole[PATH_MAX])
{
    if (snprintf(whole, PATH_MAX, "%s/%s", path, file) >= PATH_MAX)
        whole[0] = '\0'; /* nothing is there */
}

/* --- the lock --- */

static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

pid_t service_dir_holder(const char *path)
{
    struct flock lock = whole_file();
    char name[PATH_MAX];
    pid_t holder = 0;
    int fd;

    in_dir(path, LOCK_NAME, name);
    fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        holder = lock.l_pid;
    close(fd);
    return holder;
}

/* `kept`: the lock stays, and names that begin so; NULL: none. */
static void remove_files(const char *path, const char *kept)
{
    struct cw_names names = cw_names(path, "");
    const char *name;

    while ((name = cw_names_next(&names)))
        if (!kept || (strncmp(name, kept, strlen(kept)) != 0 && strcmp(name, LOCK_NAME) != 0))
            unlinkat(dirfd(names.dir), name, 0);
}

int service_dir_lock(const char *path, struct cw_err *err)
{
    char name[PATH_MAX];

    in_dir(path, LOCK_NAME, name);
    for (uint32_t i = 0; i < SERVICE_DIR_TRIES_MAX; i++) {
        struct flock lock = whole_file();
        int fd;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return fail(path, "mkdir", err);
        fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0)
            return fail(name, "open", err);
        if (fcntl(fd, F_SETLK, &lock) < 0) {
            close(fd);
            return cw_err_set(err, CW_EBUSY, "another process starts it at the same time");
        }
        if (cw_has_name(fd, AT_FDCWD, name)) {
            remove_files(path, LOG_PREFIX);
            return fd;
        }
        close(fd);
    }
    return cw_err_set(err, CW_EBUSY, "others remove its directory again and again");
}

/* --- files --- */

int service_dir_write(const char *path, const char *file, const char *text, struct cw_err *err)
{
    char name[PATH_MAX];

    in_dir(path, file, name);
    return grid_state_write(name, text, err);
}

json_t *service_dir_info(const char *path)
{
    char name[PATH_MAX];

    in_dir(path, INFO_NAME, name);
    return json_load_file(name, 0, NULL);
}

void service_dir_remove(const char *path)
{
    char above[PATH_MAX];

    remove_files(path, NULL);
    if (rmdir(path) < 0)
        return;
    snprintf(above, sizeof(above), "%s", path);
    *strrchr(above, '/') = '\0';
    rmdir(above);
}
