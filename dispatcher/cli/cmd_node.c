#include "dispatcher/cli/commands.h"
#include "dispatcher/cli/host_answers.h"
#include "dispatcher/node/attach.h"
#include "dispatcher/node/node.h"
#include "dispatcher/node/service_keeper.h"
#include "dispatcher/node/state_keeper.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: causeway node [--attach DIRECTORY | --keep DIRECTORY | --here DESCRIPTORS]\n\n"
    "The part of a job on one host. 'causeway run' starts it, elsewhere over ssh or the like, and\n"
    "speaks with it over its standard input and output; 'causeway doctor', 'up', 'down' and "
    "'status'\n"
    "ask hosts by it. It is not for use by hand.\n";

/* Descriptors, or -1, with commas between: what its children do not get unasked. */
static int run_here(const char *descriptors, struct cw_err *err)
{
    struct node_kept kept;
    int *fds[] = {&kept.keep_fd, &kept.log.state_fd, &kept.log.disk_fd};

    if (sscanf(descriptors, "%d,%d,%d", fds[0], fds[1], fds[2]) != 3)
        return cw_err_set(err, CW_EINVAL, "--here %s: expected three descriptors", descriptors);
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        if (*fds[i] >= 0 && fcntl(*fds[i], F_SETFD, FD_CLOEXEC) < 0)
            return cw_err_set(err, CW_EINVAL, "--here %s: %d is not open", descriptors, *fds[i]);
    return node_run(&kept, host_answer, err);
}

int cmd_node(int argc, char **argv)
{
    bool here = argc == 3 && strcmp(argv[1], "--here") == 0;
    struct cw_err err = {0};

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--attach") == 0)
        attach_run(argv[2], &err);
    else if (argc == 3 && strcmp(argv[1], "--keep") == 0)
        state_keeper_run(argv[2], &err);
    else if (here)
        run_here(argv[2], &err);
    else if (argc == 1)
        node_run(NULL, host_answer, &err);
    else {
        fputs(usage, stderr);
        return 2;
    }
    if (err.code == CW_OK)
        return 0;
    /* here, a connection that is closed means that causeway run was killed: no news to its user */
    if (!here || err.code != CW_ECLOSED)
        fprintf(stderr, "causeway node: %s\n", err.text);
    return 1;
}

int cmd_keep(int argc, char **argv)
{
    int code = argc == 2 && argv[1][0] == '/' ? service_keeper_run(argv[1]) : 2;

    if (code == 2)
        fputs("causeway keep: a node starts it, to keep a service of a grid\n", stderr);
    return code;
}
