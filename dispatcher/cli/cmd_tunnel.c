#include "dispatcher/cli/cmd_tunnel.h"
#include "dispatcher/cli/cmd_door.h"
#include "tunnels/tunnel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: causeway tunnel ssh:[USER@]GATEWAY[:PORT][,...]/HOST:PORT\n"
    "       causeway tunnel --listen tcp:HOST:PORT ssh:... [--listen ...]\n\n"
    "Carries its standard input and output to HOST:PORT behind a gateway, through SSH, as\n"
    "'ssh -W HOST:PORT GATEWAY' does; further gateways after commas are each reached from the one\n"
    "before. Gateways must be in ~/.ssh/known_hosts. Keys: of an agent, or ~/.ssh/id_ed25519 and\n"
    "id_ecdsa without a passphrase, and before those the files of CAUSEWAY_SSH_KEYS, with ':'\n"
    "between them. Relays start it for addresses of this form. With --listen it is a door: each\n"
    "connection to tcp:HOST:PORT is led to that address, until SIGTERM.\n";

/* Of who started us, which hears why there is no tunnel; else it is told here. It may have signals
 * blocked, and what a terminal sends is for it: its last words still go through here. */
static bool take_fd(const char *text, struct tunnel_ends *ends)
{
    sigset_t none;
    char *end;
    long fd = strtol(text, &end, 10);

    if (!*text || *end || fd < 0 || fcntl((int)fd, F_GETFD) < 0)
        return false;
    fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    *ends = (struct tunnel_ends){.in = (int)fd, .out = (int)fd, .told = true};
    return true;
}

int cmd_tunnel(int argc, char **argv)
{
    struct tunnel_ends ends = {.in = STDIN_FILENO, .out = STDOUT_FILENO};
    struct ssh_address address;
    struct cw_err err = {0};

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc >= 2 && strcmp(argv[1], "--listen") == 0)
        return cmd_door(argc, argv);
    if (argc == 4 && strcmp(argv[1], "--fd") == 0 && take_fd(argv[2], &ends)) {
        argv += 2;
    } else if (argc != 2) {
        fputs(usage, stderr);
        return 2;
    }
    if (ssh_address_parse(&address, argv[1], &err) < 0) {
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (tunnel_run(&address, &ends, &err) == CW_OK)
        return 0;
    if (ends.opened || !ends.told)
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
    return 1;
}
