#include "dispatcher/program/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_DEFAULT "/bin:/usr/bin" /* execvp's own, without PATH */

/* Joins what an absolute path is made of, from the last part that is absolute on. */
static int join(char *path, size_t path_size, const char *const parts[], size_t count,
                struct cw_err *err)
{
    size_t first = count;
    size_t used = 0;

    do
        first--;
    while (first > 0 && parts[first][0] != '/');
    path[0] = '\0';
    for (size_t i = first; i < count; i++) {
        const char *part = strncmp(parts[i], "./", 2) == 0 ? parts[i] + 2 : parts[i];
        const char *slash = used && path[used - 1] != '/' ? "/" : "";

        if (!*part)
            continue;
        used += (size_t)snprintf(path + used, path_size - used, "%s%s", slash, part);
        if (used >= path_size)
            return cw_err_set(err, CW_EINVAL, "program '%.200s': its path is longer than %zu bytes",
                              parts[count - 1], path_size - 1);
    }
    return CW_OK;
}

/* `dir` may be "". Relative to `wdir`, and that to the current directory. */
static int place(char *path, size_t path_size, const char *wdir, const char *dir, const char *name,
                 struct cw_err *err)
{
    char cwd[PATH_MAX];
    const char *parts[] = {cwd, wdir ? wdir : "", dir, name};

    if (!getcwd(cwd, sizeof(cwd)))
        return cw_err_set(err, CW_ESYS, "program '%.200s': the current directory: %s", name,
                          strerror(errno));
    return join(path, path_size, parts, sizeof(parts) / sizeof(*parts), err);
}

/* 0, or why the file cannot be executed: ENOENT, EISDIR, EACCES, ... */
static int try_file(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == ENOTDIR ? ENOENT : errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
        return EACCES;
    return 0;
}

static int explain_failure(const char *name, const char *path, int why, struct cw_err *err)
{
    switch (why) {
    case 0:
        return CW_OK;
    case ENOENT:
        return cw_err_set(err, CW_ENOTFOUND, "program '%.150s': there is no file %.300s", name,
                          path);
    case EISDIR:
        return cw_err_set(err, CW_EINVAL, "program '%.150s': %.300s is a directory", name, path);
    case EACCES:
        return cw_err_set(err, CW_EINVAL,
                          "program '%.150s': no permission to execute %.200s; make it executable "
                          "with chmod +x, and see that its directory can be entered",
                          name, path);
    default:
        return cw_err_set(err, CW_ESYS, "program '%.150s': %.200s: %s", name, path, strerror(why));
    }
}

static int not_in_path(const char *name, const char *wdir, char *path, size_t path_size,
                       struct cw_err *err)
{
    if (place(path, path_size, wdir, "", name, err) < 0)
        return err->code;
    if (try_file(path) == 0)
        return cw_err_set(err, CW_ENOTFOUND,
                          "program '%.150s': not found in PATH; write ./%.150s for the one in %s",
                          name, name, wdir ? "the working directory" : "this directory");
    return cw_err_set(err, CW_ENOTFOUND,
                      "program '%.150s': found neither in PATH nor in the working directory; give "
                      "its path",
                      name);
}

/* As execvp: goes on after a directory or a file that may not be executed, and reports the first
 * such when nothing better comes. */
static int search_path(const char *name, const char *wdir, char *path, size_t path_size,
                       struct cw_err *err)
{
    const char *path_variable = getenv("PATH");
    const char *at = path_variable ? path_variable : PATH_DEFAULT;
    struct cw_err bad = {.code = CW_OK};

    for (bool more = true; more;) {
        size_t size = strcspn(at, ":");
        char dir[PATH_MAX];
        int why = ENOENT;

        if (size < sizeof(dir)) {
            memcpy(dir, at, size);
            dir[size] = '\0';
            if (place(path, path_size, wdir, dir, name, err) < 0)
                return err->code;
            why = try_file(path);
        }
        if (why == 0)
            return CW_OK;
        if (why != ENOENT && bad.code == CW_OK)
            explain_failure(name, path, why, &bad);
        more = at[size] == ':';
        at += size + more;
    }
    if (bad.code == CW_OK)
        return not_in_path(name, wdir, path, path_size, err);
    *err = bad;
    return err->code;
}

int program_resolve(const char *name, const char *wdir, char *path, size_t path_size,
                    struct cw_err *err)
{
    if (!*name)
        return cw_err_set(err, CW_ENOTFOUND, "the name of the program is empty");
    if (!strchr(name, '/'))
        return search_path(name, wdir, path, path_size, err);
    if (place(path, path_size, wdir, "", name, err) < 0)
        return err->code;
    return explain_failure(name, path, try_file(path), err);
}
