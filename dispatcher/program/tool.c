#include "dispatcher/program/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int spawn_tool(char *const argv[], int output_fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);

    if (failed)
        return failed;
    failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&actions, output_fd, 1);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&actions, output_fd, 2);
    if (!failed)
        failed = posix_spawn(pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* Until the end or TOOL_OUTPUT_MAX, terminated. */
static size_t read_all(int fd, char *output)
{
    size_t used = 0;

    while (used < TOOL_OUTPUT_MAX - 1) {
        ssize_t n = read(fd, output + used, TOOL_OUTPUT_MAX - 1 - used);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    output[used] = '\0';
    return used;
}

int tool_read(char *const argv[], char *output, struct cw_err *err)
{
    int ends[2];
    int status = 0;
    int failed;
    pid_t pid;
    size_t used;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return cw_err_set(err, CW_ESYS, "run %s: pipe: %s", argv[0], strerror(errno));
    failed = spawn_tool(argv, ends[1], &pid);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        return cw_err_set(err, CW_ESYS, "run %s: %s", argv[0], strerror(failed));
    }
    used = read_all(ends[0], output);
    close(ends[0]);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cw_err_set(err, CW_ESYS, "run %s: wait: %s", argv[0], strerror(errno));
    if (used == TOOL_OUTPUT_MAX - 1)
        return cw_err_set(err, CW_ELIMIT, "run %s: it wrote %u bytes or more", argv[0],
                          TOOL_OUTPUT_MAX - 1);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
