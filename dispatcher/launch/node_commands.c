#include "dispatcher/launch/node_commands.h"

#include <stdio.h>
#include <unistd.h>

void node_commands_init(struct node_commands *c, const struct nodes_config *config)
{
    ssize_t n = readlink("/proc/self/exe", c->causeway, sizeof(c->causeway) - 1);

    c->config = config;
    c->causeway[n > 0 ? n : 0] = '\0';
    if (config->causeway)
        snprintf(c->causeway, sizeof(c->causeway), "%s", config->causeway);
    gethostname(c->own_host, sizeof(c->own_host) - 1);
}

static bool is_here(const struct node_commands *c, uint32_t host)
{
    return host == c->config->hosts->count;
}

const char *node_commands_name(const struct node_commands *c, uint32_t host)
{
    return is_here(c, host) ? "localhost" : c->config->hosts->host[host].name;
}

const char *node_commands_launcher(const struct node_commands *c, uint32_t host)
{
    return is_here(c, host) ? "ssh" : c->config->launcher;
}

const char *node_commands_causeway(const struct node_commands *c, uint32_t host)
{
    const char *own = is_here(c, host) ? c->config->own : c->config->hosts->host[host].causeway;

    return own ? own : c->causeway;
}

static struct launch_command_config config_of(const struct node_commands *c, uint32_t host)
{
    return (struct launch_command_config){.launcher = node_commands_launcher(c, host),
                                          .args = c->config->launcher_args,
                                          .host = node_commands_name(c, host),
                                          .own_host = c->own_host,
                                          .causeway = node_commands_causeway(c, host),
                                          .connect_s = NODES_CONNECT_MAX_S};
}

int node_commands_make(const struct node_commands *c, uint32_t host, const char *attach,
                       struct launch_command *command, struct cw_err *err)
{
    uint64_t timeout_s = c->config->timeout_ns / 1000000000 + 1;
    const char *first[] = {"node", NULL};
    const char *again[] = {"node", "--attach", attach, NULL};
    char kept[64];
    const char *here[] = {"node", "--here", kept, NULL};
    struct launch_command_config config = config_of(c, host);

    config.words = attach ? again : first;
    snprintf(kept, sizeof(kept), "%d,%d,%d", c->config->kept_fds[0], c->config->kept_fds[1],
             c->config->kept_fds[2]);
    if (is_here(c, host))
        config.words = here;
    if (attach && timeout_s < config.connect_s)
        config.connect_s = (uint32_t)timeout_s;
    return launch_command_make(command, &config, err);
}

int node_commands_keep(const struct node_commands *c, uint32_t host, const char *dir,
                       struct launch_command *command, struct cw_err *err)
{
    const char *words[] = {"node", "--keep", dir, NULL};
    struct launch_command_config config = config_of(c, host);

    config.words = words;
    return launch_command_make(command, &config, err);
}
