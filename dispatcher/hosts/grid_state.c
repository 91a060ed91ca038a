#include "dispatcher/hosts/grid_state.h"
#include "common/home.h"
#include "common/keyfile.h"
#include "dispatcher/hosts/grid_file.h"
#include "dispatcher/hosts/ssh_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *path, const char *doing, struct cw_err *err)
{
    return cw_err_set(err, CW_ESYS, "what is kept of a grid: %s: %s: %s", path, doing,
                      strerror(errno));
}

/* All directories on the way; those that are made are the user's alone. */
static int make_dirs(char *path, struct cw_err *err)
{
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        bool failed;

        if (slash)
            *slash = '\0';
        failed = mkdir(path, 0700) < 0 && errno != EEXIST;
        if (failed)
            return fail(path, "mkdir", err);
        if (!slash)
            return CW_OK;
        *slash = '/';
    }
}

static int make_own(char *dir, struct cw_err *err)
{
    struct stat st;

    if (make_dirs(dir, err) < 0)
        return err->code;
    if (stat(dir, &st) < 0)
        return fail(dir, "stat", err);
    if (st.st_uid != geteuid() || st.st_mode & 022)
        return cw_err_set(err, CW_EINVAL,
                          "what is kept of a grid: %s: others may write there, or it is somebody "
                          "else's; the directory must be yours alone (chmod 700)",
                          dir);
    return CW_OK;
}

int grid_state_path(const struct grid *grid, const char *file, char path[PATH_MAX],
                    struct cw_err *err)
{
    const char *base = getenv("XDG_STATE_HOME");
    char dir[PATH_MAX];
    int size =
        base && base[0] == '/'
            ? snprintf(dir, sizeof(dir), "%s/causeway/%s", base, grid->name)
            : snprintf(dir, sizeof(dir), "%s/.local/state/causeway/%s", cw_home(), grid->name);

    if ((size_t)size + strlen(file) + 2 > sizeof(dir))
        return cw_err_set(err, CW_EINVAL,
                          "what is kept of a grid: the name of its directory is "
                          "too long; set XDG_STATE_HOME");
    if (make_own(dir, err) < 0)
        return err->code;
    strcpy(stpcpy(stpcpy(path, dir), "/"), file);
    return CW_OK;
}

int grid_state_write(const char *path, const char *text, struct cw_err *err)
{
    char fresh[PATH_MAX + 8];
    bool written;
    FILE *to;
    int fd;

    snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
    fd = mkostemp(fresh, O_CLOEXEC);
    to = fd < 0 ? NULL : fdopen(fd, "w");
    if (!to)
        return fail(fresh, "open", err);
    written = fputs(text, to) >= 0;
    written = fclose(to) == 0 && written;
    if (written && rename(fresh, path) == 0)
        return CW_OK;
    fail(path, "write", err);
    unlink(fresh);
    return err->code;
}

int grid_state_key(const struct grid *grid, uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    char path[PATH_MAX];
    bool made;

    if (grid_state_path(grid, GRID_STATE_KEY, path, err) < 0)
        return err->code;
    return cw_key_load_or_make(path, key, &made, err);
}

int grid_state_ssh_args(const struct grid *grid, uint32_t here, const char *dir,
                        char args[GRID_SSH_ARGS_BYTES], struct cw_err *err)
{
    char path[PATH_MAX], *text;
    int failed;

    if (dir)
        snprintf(path, sizeof(path), "%s/" GRID_STATE_SSH_CONFIG, dir);
    else if (grid_state_path(grid, GRID_STATE_SSH_CONFIG, path, err) < 0)
        return err->code;
    if (strpbrk(path, " \t"))
        return cw_err_set(err, CW_EINVAL,
                          "%s: the name has a blank, with which ssh cannot be told of it; set "
                          "XDG_STATE_HOME to a directory without",
                          path);
    text = ssh_config_make(grid, here);
    failed = text ? grid_state_write(path, text, err)
                  : cw_err_set(err, CW_ENOMEM, "no memory for the configuration of ssh");
    free(text);
    strcpy(stpcpy(args, "-F "), path);
    return failed;
}

void grid_place_at_home(char path[GRID_PATH_MAX + 1], const char *home)
{
    size_t size = strlen(home);

    if (size < 2 || strncmp(path, home, size) != 0 || path[size] != '/')
        return;
    path[0] = '~';
    memmove(path + 1, path + size, strlen(path + size) + 1);
}

/* The configuration for ssh here has the names of this machine. */
int grid_place_open(struct grid_place *p, const char *file, const char *here, struct cw_err *err)
{
    gethostname(p->own_host, sizeof(p->own_host) - 1);
    if (grid_file_read(&p->grid, file, err) < 0 ||
        grid_here(&p->grid, here, p->own_host, &p->here, err) < 0 ||
        grid_state_ssh_args(&p->grid, p->here, NULL, p->ssh_args, err) < 0)
        return err->code;
    for (uint32_t i = 0; i < p->grid.sites; i++)
        grid_place_at_home(p->grid.site[i].key, cw_home());
    return CW_OK;
}
