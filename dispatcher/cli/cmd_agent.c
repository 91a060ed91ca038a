#include "dispatcher/agent/agent.h"
#include "dispatcher/agent/attach.h"
#include "dispatcher/cli/commands.h"
#include "dispatcher/cli/host_answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: causeway agent [--attach DIRECTORY | --here KEPT]\n\n"
    "The part of a job on one host. 'causeway run' starts it, elsewhere over ssh or the like, and\n"
    "speaks with it over its standard input and output; 'causeway doctor', 'up', 'down' and "
    "'status'\n"
    "ask hosts by it. It is not for use by hand.\n";

int cmd_agent(int argc, char **argv)
{
    struct cw_err err = {0};

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--attach") == 0)
        attach_run(argv[2], &err);
    else if (argc == 3 && strcmp(argv[1], "--here") == 0)
        agent_run(true, atoi(argv[2]), host_answer, &err);
    else if (argc == 1)
        agent_run(false, -1, host_answer, &err);
    else {
        fputs(usage, stderr);
        return 2;
    }
    if (err.code == CW_OK)
        return 0;
    fprintf(stderr, "causeway agent: %s\n", err.text);
    return 1;
}
