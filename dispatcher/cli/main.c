/* The `causeway` command: a table of subcommands. */
#include "ckptsrv/main.h"
#include "common/signals.h"
#include "dispatcher/cli/commands.h"
#include "relay/main.h"
#include "tunnels/ssh_transport.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int cmd_help(int argc, char **argv);

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", cmd_run, "run an MPI program, every message carried by a relay"},
    {"relay", cmd_relay, "run a relay in the foreground"},
    {"ckptsrv", cmd_ckptsrv, "run a checkpoint server in the foreground"},
    {"up", cmd_up, "start the relays and other services of a grid"},
    {"down", cmd_down, "end them"},
    {"status", cmd_status, "show how a running job stands, or the services of a grid"},
    {"log", cmd_log, "look at the logs of a relay that is not running"},
    {"ckpt", cmd_ckpt, "look at the images that a checkpoint server keeps, remove some"},
    {"tunnel", cmd_tunnel, "reach an address behind a gateway, through SSH"},
    {"doctor", cmd_doctor, "say what this machine, or each host of a job, has and lacks"},
    {"model", cmd_model, "say how failure detectors do, in simulated time"},
    {"help", cmd_help, "this text"},
    {"node", cmd_node, NULL}, /* for other commands alone, as is this: */
    {"keep", cmd_keep, NULL},
};

static void print_commands(FILE *to)
{
    fputs("usage: causeway COMMAND [options]\n\n", to);
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (commands[i].summary)
            fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\ncauseway COMMAND --help says more; so does causeway(1).\n", to);
}

static int cmd_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    print_commands(stdout);
    return 0;
}

/* A closed standard descriptor must not become a socket of ours. Opened the wrong way round, so
 * that reading or writing it still fails. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            exit(1);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    cw_signals_begin();
    fill_standard_descriptors();
    cw_transport_add(&ssh_transport);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return cmd_help(argc, argv);
    if (strcmp(name, "--version") == 0) {
        puts("causeway " CAUSEWAY_VERSION);
        return 0;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (argc > 1)
        fprintf(stderr, "causeway: unknown command '%s'\n\n", name);
    print_commands(stderr);
    return 2;
}
