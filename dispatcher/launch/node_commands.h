/* The commands that lead to the nodes of a job. */
#ifndef DISPATCHER_NODE_COMMANDS_H
#define DISPATCHER_NODE_COMMANDS_H

#include "dispatcher/launch/nodes.h"
#include "dispatcher/wire/launch_command.h"

#include <limits.h>

struct node_commands {
    const struct nodes_config *config; /* borrowed */
    char causeway[PATH_MAX];           /* on hosts of which the user says nothing else */
    char own_host[HOST_NAME_MAX + 1];
};

void node_commands_init(struct node_commands *commands, const struct nodes_config *config);

/* Of a host: its name, what leads to it, and its causeway. */
const char *node_commands_name(const struct node_commands *commands, uint32_t host);
const char *node_commands_launcher(const struct node_commands *commands, uint32_t host);
const char *node_commands_causeway(const struct node_commands *commands, uint32_t host);

/* To a new node, or (`attach` is its directory) to one once more. Errors: as launch_command_make.
 */
int node_commands_make(const struct node_commands *commands, uint32_t host, const char *attach,
                       struct launch_command *command, struct cw_err *err);
/* To who keeps a copy of the job's state there, in that directory. Errors: likewise. */
int node_commands_keep(const struct node_commands *commands, uint32_t host, const char *dir,
                       struct launch_command *command, struct cw_err *err);

#endif
