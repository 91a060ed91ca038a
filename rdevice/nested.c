#include "rdevice/nested.h"
#include "common/setup.h"
#include "rdevice/next.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The launcher sets it to 0. It is changed in place, and not by setenv(3), which would allocate. */
static char *mark(void)
{
    return getenv(CW_INSIDE_ENV);
}

bool nested_is(void)
{
    const char *text = mark();

    return text && *text == '1';
}

void nested_begin(int control_fd)
{
    char *text = mark();
    const char *pmi = getenv("PMI_FD");

    if (text && *text == '0')
        *text = '1';
    /* two processes on it would be one rank for causeway run */
    if (pmi && atoi(pmi) == control_fd - 1)
        fcntl(control_fd - 1, F_SETFD, FD_CLOEXEC);
}

/* --- an MPI program that is no rank --- */

static bool is_of(const char *setting, const char *name)
{
    size_t size = strlen(name);

    return strncmp(setting, name, size) == 0 && setting[size] == '=';
}

/* LD_PRELOAD without us, in place. False: we are not in it. */
static bool leave_preload(char *setting)
{
    char *value = strchr(setting, '=') + 1;
    Dl_info self;
    size_t size;
    char *at;

    if (!dladdr((void *)nested_begin, &self))
        return false;
    size = strlen(self.dli_fname);
    for (at = strstr(value, self.dli_fname); at; at = strstr(at + 1, self.dli_fname)) {
        char *end = at + size;

        if ((at > value && at[-1] != ':' && at[-1] != ' ') || (*end && *end != ':' && *end != ' '))
            continue;
        memmove(at, end + (*end != '\0'), strlen(end + (*end != '\0')) + 1);
        return true;
    }
    return false;
}

/* Ours are left out. */
static bool make_environment(char **env, int control_fd)
{
    char own_pmi[32];
    bool left = false;
    int kept = 0;

    snprintf(own_pmi, sizeof(own_pmi), "PMI_FD=%d", control_fd - 1);
    for (int i = 0; env[i]; i++) {
        if (is_of(env[i], "LD_PRELOAD"))
            left |= leave_preload(env[i]);
        if (!is_of(env[i], CW_SETUP_ENV) && !is_of(env[i], CW_INSIDE_ENV) &&
            strcmp(env[i], own_pmi) != 0 && strcmp(env[i], "LD_PRELOAD=") != 0)
            env[kept++] = env[i];
    }
    env[kept] = NULL;
    return left;
}

/* What files it shares with ranks nobody will know. */
static bool tell(int control_fd, const char *path)
{
    uint8_t bytes[CW_REPORT_HEADER + CW_TEXT_MAX];
    size_t size = strlen(path) < CW_TEXT_MAX ? strlen(path) : CW_TEXT_MAX;

    size = cw_report_put(bytes, CW_REPORT_NESTED, path, size);
    return send(control_fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* An MPI program that the rank's program has started begins anew without us. Before its main(): the
 * loader has bound MPICH's calls to us. One that loads MPI later is refused by device_open(). */
__attribute__((constructor)) static void begin(int argc, char **argv, char **env)
{
    const char *control = getenv(CW_SETUP_ENV);
    char path[PATH_MAX];
    ssize_t size;
    void *init;

    (void)argc;
    if (!control || !nested_is())
        return;
    next_resolve(&init, "MPI_Init");
    if (!init)
        return;
    size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (size <= 0)
        return;
    path[size] = '\0';
    if (!tell(atoi(control), path)) {
        dprintf(STDERR_FILENO,
                "causeway: %s: an MPI program that a rank has started, and causeway run cannot be "
                "told of it: %s; start it with env -u LD_PRELOAD\n",
                path, strerror(errno));
        _exit(1);
    }
    if (make_environment(env, atoi(control)))
        execve(path, argv, env);
    dprintf(STDERR_FILENO, "causeway: %s: an MPI program that a rank has started: %s\n", path,
            strerror(errno));
    _exit(1);
}
