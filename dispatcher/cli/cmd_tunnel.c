#include "common/parse.h"
#include "dispatcher/cli/commands.h"
#include "tunnels/merge.h"
#include "tunnels/stripe_cut.h"
#include "tunnels/tunnel.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: causeway tunnel [--connections N] [--verbose] "
    "ssh:[USER@]GATEWAY[:PORT][,...]/HOST:PORT\n"
    "       causeway tunnel --listen tcp:HOST:PORT ssh:... [--listen ...]\n\n"
    "Carries its standard input and output to HOST:PORT behind a gateway, through SSH, as\n"
    "'ssh -W HOST:PORT GATEWAY' does; further gateways after commas are each reached from the one\n"
    "before. Gateways must be in ~/.ssh/known_hosts. Keys: of an agent, or ~/.ssh/id_ed25519 and\n"
    "id_ecdsa without a passphrase, and before those the files of CAUSEWAY_SSH_KEYS, with ':'\n"
    "between them. Relays start it for addresses of this form. With --listen it is a door: each\n"
    "connection to tcp:HOST:PORT is led to that address, until SIGTERM.\n\n"
    "Over 5 ms of round trip or more, bytes go over 6 connections, if the last gateway has\n"
    "Causeway too; else over one. --connections, or " TUNNEL_CONNECTIONS_VARIABLE " in the\n"
    "environment, says how many (1 to 16). --verbose says how many there are, and why.\n";

/* Of who started us, which hears why there is no tunnel; else it is told here. It may have signals
 * blocked, and what a terminal sends is for it: its last words still go through here. */
static bool take_fd(const char *text, struct tunnel_ends *ends)
{
    struct cw_err err;
    sigset_t none;
    int fd;

    if (cw_parse_descriptor(text, &fd, &err) < 0)
        return false;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    *ends = (struct tunnel_ends){.in = fd, .out = fd, .told = true};
    return true;
}

/* False: it was said why. */
static bool take_connections(const char *what, const char *text, struct tunnel_options *options)
{
    uint64_t count;
    struct cw_err err;

    if (cw_parse_number(what, text, 1, STRIPES_MAX, &count, &err) < 0) {
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
        return false;
    }
    options->connections = (uint32_t)count;
    return true;
}

static int merge(void)
{
    struct cw_err err = {0};

    if (merge_run(&err) == CW_OK)
        return 0;
    fprintf(stderr, "causeway tunnel --merge: %s\n", err.text);
    return 1;
}

/* The address; NULL: bad usage. */
static const char *take_options(int argc, char **argv, struct tunnel_options *options,
                                struct tunnel_ends *ends)
{
    int at = 1;

    for (; at < argc && argv[at][0] == '-'; at++)
        if (strcmp(argv[at], "--verbose") == 0)
            options->verbose = true;
        else if (at + 1 < argc && strcmp(argv[at], "--fd") == 0 && take_fd(argv[at + 1], ends))
            at++;
        else if (at + 1 < argc && strcmp(argv[at], "--connections") == 0 &&
                 take_connections("--connections", argv[at + 1], options))
            at++;
        else
            return NULL;
    return at + 1 == argc ? argv[at] : NULL;
}

int cmd_tunnel(int argc, char **argv)
{
    struct tunnel_ends ends = {.in = STDIN_FILENO, .out = STDOUT_FILENO};
    const char *of_environment = getenv(TUNNEL_CONNECTIONS_VARIABLE), *text;
    struct tunnel_options options = {0};
    struct ssh_address address;
    struct cw_err err = {0};

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc >= 2 && strcmp(argv[1], "--listen") == 0)
        return cmd_door(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && strcmp(argv[1], "--merge") == 0)
        return merge();
    if (of_environment && !take_connections(TUNNEL_CONNECTIONS_VARIABLE, of_environment, &options))
        return 2;
    text = take_options(argc, argv, &options, &ends);
    if (!text) {
        fputs(usage, stderr);
        return 2;
    }
    if (ssh_address_parse(&address, text, &err) < 0) {
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
        return 2;
    }
    if (tunnel_run(&address, &options, &ends, &err) == CW_OK)
        return 0;
    if (ends.opened || !ends.told)
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
    return 1;
}
